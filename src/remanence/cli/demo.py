"""The demo: a shipped conversation, turn by turn, with and without memory."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

from remanence.cli.replay import MEMORY_URL, live_segments
from remanence.cli.tape_clock import TapeClock
from remanence.cli.transcripts import entries
from remanence.context.context import Context
from remanence.memory import Memory
from remanence.policy.policy import Policy
from remanence.types import MemoryState, Message, Segment

SYSTEM = "You are a helpful assistant. You help Mina with her work and her everyday life."


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The size of the prompts of all turns, in tokens and characters.

    `repeated_characters` extend the beginning that a prompt shares with the one before it: a
    prompt cache serves them.
    """

    calls: int = 0
    tokens: int = 0
    history_tokens: int = 0
    characters: int = 0
    repeated_characters: int = 0

    @property
    def repeated_share(self) -> float:
        """The share of all characters that a prompt cache can serve, 0 to 1."""
        return self.repeated_characters / max(1, self.characters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The result of the demo."""

    policy: Policy
    state: MemoryState
    segments: tuple[Segment, ...]
    context: Context
    spent: Spent
    activations: int


def demo_messages() -> tuple[Message, ...]:
    """The conversation that ships with the package."""
    file = resources.files("remanence.cli") / "demo_conversation.jsonl"
    with file.open("rb") as lines:
        return tuple(entry.message for entry in entries(lines, name=file.name))


async def play(messages: tuple[Message, ...], *, advance: Callable[[int], None]) -> Demo:
    """Put *messages* on a temporary tape one by one, with a prompt before each answer."""
    clock = TapeClock()
    policy = Policy.default()
    spent, before = Spent(), ""
    async with Memory.open(MEMORY_URL, policy=policy, clock=clock) as memory:
        chat = memory.conversation("demo")
        for message in messages:
            if message.role == "assistant":
                context = await chat.context(system=SYSTEM)
                prompt = context.to_text()
                spent = _after(spent, context, prompt, before)
                before = prompt
            clock.reach(message.created_at)
            await chat.append(message)
            await chat.flush()
            advance(1)
        log = await chat.log()
        return Demo(
            policy=policy,
            state=await chat.state(),
            segments=await live_segments(chat),
            context=await chat.context(system=SYSTEM),
            spent=spent,
            activations=sum(entry.kind == "activated" for entry in log),
        )


def _after(spent: Spent, context: Context, prompt: str, before: str) -> Spent:
    stats = context.stats
    return Spent(
        calls=spent.calls + 1,
        tokens=spent.tokens + stats.context_tokens,
        history_tokens=spent.history_tokens + stats.system_tokens + stats.history_tokens,
        characters=spent.characters + len(prompt),
        repeated_characters=spent.repeated_characters + common_prefix_length(prompt, before),
    )


def common_prefix_length(text: str, other: str) -> int:
    """Return the length of the prefix that two texts share, in characters."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
