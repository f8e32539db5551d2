"""P5: a failed step changes nothing but the record of its failure, and turns go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import drafting

from remanence import Memory, Message, Note, Policy
from remanence.conversation import Conversation
from remanence.errors import ModelError
from remanence.protocols import ObserveRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.observers import ObserveAnswer, ReflectAnswer
from remanence.types import Draft, MemoryState

POLICY = Policy(
    observe_tokens=400,
    observe_max_tokens=800,
    tail_tokens=800,
    tail_keep_tokens=100,
    reflect_tokens=(150, 200),
    keep_last=2,
)
WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice "


FAILURES: dict[str, ObserveAnswer] = {
    "error": RuntimeError("the model is down"),
    "empty": drafting(),
    "degenerate": drafting(*["the same line again and again"] * 20),
    "too_large": drafting(*[f"{number} {WORDS}" for number in range(60)]),
    "cut_off": drafting("half a note", complete=False),
    "out_of_range": Draft(
        notes=(Note(text="of nothing", first_seq=99, last_seq=100),), made_by="scripted/1"
    ),
}


@asynccontextmanager
async def failing(
    answer: ObserveAnswer, clock: FixedClock, *, times: int = 99
) -> AsyncIterator[tuple[Conversation, ScriptedObserver]]:
    observer = ScriptedObserver([answer] * times)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, clock=clock
    ) as memory:
        chat = memory.conversation("a")
        for number in range(20):
            varied = " ".join(f"{word}{number}" for word in WORDS.split())
            await chat.append(Message.user(varied), Message.assistant(f"ok {varied}"))
        yield chat, observer


def cursors(state: MemoryState) -> tuple[int, int, int]:
    return state.observed_seq, state.active_seq, state.reflected_seq


@pytest.mark.req("B-46", "L-11", "X-01")
@pytest.mark.parametrize("reason", FAILURES)
async def test_a_failed_observation_moves_no_cursor_and_leaves_the_messages_raw(
    reason: str,
) -> None:
    clock = FixedClock()
    async with failing(FAILURES[reason], clock) as (chat, observer):
        state = await chat.flush()
        context = await chat.context()
        log = await chat.log()

    assert cursors(state) == (0, 0, 0)
    assert state.observe_failure is not None
    assert state.observe_failure.reason == reason
    assert state.next_attempt_at is not None
    assert state.next_attempt_at > clock.now()
    assert [message.seq for message in context.messages] == list(range(1, 41))
    assert {entry.kind for entry in log} == {"failed"}
    assert len(observer.requests) == 1


async def test_an_observer_that_never_answers_times_out() -> None:
    observer, policy = (
        ScriptedObserver(gate=asyncio.Event()),
        POLICY.replace(observe_timeout_seconds=0.05),
    )
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*(Message.user(f"{number} {WORDS}") for number in range(30)))
        state = await chat.flush()

    assert cursors(state) == (0, 0, 0)
    assert state.observe_failure is not None
    assert state.observe_failure.reason == "timeout"


@pytest.mark.req("L-12")
@pytest.mark.parametrize("reason", FAILURES)
async def test_the_next_try_after_the_wait_succeeds_and_forgets_the_failure(reason: str) -> None:
    clock = FixedClock()
    async with failing(FAILURES[reason], clock, times=1) as (chat, _):
        state = await chat.flush()
        assert state.next_attempt_at is not None
        clock.advance((state.next_attempt_at - clock.now()).total_seconds())
        state = await chat.flush()

    assert state.observed_seq > 0
    assert state.failures == 0
    assert state.next_attempt_at is None
    assert state.last_error is None


@pytest.mark.req("X-02")
async def test_a_lasting_failure_costs_at_most_six_calls_an_hour() -> None:
    clock = FixedClock()
    async with failing(RuntimeError("down"), clock) as (chat, observer):
        for _ in range(360):
            await chat.append(Message.user("and another thing"))
            await chat.flush()
            clock.advance(10)

    assert 3 <= len(observer.requests) <= 6


@pytest.mark.req("X-02")
async def test_an_outage_of_both_models_costs_no_more_than_that_of_one(tmp_path: Path) -> None:
    clock = FixedClock()
    down = ModelError("overloaded", "the provider is overloaded")
    observer, reflector = ScriptedObserver(), ScriptedReflector([down] * 99)
    policy = POLICY.replace(reflect_tokens=(10_000, 10_000))
    url = f"sqlite:///{tmp_path}/memory.db"
    async with Memory.open(url, policy=policy, observer=observer, clock=clock) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(
                Message.user(f"{number} {WORDS}"), Message.assistant(f"ok {number} {WORDS}")
            )
            await chat.flush()
    broken = ScriptedObserver([down] * 99)
    async with Memory.open(
        url, policy=POLICY, observer=broken, reflector=reflector, clock=clock
    ) as memory:
        chat = memory.conversation("a")
        for number in range(360):
            await chat.append(Message.user(f"and {number} {WORDS}"))
            await chat.flush()
            clock.advance(10)
        state = await chat.state()

    assert state.observe_failure is not None
    assert state.next_attempt_at is not None
    assert 3 <= len(broken.requests) + len(reflector.requests) <= 7


@pytest.mark.req("X-02")
async def test_tries_end_after_the_last_failure_until_new_messages_come() -> None:
    clock = FixedClock()
    down = ModelError("overloaded", "the provider is overloaded")
    async with failing(down, clock) as (chat, observer):
        for _ in range(POLICY.max_failures + 5):
            await chat.flush()
            clock.advance(8_000)
        given_up = len(observer.requests)
        await chat.append(Message.user("Are you there?"))
        await chat.flush()

    assert given_up == POLICY.max_failures
    assert len(observer.requests) == given_up + 1


async def test_waits_grow_and_stay_below_their_cap() -> None:
    clock = FixedClock()
    waits: list[float] = []
    async with failing(RuntimeError("down"), clock) as (chat, _):
        for _ in range(POLICY.max_failures):
            state = await chat.flush()
            assert state.next_attempt_at is not None
            waits.append((state.next_attempt_at - clock.now()).total_seconds())
            clock.advance(waits[-1])

    assert waits == sorted(waits)
    assert waits[0] >= POLICY.retry_seconds
    assert waits[-1] <= POLICY.retry_max_seconds * 1.25


@pytest.mark.req("L-19", "X-06")
@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("down"),
        drafting(),
        drafting(*[f"{n} {WORDS}" for n in range(90)]),
        Draft(notes=(Note(text="of later", first_seq=9, last_seq=900),), made_by="scripted/1"),
    ],
    ids=["error", "empty", "too_large", "out_of_range"],
)
async def test_a_failed_reflection_keeps_the_observations_and_observing_goes_on(
    answer: ReflectAnswer,
) -> None:
    reflector = ScriptedReflector([answer] * 99)
    clock = FixedClock()
    async with Memory.open(
        "sqlite:///:memory:",
        policy=POLICY,
        observer=ScriptedObserver(),
        reflector=reflector,
        clock=clock,
    ) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(
                Message.user(f"{number} {WORDS}"), Message.assistant(f"ok {number} {WORDS}")
            )
            state = await chat.flush()

    assert state.reflect_failure is not None
    assert state.reflected_seq == 0
    assert state.unobserved_tokens < 2 * POLICY.observe_tokens + 200
    assert len(reflector.requests) == 1


async def test_a_reflection_may_keep_a_date_that_an_observation_may_no_longer_have() -> None:
    note = Note(text="the well is deep", first_seq=1, last_seq=1, referenced_at="in spring")
    reflector = ScriptedReflector([Draft(notes=(note,), made_by="mine/1")])
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=ScriptedObserver(), reflector=reflector
    ) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(Message.user(f"{number} {WORDS}"), Message.assistant("ok"))
            reflected = await chat.flush()

    assert reflected.reflect_failure is None
    assert reflected.reflected_seq > 0


async def test_sixty_turns_pass_while_one_observation_takes_its_time() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with Memory.open("sqlite:///:memory:", policy=POLICY, observer=observer) as memory:
        chat = memory.conversation("a")
        async with asyncio.timeout(60):
            for number in range(60):
                await chat.append(Message.user(f"{number} {WORDS}"))
                await chat.context()
                await chat.append(Message.assistant(f"ok {number} {WORDS}"))
        assert len(observer.requests) == 1
        gate.set()
        state = await chat.flush()

    assert state.observed_seq > 60


@pytest.mark.req("X-03")
async def test_nothing_worth_noting_is_no_failure_and_is_named_in_the_context() -> None:
    nothing = Draft(notes=(), made_by="scripted/1", nothing=True)
    observer = ScriptedObserver([nothing])
    async with Memory.open("sqlite:///:memory:", policy=POLICY, observer=observer) as memory:
        chat = memory.conversation("a")
        for number in range(20):
            await chat.append(
                Message.user(f"{number} {WORDS}"), Message.assistant(f"ok {number} {WORDS}")
            )
        state = await chat.flush()
        context = await chat.context()

    assert state.failures == 0
    assert state.active_seq > 0
    assert [gap.reason for gap in context.omitted] == ["nothing_noted"]


class CarelessObserver:
    """An observer of the application that returns nothing for want of notes."""

    async def observe(self, request: ObserveRequest) -> Draft:
        return None  # type: ignore[return-value]  # what a careless observer does


async def test_an_observer_that_returns_no_draft_is_told_what_to_return() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=CarelessObserver(), clock=FixedClock()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(WORDS))
        state = await chat.flush(everything=True)

    assert state.observe_failure is not None
    assert state.observe_failure.reason == "no_draft"
    assert "CarelessObserver returned a NoneType: return a Draft" in state.observe_failure.message
    assert state.observed_seq == 0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"priority": "HIGH"}, "priority='HIGH' is unknown"),
        ({"referenced_at": "in spring"}, "referenced_at='in spring' is not a date"),
    ],
)
async def test_an_observer_whose_note_has_a_wrong_value_is_told_the_value(
    changes: dict[str, str], expected: str
) -> None:
    note = replace(Note(text="tea", first_seq=1, last_seq=1), **changes)  # type: ignore[arg-type]  # what a careless observer does
    observer = ScriptedObserver([Draft(notes=(note,), made_by="mine/1")])
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(WORDS))
        state = await chat.flush(everything=True)

    assert state.observe_failure is not None
    assert state.observe_failure.reason == "bad_value"
    assert f"mine/1 returned a note whose {expected}" in state.observe_failure.message


@pytest.mark.parametrize("failure", ["caf\ud83d", "a\0b"])
async def test_a_failure_whose_text_no_store_takes_is_recorded(failure: str) -> None:
    clock = FixedClock()
    async with failing(ValueError(f"cannot parse {failure!s}"), clock) as (chat, observer):
        state = await chat.flush()
        await chat.flush()

    assert (state.failures, len(observer.requests)) == (1, 1)
    assert str(state.last_error).isprintable()
    assert "cannot parse" in str(state.last_error)
