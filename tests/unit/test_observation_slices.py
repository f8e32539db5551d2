"""Where a slice of the tape ends: with a turn, where a request is full, or halved after failures."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.builders import REF, call, state

from remanence import Message, Policy
from remanence.engine.snapshots import due_slices
from remanence.policy.schedule import (
    activation,
    facts_end,
    failure_by,
    halve,
    may_interrupt,
    observation_slice,
    plan_reflection,
    retry_delay,
)
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing import FaultyStore
from remanence.testing.store_contract.samples import observation
from remanence.types import (
    ConversationRef,
    Failure,
    MemoryState,
    Segment,
    Snapshot,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BUDGET = Policy(observe_tokens=100, observe_max_tokens=1_000, keep_last=0)
ALL = BUDGET.replace(observe_slice="all", observe_max_tokens=300, observe_tokens=4)
OLDEST = BUDGET.replace(
    observe_slice="oldest_n", observe_slice_messages=3, observe_max_tokens=300, observe_tokens=4
)


def user(text: str = "Hello.") -> Message:
    return Message.user(text)


def numbered(messages: Sequence[Message], *tokens: int) -> list[Message]:
    sizes = tokens or (10,) * len(messages)
    return [
        message.replace(seq=seq, tokens=size)
        for seq, (message, size) in enumerate(zip(messages, sizes, strict=True), start=1)
    ]


def turns(*tokens: int) -> list[Message]:
    """Questions and answers of these sizes."""
    makers = (Message.user, Message.assistant)
    return numbered([makers[n % 2](f"m{n}") for n in range(len(tokens))], *tokens)


def users(*tokens: int) -> list[Message]:
    return numbered([user() for _ in tokens], *tokens)


def sliced(policy: Policy, messages: Sequence[Message], **options: Any) -> int:
    """How many messages the next slice has."""
    now = state(last_seq=len(messages))
    return len(observation_slice(policy, now, messages, **options).messages)


# Turns


@pytest.mark.parametrize(
    ("policy", "tokens", "many"),
    [
        (BUDGET, (20, 20, 20, 20, 20), 4),
        (BUDGET, (20, 20, 20, 20), 4),
        (BUDGET, (10, 40, 50), 2),
        (BUDGET, (10, 39, 51), 3),
        (ALL, (20, 20, 20, 20, 20), 5),
        (OLDEST, (20, 20, 20, 20, 20), 3),
    ],
)
def test_a_slice_of_a_budget_ends_with_a_turn_unless_that_leaves_less_than_half_of_it(
    policy: Policy, tokens: tuple[int, ...], many: int
) -> None:
    assert sliced(policy, turns(*tokens)) == many


def test_the_newest_messages_are_left_unless_everything_is_asked_for() -> None:
    keeping = BUDGET.replace(keep_last=2)
    waiting = numbered([user(), user(), call("a")])

    assert sliced(keeping, users(10, 10, 10)) == 1
    assert sliced(keeping, users(10, 10, 10), everything=True) == 3
    assert sliced(BUDGET, waiting) == 2
    assert sliced(BUDGET, waiting, everything=True) == 3


@pytest.mark.parametrize(("messages", "many"), [(1, 1), (2, 2), (3, 2)])
def test_a_few_words_take_the_next_message_however_long_if_the_policy_asks_for_so_many(
    messages: int, many: int
) -> None:
    policy = OLDEST.replace(observe_slice_messages=messages, observe_tokens=100)

    assert sliced(policy, users(1, 400, 1)) == many


@pytest.mark.parametrize(
    ("precompute_at", "tokens", "may"),
    [(None, 1_250, False), (None, 1_251, True), (0.5, 625, False), (0.5, 626, True)],
)
def test_an_observation_interrupts_a_turn_when_a_quarter_more_waits(
    precompute_at: float | None, tokens: int, *, may: bool
) -> None:
    policy = Policy(observe_tokens=1_000, precompute_at=precompute_at, keep_last=0)

    assert may_interrupt(policy, state(last_seq=9, last_sum_tokens=tokens), ()) is may


@pytest.mark.parametrize(
    ("rounds", "window", "may"),
    [(7, 9_000, False), (8, 9_000, True), (7, 1_000, True)],
)
def test_a_turn_with_long_results_is_interrupted_when_three_times_as_much_leaves_as_stays(
    rounds: int, window: int, *, may: bool
) -> None:
    policy = BUDGET.replace(
        keep_last=4,
        max_context_tokens=window,
        tail_tokens=100,
        tail_keep_tokens=10,
        reflect_tokens=(100, 100),
    )
    tail = working(rounds)

    assert may_interrupt(policy, size_of(tail), tail) is may


async def test_slices_of_an_interrupted_turn_leave_only_the_newest_messages() -> None:
    policy = BUDGET.replace(keep_last=4)
    store = await open_store("sqlite:///:memory:")
    appended = await store.append(REF, working(7), user=None)

    slices = await due_slices(
        store,
        policy,
        appended.state,
        9,
        request_tokens=None,
        everything=False,
        interrupted=appended.messages,
    )
    await store.close()

    assert [len(messages) for messages in slices] == [3, 2, 2, 2, 2]


def working(rounds: int) -> list[Message]:
    """A question, and rounds of a call and its result of 100 tokens."""
    made = [pair for n in range(rounds) for pair in (call(f"{n}"), Message.tool(f"{n}", "1"))]
    return numbered([user(), *made], 1, *(1, 99) * rounds)


def size_of(messages: Sequence[Message]) -> MemoryState:
    tokens = sum(message.tokens for message in messages)
    return state(last_seq=len(messages), last_sum_tokens=tokens)


# What one request may have


@pytest.mark.parametrize(
    ("request_tokens", "many"), [(None, 3), (360, 3), (359, 2), (240, 2), (239, 1), (1, 1)]
)
def test_a_slice_fits_one_request_with_twenty_tokens_more_for_the_head_of_each_message(
    request_tokens: int | None, many: int
) -> None:
    messages = users(100, 100, 100)

    found = observation_slice(ALL, state(last_seq=3), messages, request_tokens=request_tokens)

    assert found == (tuple(messages[:many]), many < 3)


RUN = [user(), call("a", "b"), Message.tool("a", "1"), Message.tool("b", "2")]


@pytest.mark.parametrize(
    ("policy", "messages", "many", "last_seq", "cut"),
    [
        (BUDGET, users(60, 60), 1, 2, False),
        (ALL, users(100, 100, 101), 2, 3, True),
        (ALL, users(10, 400), 1, 2, True),
        (ALL, users(100, 100), 2, 2, False),
        (ALL, users(100, 100), 2, 3, True),
        (ALL, numbered([user(), call("a")]), 1, 2, False),
        (ALL, numbered([user(), call("a")]), 1, 3, True),
        (ALL, numbered([user(), call("a"), user()]), 3, 4, True),
        (OLDEST, users(90, 90, 90, 90), 3, 4, False),
        (OLDEST, users(150, 151, 1), 1, 3, True),
        (OLDEST, users(150, 150, 1), 2, 3, True),
        (OLDEST, users(90, 90, 90), 3, 9, False),
        (OLDEST, users(90, 90), 2, 9, True),
        (OLDEST, numbered(RUN, 10, 200, 200, 200), 1, 4, False),
        (ALL, numbered(RUN, 10, 200, 200, 200), 1, 4, True),
    ],
)
def test_a_slice_is_cut_where_tokens_end_it_before_the_messages_that_the_policy_asks_for(
    policy: Policy, messages: list[Message], many: int, last_seq: int, *, cut: bool
) -> None:
    found = observation_slice(policy, state(last_seq=last_seq), messages)

    assert found == (tuple(messages[:many]), cut)


@settings(max_examples=40)
@given(runs=st.lists(st.integers(0, 4), min_size=1, max_size=12), everything=st.booleans())
async def test_a_slice_of_so_many_messages_is_the_same_though_no_more_are_read(
    runs: list[int], everything: bool
) -> None:
    tape: list[Message] = []
    for number, results in enumerate(runs):
        ids = [f"{number}-{place}" for place in range(results)]
        tape += [call(*ids, text="I look."), *(Message.tool(id_, "1") for id_ in ids)]
    store = await open_store("sqlite:///:memory:")
    counted = [message.replace(tokens=10) for message in tape]
    appended = await store.append(REF, counted, user=None)

    taken = await due_slices(
        store, OLDEST, appended.state, 1, request_tokens=None, everything=everything
    )
    whole = observation_slice(OLDEST, appended.state, appended.messages, everything=everything)
    await store.close()

    assert taken == ((whole.messages,) if whole.messages else ())


async def test_a_slice_of_so_many_messages_reads_no_more_of_a_long_tape() -> None:
    store = Reads(await open_store("sqlite:///:memory:"))
    appended = await store.append(REF, [user().replace(tokens=1)] * 200, user=None)

    await due_slices(store, OLDEST, appended.state, 1, request_tokens=None, everything=False)
    await store.close()

    assert store.read == [OLDEST.observe_slice_messages + 1]


class Reads(FaultyStore):
    """A store that counts the messages of each read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read: list[int] = []

    async def messages(
        self, ref: ConversationRef, *, after: int, limit: int | None, max_tokens: int | None = None
    ) -> tuple[Message, ...]:
        found = await super().messages(ref, after=after, limit=limit, max_tokens=max_tokens)
        self.read.append(len(found))
        return found


