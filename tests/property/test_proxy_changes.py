"""However clients change the histories that they resend, no tape mixes or loses messages."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias

from hypothesis import given, settings, strategies as st

from remanence import Memory, Message, Policy
from remanence.server.proxy.history import DetachedHistory, Histories
from remanence.server.proxy.naming import Name

IS_LONG = settings.get_current_profile_name() == "long"
NAME = Name(tenant="default", conversation="trip")
SHORT = ("ok", "no", "Not yet", "look", "Thanks", "yes please")
BYE = " Have a good trip!"

Path: TypeAlias = list[str]
"""The texts of a user and a model by turns, as the client shows them."""


class Move(NamedTuple):
    """A request of a client: how its history changed, and what is sent and kept of it."""

    client: int
    action: Literal["say", "answer again", "edit", "shorten", "trim", "summarise", "copy"]
    process: int
    at: int
    short: int
    surrounds: bool
    cuts: bool
    answers: bool


MOVES = st.builds(
    Move,
    client=st.integers(0, 2),
    action=st.sampled_from(
        ["say", "say", "say", "answer again", "edit", "shorten", "trim", "summarise", "copy"]
    ),
    process=st.integers(0, 1),
    at=st.integers(0, 9),
    short=st.integers(-6, 5),
    surrounds=st.booleans(),
    cuts=st.booleans(),
    answers=st.sampled_from([True, True, True, False]),
)
ROUNDS = st.lists(
    st.one_of(
        st.lists(MOVES, min_size=1, max_size=2, unique_by=lambda move: move.client),
        st.just("restart"),
    ),
    min_size=1,
    max_size=20,
)


class World:
    """Clients of one conversation, at two processes."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.processes = [Histories(memory), Histories(memory)]
        self.paths: list[Path] = [[], [], []]
        self.starts = [0, 0, 0]
        self.summaries: list[Path] = [[], [], []]
        self.count = 0

    def text(self, short: int) -> str:
        self.count += 1
        if short >= 0:
            return SHORT[short]
        return f"Boat {self.count} leaves from the pier beside the tower, at nine in the morning."

    def change(self, move: Move) -> None:
        """Change a client's history, which ends with the user's text then."""
        client, path = move.client, self.paths[move.client]
        if move.action == "copy":
            other = move.at % 3
            path = list(self.paths[other])
            self.starts[client], self.summaries[client] = self.starts[other], self.summaries[other]
        start = self.starts[client]
        newest = (len(path) - 1) // 2 * 2
        if move.action in ("answer again", "edit", "shorten") and newest >= start and path:
            edited = {"answer again": path[newest], "edit": self.text(move.short)}
            whole = path[newest].rpartition(",")[0] or path[newest]
            path = [*path[:newest], edited.get(move.action, whole)]
        else:
            if move.action in ("trim", "summarise") and len(path) - start > 5:
                self.starts[client] = start = start + 2 + move.at // 5 * 2
                summarised = [f"Summary {self.count}: boats."] if move.action == "summarise" else []
                self.summaries[client] = summarised
            if len(path) % 2:
                # The client shows this. Words alike would be the same answer to a text and a part of it.
                self.count += 1
                path = [*path, f"(no answer {self.count})"]
            path = [*path, self.text(move.short)]
        self.paths[client] = path

    async def send(self, move: Move) -> None:
        client, process = move.client, self.processes[move.process]
        path, start, summary = self.paths[client], self.starts[client], self.summaries[client]
        sent = [*summary, *path[start:]]
        self.count += 1
        around = f"<now>{self.count}</now>\n" if move.surrounds else ""
        messages = render([*sent[:-1], around + sent[-1]], is_summarised=bool(summary))
        stored = await process.absorb(NAME, messages)
        await self.check(stored.conversation.id, stored.last_seq, path, start)
        if move.answers:
            answer = self.text(move.short) + (BYE if move.cuts else "")
            messages.append(Message.assistant(answer))
            stored = await process.absorb(NAME, messages, question=stored)
            path = [*path, answer.removesuffix(BYE)]
            await self.check(stored.conversation.id, stored.last_seq, path, start)
            if self.paths[client] == path[:-1]:
                self.paths[client] = path

    async def check(self, id_: str, last_seq: int, path: Path, start: int) -> None:
        """A tape is the client's path: all, or from where the memory first saw it without more."""
        tape = self.memory.conversation(id_, tenant=NAME.tenant)
        texts = [bare(message.text) for message in await tape.messages() if message.seq <= last_seq]
        texts = [text for text in texts if not text.startswith("Summary")]
        assert len(texts) >= len(path) - start
        assert texts == path[len(path) - len(texts) :], f"{id_} mixes histories"


def bare(text: str) -> str:
    return re.sub("<now>.*</now>\n", "", text).removesuffix(BYE)


def render(texts: Sequence[str], *, is_summarised: bool) -> list[Message]:
    first = int(is_summarised)
    return [
        Message.assistant(text) if (at - first) % 2 and at >= first else Message.user(text)
        for at, text in enumerate(texts)
    ]


async def live(rounds: Sequence[list[Move] | str]) -> None:
    async with Memory.open("sqlite:///:memory:", policy=Policy(enabled=False)) as memory:
        world = World(memory)
        for number, moves in enumerate(rounds):
            if isinstance(moves, str):
                world.processes[number % 2] = Histories(memory)
                continue
            for move in moves:
                world.change(move)
            async with asyncio.TaskGroup() as group:
                for move in moves:
                    group.create_task(world.send(move))


@settings(max_examples=3_000 if IS_LONG else 50)
@given(ROUNDS)
def test_a_tape_is_the_history_of_its_client(rounds: list[list[Move] | str]) -> None:
    asyncio.run(live(rounds))


async def slide(window: int, turns: Sequence[tuple[int, int]], *, branch: bool) -> None:
    """Send each time the newest *window* messages, and check the tapes."""
    async with Memory.open("sqlite:///:memory:", policy=Policy(enabled=False)) as memory:
        world, path = World(memory), Path()
        for short, number in turns:
            process, text = world.processes[number], world.text(short)
            path.append(text)
            answer = world.text(short)
            sent = render(path[-window:], is_summarised=False)
            with suppress(DetachedHistory):
                stored = await process.absorb(NAME, sent, branch=branch)
                await process.absorb(NAME, [*sent, Message.assistant(answer)], question=stored)
            path.append(answer)
        tapes = {
            state.ref.id: [
                message.text
                for message in await memory.conversation(
                    state.ref.id, tenant=state.ref.tenant
                ).messages()
            ]
            for state in await memory.conversations()
        }
    runs = {tuple(path[first:last]) for first in range(len(path)) for last in range(len(path) + 1)}
    assert {tuple(texts) for texts in tapes.values()} <= runs, "a tape mixes histories"
    if all(short < 0 for short, _ in turns):
        alone = [path[at : at + 2] for at in range(0, len(path) if branch else 2, 2)]
        assert list(tapes.values()) == ([path] if window > 1 else alone)


@settings(max_examples=1_000 if IS_LONG else 40)
@given(
    window=st.sampled_from([1, 3, 5, 9]),
    turns=st.lists(st.tuples(st.integers(-6, 5), st.integers(0, 1)), min_size=1, max_size=12),
    branch=st.booleans(),
)
def test_the_newest_messages_alone_continue_a_tape_if_there_are_more_than_one(
    window: int, turns: list[tuple[int, int]], branch: bool
) -> None:
    """One message proves no tape to be its own, so it opens one or has no memory."""
    asyncio.run(slide(window, turns, branch=branch))
