"""P1, P2, P3 and P6 hold after every step of any life of a conversation."""

import asyncio
import itertools
import shutil
import tempfile
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remanence import Memory, Message, Policy
from remanence.context.context import Context
from remanence.conversation import Conversation
from remanence.testing import (
    FixedClock,
    ScriptedObserver,
    ScriptedReflector,
    check_coverage,
    check_extends,
    check_tiling,
)
from remanence.testing.clock import START
from remanence.testing.observers import ObserveAnswer
from remanence.types import Draft, Note, Segment, ToolCallPart
from remanence.wire.validate import anthropic_problems, openai_problems

pytestmark = pytest.mark.timeout(1_800)

BASE: dict[str, Any] = {
    "observe_tokens": 60,
    "observe_max_tokens": 150,
    "note_ratio": 1.0,
    "tail_tokens": 150,
    "tail_keep_tokens": 30,
    "keep_last": 2,
    "reflect_tokens": (80, 100),
    "max_context_tokens": 1_000,
    "observe_timeout_seconds": 5.0,
}
POLICIES = (
    Policy(**BASE),
    Policy(**BASE | {"keep_last": 0, "observe_slice": "all", "activate": "when_observed"}),
    Policy(**BASE | {"observe_slice": "oldest_n", "observe_slice_messages": 3}),
    Policy(**BASE | {"reflect_scope": "all", "reflect_tokens": (150,), "observe_compare": "gte"}),
    Policy(
        **BASE
        | {"keep_last": 5, "activate": "when_observed", "observe_slice": "all"}
        | {"tail_keep_tokens": 100}
    ),
)
BAD_ANSWERS: tuple[ObserveAnswer, ...] = (
    RuntimeError("down"),
    Draft(notes=(), made_by="bad"),
    Draft(notes=(Note(text="half", first_seq=1, last_seq=1),), made_by="bad", complete=False),
    Draft(
        notes=tuple(
            Note(text=f"{n} far too much text for any source of this size", first_seq=1, last_seq=1)
            for n in range(200)
        ),
        made_by="bad",
    ),
    Draft(notes=(), made_by="idle", nothing=True),
)
TEXTS = st.one_of(
    st.integers(1, 40).map(lambda n: " ".join(f"word{i}" for i in range(n))),
    st.sampled_from(
        ["ok", "날씨가 좋네요. 내일 다시 이야기해요.", "了解しました", "x" * 900, "a\n\n<b>"]
    ),
)


LIVES = itertools.count()
"""Each life of a conversation begins on a day of its own, so that they are told apart."""


