"""Messages and notes of a chosen size, and answers that name what they were made from."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from remanence import Context, Memory, Message, Policy
from remanence.conversation import Conversation
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.observers import ObserveAnswer, ReflectAnswer
from remanence.types import Draft, Note, Segment, ToolCallPart

IN_MEMORY = "sqlite:///:memory:"
CHARACTERS_PER_TOKEN = 4
FRAME_TOKENS = {"cjk": 4, "flat": 0, "split": 0}
MESSAGE_CHARACTERS = {"cjk": 4.0, "flat": 4.0, "split": 3.5}
SMALL = Policy(
    token_counter="flat",
    observe_tokens=1_000,
    observe_max_tokens=1_500,
    tail_tokens=2_000,
    tail_keep_tokens=500,
    keep_last=2,
    reflect_tokens=(500, 500),
)
TINY = Policy.default(
    observe_tokens=60,
    observe_max_tokens=150,
    note_ratio=1.0,
    tail_tokens=100,
    tail_keep_tokens=20,
    keep_last=2,
    reflect_tokens=(120, 200),
)


@asynccontextmanager
async def scripted(
    answers: Sequence[ObserveAnswer] = (),
    reflections: Sequence[ReflectAnswer] = (),
    *,
    policy: Policy,
    gate: asyncio.Event | None = None,
    clock: FixedClock | None = None,
    url: str = IN_MEMORY,
) -> AsyncIterator[tuple[Conversation, ScriptedObserver, ScriptedReflector]]:
    """A conversation under *policy*, with an observer and a reflector that follow scripts."""
    observer, reflector = ScriptedObserver(answers, gate=gate), ScriptedReflector(reflections)
    async with Memory.open(
        url, policy=policy, observer=observer, reflector=reflector, clock=clock or FixedClock()
    ) as memory:
        yield memory.conversation("session-1"), observer, reflector


async def grown(chat: Conversation, messages: Iterable[Message]) -> None:
    """Messages one by one, with the background work that each makes due."""
    for message in messages:
        await chat.append(message)
        await chat.flush()


def said(tokens: int, *, counter: str, number: int = 0, role: str = "user") -> Message:
    """A message of exactly *tokens* by the rule of a preset."""
    characters = int(MESSAGE_CHARACTERS[counter] * (tokens - FRAME_TOKENS[counter]))
    text = f"{number} {'text ' * (characters // 5)}".ljust(characters)[:characters]
    return Message.user(text) if role == "user" else Message.assistant(text)


def turns(count: int, *, tokens: int, counter: str, start: int = 0) -> list[Message]:
    """*count* messages, of the user and the assistant in turn, of *tokens* each."""
    return [
        said(
            tokens, counter=counter, number=number, role="user" if number % 2 == 0 else "assistant"
        )
        for number in range(start, start + count)
    ]


def tool_turn(number: int, output: str) -> list[Message]:
    """A call of a tool and its result."""
    call = ToolCallPart(id=f"call-{number}", name="look", arguments="{}")
    return [Message.assistant(tool_calls=[call]), Message.tool(f"call-{number}", output)]


def draft(*texts: str, first_seq: int = 1, last_seq: int = 1) -> Draft:
    """Notes of these texts."""
    notes = tuple(Note(text=text, first_seq=first_seq, last_seq=last_seq) for text in texts)
    return Draft(notes=notes, made_by="scripted/1")


def noting(tokens: int, *, head: str = "") -> Callable[[ObserveRequest], Draft]:
    """An answer of one note of *tokens*, with the *head* of its format, that names its messages."""

    def answer(request: ObserveRequest) -> Draft:
        first, last = request.messages[0].seq, request.messages[-1].seq
        text = f"notes-of-{first}-to-{last} ".ljust(tokens * CHARACTERS_PER_TOKEN - len(head), "n")
        return draft(text, first_seq=first, last_seq=last)

    return answer


def condensing(tokens: int, *, head: str = "") -> Callable[[ReflectRequest], Draft]:
    """An answer of one note of *tokens*, with the *head* of its format, that names its range."""

    def answer(request: ReflectRequest) -> Draft:
        first, last = request.segments[0].first_seq, request.segments[-1].last_seq
        text = f"gist-of-{first}-to-{last} ".ljust(tokens * CHARACTERS_PER_TOKEN - len(head), "g")
        return draft(text, first_seq=first, last_seq=last)

    return answer


def seqs(context: Context) -> list[int]:
    """The numbers of the raw messages of a context."""
    return [message.seq for message in context.messages]


def ranges(segments: tuple[Segment, ...]) -> list[tuple[int, int]]:
    """What each segment covers."""
    return [(segment.first_seq, segment.last_seq) for segment in segments]


def system_text(request: dict[str, Any]) -> str:  # a provider's request
    """All system text of a request to Anthropic."""
    return "\n\n".join(block["text"] for block in request.get("system", ()))