# After failures


def failure(**changes: Any) -> Failure:
    fields: dict[str, Any] = {
        "step": "observe",
        "reason": "empty",
        "message": "nothing",
        "at": NOW,
        "next_attempt_at": NOW,
        "failures": 5,
        "last_seq": 9,
        "rejections": 3,
        "made_by": "a",
    }
    return Failure(**fields | changes)


@pytest.mark.parametrize(
    ("failed", "observer", "rejections", "halvings"),
    [
        (None, "a", 0, 0),
        (failure(), "a", 3, 3),
        (failure(), "b", 0, 0),
        (failure(made_by=""), "b", 3, 3),
        (failure(timeouts=2), "a", 3, 5),
        (failure(reason="deferred", rejections=0, timeouts=2), "a", 0, 2),
    ],
)
def test_a_slice_is_halved_for_each_rejection_of_its_observer_and_each_time_it_took_too_long(
    failed: Failure | None, observer: str, rejections: int, halvings: int
) -> None:
    found = failure_by(state(observe_failure=failed), "observe", observer)

    assert ((found.rejections, found.halvings) if found else (0, 0)) == (rejections, halvings)


@pytest.mark.parametrize(("times", "many"), [(0, 9), (1, 4), (2, 2), (3, 1), (4, 1), (60, 1)])
def test_halving_ends_with_one_message(times: int, many: int) -> None:
    assert len(halve(users(*[10] * 9), times)) == many