class ConversationMachine(RuleBasedStateMachine):
    """Two handles on one file, driven at random."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FixedClock(START + timedelta(days=next(LIVES)))
        self.contexts: dict[str, Context] = {}
        self.appended: list[str] = []
        self.calls: list[str] = []
        self.number = 0
        self.seen: dict[str, Segment] = {}
        self.version = 0
        self.policy = POLICIES[0]
        self.handles: list[tuple[AsyncExitStack, Memory]] = []
        self.script: list[ObserveAnswer] = []

    @initialize(policy=st.sampled_from(POLICIES))
    def begin(self, policy: Policy) -> None:
        self.policy = policy
        self.runner.run(self.open())
        self.runner.run(self.open())

    async def open(self) -> None:
        stack = AsyncExitStack()
        memory = await stack.enter_async_context(
            Memory.open(
                f"sqlite:///{self.folder / 'memory.db'}",
                policy=self.policy,
                observer=SharedScript(self.script),
                reflector=ScriptedReflector(),
                clock=self.clock,
            )
        )
        self.handles.append((stack, memory))

    def chat(self, handle: int) -> Conversation:
        return self.handles[handle % len(self.handles)][1].conversation("c", user="ana")

    def append(self, handle: int, *messages: Message) -> None:
        stored = self.runner.run(self.chat(handle).append(*messages))
        assert [message.seq for message in stored] == [
            len(self.appended) + 1 + index for index in range(len(stored))
        ]
        self.appended += [message.full_text for message in stored]

    @rule(
        handle=st.integers(0, 1), text=TEXTS, assistant=st.booleans(), seconds=st.integers(0, 400)
    )
    def say(self, handle: int, text: str, assistant: bool, seconds: int) -> None:
        self.clock.advance(seconds)
        self.append(handle, Message.assistant(text) if assistant else Message.user(text))

    @rule(handle=st.integers(0, 1), count=st.integers(1, 3), results=st.integers(0, 3), text=TEXTS)
    def call_tools(self, handle: int, count: int, results: int, text: str) -> None:
        calls = []
        for _ in range(count):
            self.number += 1
            calls.append(
                ToolCallPart(id=f"call-{self.number}", name="look", arguments='{"q": "x"}')
            )
        self.append(handle, Message.assistant("", tool_calls=calls))
        for call in calls[:results]:
            self.append(handle, Message.tool(call.id, text))
        self.calls += [call.id for call in calls[results:]]

    @precondition(lambda self: self.calls)
    @rule(handle=st.integers(0, 1), text=TEXTS)
    def answer_late(self, handle: int, text: str) -> None:
        self.append(handle, Message.tool(self.calls.pop(0), text))

    @rule(handle=st.integers(0, 1), everything=st.booleans())
    def flush(self, handle: int, everything: bool) -> None:
        self.runner.run(self.chat(handle).flush(everything=everything))

    @rule(answer=st.sampled_from(BAD_ANSWERS))
    def let_the_observer_fail_once(self, answer: ObserveAnswer) -> None:
        self.script.append(answer)

    @rule()
    def let_time_pass(self) -> None:
        self.clock.advance(4_000)

    @rule(handle=st.integers(0, 1))
    def restart(self, handle: int) -> None:
        stack, _ = self.handles.pop(handle % len(self.handles))
        self.runner.run(stack.aclose())
        self.runner.run(self.open())

    @rule(handle=st.integers(0, 1), system=st.sampled_from(["", "You help."]))
    def look(self, handle: int, system: str) -> None:
        context = self.runner.run(self.chat(handle).context(system=system))
        if system in self.contexts:
            check_extends(self.contexts[system], context)
        self.contexts[system] = context
        if not self.appended:
            return
        assert context.stats.context_tokens <= self.policy.context_tokens
        assert context.messages[-1].seq == len(self.appended)
        shown_raw = {message.seq for message in context.messages}
        newest = range(
            max(1, len(self.appended) - self.policy.keep_last + 1), len(self.appended) + 1
        )
        assert set(newest) <= shown_raw
        assert anthropic_problems(context.to_anthropic()) == ()
        assert openai_problems(context.to_openai()) == ()
        chat = self.chat(handle)
        every_segment = self.runner.run(self.all_segments(chat))
        check_coverage(context, self.runner.run(chat.state()), every_segment)

    async def all_segments(self, chat: Conversation) -> tuple[Segment, ...]:
        """Also those that came and were replaced since the last look."""
        for entry in await chat.log():
            if entry.version > self.version:
                known = await chat.snapshot(entry.version)
                self.seen |= {segment.id: segment for segment in known.segments}
                self.version = entry.version
        return tuple(self.seen.values())

    @invariant()
    def the_tape_is_whole_and_tiled(self) -> None:
        if not self.handles:
            return
        chat = self.chat(0)
        snapshot = self.runner.run(chat.snapshot())
        self.seen |= {segment.id: segment for segment in snapshot.segments}
        check_tiling(snapshot.state, snapshot.segments)
        messages = self.runner.run(chat.messages())
        assert [message.full_text for message in messages] == self.appended

    def teardown(self) -> None:
        for stack, memory in self.handles:
            problems = self.runner.run(memory.check())
            assert [problem for problem in problems if problem.level == "error"] == []
            self.runner.run(stack.aclose())
        self.runner.close()
        shutil.rmtree(self.folder)


class SharedScript(ScriptedObserver):
    """Takes its answers from a script that the test goes on writing."""

    def __init__(self, script: list[ObserveAnswer]) -> None:
        super().__init__()
        self._script = script


LONG = settings.get_current_profile_name() == "long"
ConversationMachine.TestCase.settings = settings(
    max_examples=1_000 if LONG else 18, stateful_step_count=25
)
test_promises_hold_in_every_life_of_a_conversation = ConversationMachine.TestCase
