"""A message that no observer can take stops no other message from being observed."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from remanence import Memory, Message, Policy
from remanence.conversation import Conversation
from remanence.errors import ModelError
from remanence.protocols import ExtractRequest, ObserveRequest
from remanence.testing import FixedClock, ScriptedReflector, check_coverage, check_tiling
from remanence.testing.observers import brief_notes
from remanence.types import Draft, FactDraft, MemoryState

POLICY = Policy(
    observe_tokens=400,
    observe_max_tokens=800,
    tail_tokens=500,
    tail_keep_tokens=100,
    keep_last=2,
)
WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice"
POISON = "[[[[ poison ]]]]"
POISONED_SEQ = 14


class FussyObserver:
    """Raises *error* on every request with the poisoned message, as long as it is `fussy`."""

    name = "fussy/1"

    def __init__(self, error: Callable[[], Exception] = lambda: ValueError("nested")) -> None:
        self.requests: list[ObserveRequest] = []
        self.fussy = True
        self.fails_on = POISON
        self._error = error

    async def observe(self, request: ObserveRequest) -> Draft:
        self.requests.append(request)
        if self.fussy and any(self.fails_on in message.text for message in request.messages):
            raise self._error()
        return brief_notes(request)


@asynccontextmanager
async def poisoned(
    observer: FussyObserver, clock: FixedClock, policy: Policy = POLICY
) -> AsyncIterator[tuple[Memory, Conversation]]:
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=observer,
        reflector=ScriptedReflector(),
        clock=clock,
    ) as memory:
        chat = memory.conversation("a")
        for number in range(1, 31):
            await chat.append(said(number))
        yield memory, chat


def said(number: int) -> Message:
    text = POISON if number == POISONED_SEQ else f"{number} {WORDS}"
    return Message.user(text) if number % 2 else Message.assistant(text)


async def kept_trying(
    chat: Conversation, clock: FixedClock, *, tries: int = 30, first: int = 31
) -> MemoryState:
    """Let so many waits pass, with a turn after each."""
    state = await chat.flush()
    for number in range(first, first + 2 * tries, 2):
        clock.advance(5_000)
        await chat.append(said(number), said(number + 1))
        state = await chat.flush()
    return state


async def test_one_bad_message_is_left_out_and_all_others_are_observed() -> None:
    clock = FixedClock()
    observer = FussyObserver()
    async with poisoned(observer, clock) as (memory, chat):
        state = await kept_trying(chat, clock)
        segments = (await chat.snapshot()).segments
        context = await chat.context()
        problems = await memory.check()

    failed = [stretch for segment in segments for stretch in segment.failed]
    assert [(f.first_seq, f.last_seq, f.reason) for f in failed] == [(14, 14, "error")]
    assert failed[0].message == "ValueError: nested"
    assert state.observed_seq > POISONED_SEQ + 20
    assert state.unobserved_tokens <= POLICY.observe_tokens
    check_tiling(state, segments)
    check_coverage(context, state, segments)
    gaps = [(gap.first_seq, gap.last_seq, gap.reason) for gap in context.omitted]
    assert gaps == [(14, 14, "failed")]
    named = [problem.what for problem in problems if problem.level == "warning"]
    assert named == [
        "messages 14..14 have no notes because every attempt failed: error: ValueError: nested"
    ]


async def test_what_is_left_out_stays_on_the_tape_and_is_found() -> None:
    clock = FixedClock()
    async with poisoned(FussyObserver(), clock) as (_, chat):
        await kept_trying(chat, clock)
        tape = await chat.messages()
        hits = await chat.recall("poison")

    assert tape[POISONED_SEQ - 1].text == POISON
    assert [hit.first_seq for hit in hits if hit.kind == "message"] == [POISONED_SEQ]


async def test_each_failure_halves_the_next_request_down_to_one_message() -> None:
    clock = FixedClock()
    observer = FussyObserver()
    async with poisoned(observer, clock) as (_, chat):
        while (await chat.flush()).failures == 0:
            await chat.append(said(31), said(32))
        while not any(s.failed for s in (await chat.snapshot()).segments):
            clock.advance(5_000)
            await chat.append(said(31), said(32))
            await chat.flush()

    sizes = [
        len(request.messages)
        for request in observer.requests
        if any(POISON in message.text for message in request.messages)
    ]
    assert sizes[0] > 4
    assert all(later <= earlier for earlier, later in pairwise(sizes[-POLICY.max_failures :]))
    assert sizes[-1] == 1


async def test_an_observer_that_fails_on_everything_is_asked_about_once_an_hour() -> None:
    clock = FixedClock()
    observer = FussyObserver()
    async with poisoned(observer, clock) as (_, chat):
        await kept_trying(chat, clock, tries=3)
        observer.fails_on = ""
        asked: list[int] = []
        for _ in range(8):
            before = len(observer.requests)
            for _ in range(9):
                clock.advance(400)
                await chat.append(said(31), said(32))
                await chat.flush()
            asked.append(len(observer.requests) - before)
        segments = (await chat.snapshot()).segments

    assert max(asked) <= 6
    assert sum(asked[2:]) <= 2 * len(asked)
    assert sum(len(segment.failed) for segment in segments) <= 4


async def test_a_flush_that_retries_observes_what_was_left_out_when_that_works_again() -> None:
    clock = FixedClock()
    observer = FussyObserver()
    async with poisoned(observer, clock) as (memory, chat):
        await kept_trying(chat, clock)
        still = await chat.flush(retry=True)
        refused = [s.failed for s in (await chat.snapshot()).segments if s.failed]
        observer.fussy = False
        state = await chat.flush(retry=True)
        segments = (await chat.snapshot()).segments
        context = await chat.context()
        problems = await memory.check()
        every = (await chat.log())[-1]

    assert still.failures == 0
    assert len(refused) == 1
    again = next(s for s in segments if s.first_seq <= POISONED_SEQ <= s.last_seq)
    assert (again.first_seq, again.last_seq, again.failed) == (14, 14, ())
    assert "poison" in again.text
    assert every.kind == "observed"
    check_tiling(state, segments)
    assert context.omitted == ()
    assert [problem for problem in problems if problem.level != "info"] == []


async def test_a_reflection_names_what_was_left_out_before_it() -> None:
    clock = FixedClock()
    policy = POLICY.replace(reflect_tokens=(150, 400))
    async with poisoned(FussyObserver(), clock, policy) as (_, chat):
        state = await kept_trying(chat, clock, tries=40)
        context = await chat.context()

    assert state.reflected_seq > POISONED_SEQ
    assert [(g.first_seq, g.last_seq) for g in context.omitted if g.reason == "failed"] == [
        (14, 14)
    ]


@pytest.mark.parametrize("reason", ["rate_limit", "connection", "auth"])
async def test_an_outage_leaves_nothing_out_however_long_it_lasts(reason: str) -> None:
    clock = FixedClock()
    observer = FussyObserver(lambda: ModelError(reason, "the provider is down"))
    async with poisoned(observer, clock) as (_, chat):
        state = await kept_trying(chat, clock)
        observer.fussy = False
        later = await chat.flush(retry=True)
        segments = (await chat.snapshot()).segments

    assert state.observed_seq < POISONED_SEQ
    assert later.observed_seq > POISONED_SEQ
    assert not any(segment.failed for segment in segments)


class FussyFacts:
    """Extracts each message as a fact, but raises *error* on every request with the poisoned one."""

    def __init__(self, error: Exception, name: str = "fussy/1") -> None:
        self.name = name
        self._error = error

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        if any(POISON in message.text for message in request.messages):
            raise self._error
        return tuple(FactDraft(summary=message.text) for message in request.messages)


async def facts_around_a_bad_message(extractor: FussyFacts) -> tuple[MemoryState, list[str]]:
    """The state and the facts of a conversation with one poisoned message after many attempts."""
    clock = FixedClock()
    async with Memory.open("sqlite:///:memory:", extractor=extractor, clock=clock) as memory:
        chat = memory.conversation("a", user="ana")
        for text in ("I keep bees.", "I play chess.", POISON, "I live in Rome."):
            await chat.append(Message.user(text))
        for number in range(15):
            await chat.append(Message.user(f"I own boat {number}."))
            await chat.flush(everything=True)
            clock.advance(5_000)
        facts = await memory.facts.list(user="ana")
        return await chat.state(), [fact.summary for fact in facts]


@pytest.mark.parametrize(
    ("error", "name"), [(ValueError("nested"), "fussy/1"), (TimeoutError(), "extractive/9")]
)
async def test_one_bad_message_is_left_out_of_facts_and_later_ones_are_read(
    error: Exception, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    state, facts = await facts_around_a_bad_message(FussyFacts(error, name))

    assert {"I keep bees.", "I play chess.", "I live in Rome.", "I own boat 14."} <= set(facts)
    assert POISON not in facts
    assert (state.facts_seq, state.facts_failure) == (state.last_seq, None)
    (warning,) = [text for text in caplog.messages if "left out of facts" in text]
    assert warning.startswith("messages 3..3 of conversation 'a' ")


@pytest.mark.parametrize("error", [ModelError("rate_limit", "busy"), TimeoutError()])
async def test_an_outage_leaves_no_message_out_of_facts(error: Exception) -> None:
    state, facts = await facts_around_a_bad_message(FussyFacts(error))

    assert state.facts_seq < 3
    assert "I live in Rome." not in facts


class NarrowObserver:
    """Takes at most so many messages at a time, as a model with a small window does."""

    name = "narrow/1"

    def __init__(self, most: int) -> None:
        self.most = most
        self.sizes: list[int] = []

    async def observe(self, request: ObserveRequest) -> Draft:
        self.sizes.append(len(request.messages))
        if len(request.messages) > self.most:
            raise ModelError("too_long", "a request is too long")
        return brief_notes(request)


async def test_a_size_that_an_observer_took_is_kept_to_and_slowly_grows() -> None:
    clock, observer = FixedClock(), NarrowObserver(most=9)
    policy = POLICY.replace(reflect_tokens=())
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=observer, clock=clock
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*map(said, range(POISONED_SEQ + 1, 200)))
        for _ in range(12):
            await chat.flush()
            clock.advance(5_000)
        narrow, observer.sizes = observer.sizes, []
        observer.most = 1_000
        await chat.append(*map(said, range(201, 400)))
        for _ in range(12):
            await chat.flush()
            clock.advance(5_000)
        state = await chat.state()

    taken = [size for size in narrow if size <= 9]
    assert len(narrow) < 1.6 * len(taken), narrow
    assert max(observer.sizes[-4:]) == narrow[0]
    assert state.last_seq - state.observed_seq < 40


async def test_a_short_message_before_a_too_long_one_shortens_no_other_slice() -> None:
    clock, observer = FixedClock(), NarrowObserver(most=1)
    policy = POLICY.replace(reflect_tokens=())
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=observer, clock=clock
    ) as memory:
        chat, other = memory.conversation("a"), memory.conversation("b")
        await chat.append(Message.user("Hello."), Message.assistant(WORDS * 20))
        await chat.append(*map(said, range(31, 34)))
        for _ in range(2):
            await chat.flush()
            clock.advance(5_000)
        refused, observer.sizes = observer.sizes, []
        observer.most = 1_000
        await other.append(*map(said, range(31, 80)))
        await other.flush()

    assert refused == [2, 1, 1]
    assert observer.sizes == [12, 12, 12, 10]
