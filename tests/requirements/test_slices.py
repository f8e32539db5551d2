"""What one observation covers under the presets, and what is left where it cannot cover it."""

import functools
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    draft,
    noting,
    ranges,
    scripted,
    tool_turn,
    turns,
)

from remanence import Budget, Memory, Message, Policy
from remanence.errors import ModelError
from remanence.observers.llm import ModelObserver
from remanence.protocols import ObserveRequest
from remanence.testing import FixedClock, ScriptedObserver
from remanence.testing.models import ScriptedModel
from remanence.types import Draft

LANGO = functools.partial(Policy.lango, enabled=True)
WINDOW_SHARE = 75_000
"""Three eighths of the window of the presets' model."""


@pytest.mark.req("B-71", "C-04", "L-02", "L-06")
@pytest.mark.parametrize(
    ("preset", "counter", "count"), [(LANGO, "cjk", 40), (Policy.brain, "flat", 130)]
)
async def test_one_observation_covers_all_unobserved_messages_however_many(
    preset: Callable[[], Policy], counter: str, count: int
) -> None:
    async with scripted([noting(900)], policy=preset()) as (chat, observer, _):
        await chat.append(*turns(count, tokens=400, counter=counter))
        await chat.flush()

    assert [len(request.messages) for request in observer.requests] == [count]


@pytest.mark.req("C-04", "Z-08", "Z-31")
async def test_the_oldest_twenty_messages_are_compressed_together_however_long() -> None:
    async with scripted([noting(900)] * 9, policy=Policy.zora()) as (chat, observer, _):
        await chat.append(*turns(26, tokens=1_600, counter="split"))
        await chat.flush()

    assert [message.seq for message in observer.requests[0].messages] == list(range(1, 21))


@pytest.mark.req("L-02", "L-11", "L-12")
async def test_what_accumulated_while_the_observer_was_down_becomes_one_note() -> None:
    clock = FixedClock()
    observer = ScriptedObserver([RuntimeError("down"), noting(300)])
    async with Memory.open(IN_MEMORY, policy=LANGO(), observer=observer, clock=clock) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        await chat.flush()
        await chat.append(*turns(110, tokens=110, counter="cjk", start=10))
        clock.advance(LANGO().retry_seconds * 2)
        await chat.flush()
        notes = [(note.first_seq, note.last_seq) for note in await chat.observations()]

    # A try that failed halves the next one; the rest follows as one.
    assert notes == [(1, 60), (61, 120)]


@pytest.mark.parametrize("preset", [LANGO, Policy.zora, Policy.brain])
@pytest.mark.parametrize("note_ratio", [0.05, 0.7, 1.0])
async def test_any_note_ratio_is_possible_and_each_slice_has_notes_that_fit_one_answer(
    preset: Callable[..., Policy], note_ratio: float
) -> None:
    policy = preset(note_ratio=note_ratio, token_counter="flat")
    async with scripted(policy=policy) as (chat, observer, _):
        await chat.append(*turns(100, tokens=900, counter="flat"))
        await chat.flush()

    assert observer.requests
    for request in observer.requests:
        tokens = sum(message.tokens for message in request.messages)
        assert tokens * note_ratio <= policy.max_output_tokens


@pytest.mark.parametrize(
    ("policy", "counter"),
    [(LANGO(), "cjk"), (Policy.brain(), "flat"), (Policy.zora(), "split")],
    ids=["lango", "brain", "zora"],
)
async def test_what_exceeds_the_models_window_is_observed_in_steps_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture, policy: Policy, counter: str
) -> None:
    with caplog.at_level(logging.INFO, logger="remanence"):
        async with scripted([noting(900)] * 9, policy=policy) as (chat, observer, _):
            await chat.append(*turns(24, tokens=5_000, counter=counter))
            await chat.flush(everything=True)

    sizes = [len(request.messages) for request in observer.requests]
    assert sizes[0] == WINDOW_SHARE // 5_000
    assert sum(sizes) == 24
    said = [record.getMessage() for record in caplog.records]
    cuts = [text for text in said if "more to observe than one observation can read" in text]
    assert len(cuts) == 1
    assert "'session-1'" in cuts[0]
    assert "messages 1..15" in cuts[0]