def test_halving_keeps_a_call_with_its_results_also_where_some_are_missing() -> None:
    messages = numbered([call("a", "b"), Message.tool("a", "1"), user(), call("c")])

    assert [m.seq for m in halve(messages, 0)] == [1, 2, 3, 4]
    assert [m.seq for m in halve(messages, 9)] == [1, 2]


def test_a_short_wait_is_not_lengthened_where_no_provider_asks_for_more() -> None:
    policy = Policy(retry_seconds=0.5)

    assert retry_delay(policy, 1, jitter=0.0) == timedelta(seconds=0.5)


# Activation, facts and reflections


@pytest.mark.parametrize(
    ("tail_tokens", "tail_seq", "active_seq"),
    [(119, 1, 8), (120, 1, None), (30, 9, None), (39, 8, 8)],
)
def test_raw_messages_beside_their_notes_go_once_the_tail_is_over_its_budget(
    tail_tokens: int, tail_seq: int, active_seq: int | None
) -> None:
    policy = Policy(tail_tokens=tail_tokens, tail_keep_tokens=0, keep_last=0)
    tail = tuple(users(*[10] * 12)[tail_seq - 1 :])
    now = state(
        last_seq=12,
        observed_seq=8,
        active_seq=8,
        tail_seq=tail_seq,
        last_sum_tokens=120,
        tail_sum_tokens=120 - 10 * len(tail),
    )

    found = activation(policy, Snapshot(state=now, segments=(), tail=tail), now=NOW)

    assert found == active_seq
    assert activation(policy, Snapshot(state=now, segments=(), tail=()), now=NOW) is None


def test_facts_are_of_what_was_reflected_unless_everything_is_asked_for() -> None:
    now = state(observed_seq=8, reflected_seq=4)

    assert facts_end(Policy(), now) == 4
    assert facts_end(Policy(), now, everything=True) == 8


def segment(**changes: object) -> Segment:
    return observation(1, 1, **changes)


def test_a_reflection_has_the_budget_of_the_generation_that_it_is_of() -> None:
    policy = Policy(reflect_tokens=(1_000, 2_000, 9_000), reflect_ratio=0.5)
    notes = [segment(tokens=9_000, generation=0)]

    assert plan_reflection(policy, notes).target_tokens == 1_500
    assert plan_reflection(policy, notes).limit_tokens == 2_000


def test_notes_below_the_top_generation_are_condensed_unless_the_conversation_ends() -> None:
    policy = Policy(reflect_tokens=(1_000, 8_000), reflect_ratio=0.5)
    notes = [segment(tokens=1_000, generation=1), segment(tokens=1_000, generation=0)]

    assert plan_reflection(policy, notes).target_tokens == 1_000
    assert plan_reflection(policy, notes, final=True).target_tokens == 2_000
    assert plan_reflection(policy, notes[:1]).target_tokens == 1_000


class _Tape(list[Message]):
    """Messages that know the threads in which they were read one after the other."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(messages)
        self.threads: set[int] = set()

    def __iter__(self) -> Iterator[Message]:
        self.threads.add(threading.get_ident())
        return super().__iter__()

    async def messages(self, *_: object, **__: object) -> Sequence[Message]:
        return self


async def test_a_slice_is_chosen_beside_the_event_loop() -> None:
    tape: Any = _Tape(numbered([user(), user()]))
    now = replace(state(last_seq=2), last_sum_tokens=20)
    slices = await due_slices(tape, ALL, now, 1, request_tokens=None, everything=True)

    assert [len(messages) for messages in slices] == [2]
    assert tape.threads
    assert threading.get_ident() not in tape.threads