async def test_a_slice_that_is_what_the_policy_names_leaves_no_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="remanence"):
        async with scripted([noting(300)] * 9, policy=Policy.zora()) as (chat, _, _):
            await chat.append(*turns(90, tokens=400, counter="split"))
            await chat.flush()
        async with scripted([noting(300)] * 9, policy=LANGO()) as (chat, _, _):
            await chat.append(*turns(90, tokens=400, counter="cjk"))
            await chat.flush()

    assert [record for record in caplog.records if "more to observe" in record.getMessage()] == []


@pytest.mark.parametrize("budgets", [(), (Budget(scope="day", hard_usd=5.0),)])
async def test_a_model_of_a_small_window_reads_every_message_whole_and_calls_with_results(
    budgets: tuple[Budget, ...],
) -> None:
    model = ScriptedModel(otherwise="- [Fact] user: something was looked up, and it was as before")
    messages: list[Message] = []
    for number in range(12):
        question = f"{number} Please look up the opening hours of the harbour office for me. " * 4
        messages += [
            Message.user(question),
            *tool_turn(number, f"{number} open on weekdays from nine " * 20),
            Message.assistant(f"It is number {number}: open from nine. " * 4),
        ]
    async with Memory.open(
        IN_MEMORY,
        policy=LANGO(),
        observer=ModelObserver(model, max_input_tokens=4_000),
        budgets=budgets,
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages)
        state = await chat.flush(everything=True)
        covered = ranges(await chat.observations())

    asked = [request for request in model.requests if request.purpose == "observe"]
    assert state.observed_seq == len(messages)
    assert len(asked) == len(covered) >= 2
    assert not any("left out" in request.prompt for request in asked)
    for first, last in covered:
        assert not messages[first - 1].tool_results
        assert not messages[last - 1].tool_calls


@pytest.mark.req("L-12")
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "deferred in between"])
async def test_a_slice_that_took_too_long_is_halved_until_it_is_done_in_time(waits: bool) -> None:
    class Slow:
        """Takes too long for more than ten messages."""

        def __init__(self) -> None:
            self.sizes: list[int] = []
            self.waited = True

        async def observe(self, request: ObserveRequest) -> Draft:
            self.waited = not (waits and self.waited)
            if not self.waited:
                raise ModelError("deferred", "a limit", retry_after_seconds=60)
            self.sizes.append(len(request.messages))
            if len(request.messages) > 10:
                raise TimeoutError
            return draft("hours", last_seq=request.messages[-1].seq)

    clock, slow = FixedClock(), Slow()
    async with Memory.open(IN_MEMORY, policy=LANGO(), observer=slow, clock=clock) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(40, tokens=400, counter="cjk"))
        for _ in range(6 if waits else 3):
            await chat.flush()
            clock.advance(3_600)
        notes = await chat.observations()

    assert slow.sizes[:3] == [40, 20, 10]
    assert ranges(notes)[0] == (1, 10)
    assert not any(note.failed for note in notes)


async def test_a_long_run_of_calls_is_noted_in_the_zone_of_the_users_last_message() -> None:
    rome, tokyo = (timezone(timedelta(hours=hours)) for hours in (1, 9))
    policy = Policy(observe_tokens=20, tail_tokens=400, tail_keep_tokens=0, keep_last=0)
    observer, noon = ScriptedObserver(), datetime(2026, 3, 2, 12, tzinfo=UTC)
    async with Memory.open(IN_MEMORY, policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        for zone in (rome, tokyo):
            await chat.append(Message.user("Look.", created_at=noon.astimezone(zone)))
            for _ in range(60):
                await chat.append(Message.assistant("I look further.", created_at=noon))
            await chat.flush(everything=True)
    slices = [request.messages for request in observer.requests]
    alone = [m for messages in slices if messages[0].role != "user" for m in messages]

    assert len(alone) > 80
    for message in alone:
        assert message.created_at is not None
        assert message.created_at.tzinfo == (rome if message.seq <= 61 else tokyo)
