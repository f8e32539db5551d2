"""REQUIREMENTS 1.3: the brain preset does what the brain plan asks for."""

import asyncio
import functools
import itertools
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    condensing,
    draft,
    grown,
    noting,
    ranges,
    scripted,
    seqs,
    system_text,
    tool_turn,
    turns,
)

from remanence import Context, Memory, Message, Note, Policy, count_tokens
from remanence.errors import ModelError
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.testing import FixedClock, ScriptedObserver, check_coverage
from remanence.testing.invariants import cached_prefix, flatten
from remanence.testing.models import ScriptedModel
from remanence.testing.observers import ObserveAnswer
from remanence.types import Draft

conversation = functools.partial(scripted, policy=Policy.brain())
HOUR = 3_600.0


def noted(tokens: int) -> Callable[[ObserveRequest], Draft]:
    return noting(tokens, head="[Fact] ")


def condensed_to(tokens: int) -> Callable[[ReflectRequest], Draft]:
    return condensing(tokens, head="[Fact] ")


def exchange(count: int, *, tokens: int = 400, start: int = 0) -> list[Message]:
    return turns(count, tokens=tokens, counter="flat", start=start)


def kinds(context: Context) -> list[str]:
    return [block.kind for block in context.system]


@pytest.mark.req("B-27", "B-31", "C-13")
def test_the_defaults_are_those_of_the_document() -> None:
    policy = Policy.brain()

    assert policy.keep_last == 12
    assert policy.keep_last_tool_results == 6
    assert policy.observe_tokens == 30_000
    assert policy.reflect_tokens == (40_000,)
    assert policy.reflect_min_interval_seconds == 60 * 60


@pytest.mark.req("B-12")
def test_four_characters_are_a_token_rounded_up() -> None:
    counted = [count_tokens("x" * n, model="flat") for n in (0, 1, 4, 5, 8, 9)]
    assert counted == [0, 1, 1, 2, 2, 3]


@pytest.mark.req("B-13")
def test_four_characters_a_token_are_further_off_for_english_than_a_tokenizers_own_counter() -> (
    None
):
    text = (
        "The harbour office closed early on Thursday, so Ottilie left the signed papers with the "
        "night porter and took the last ferry home. She promised to call before nine, but her "
        "phone had no battery left."
    )
    known_tokens = 41  # tiktoken, o200k_base

    flat, own = (count_tokens(text, model=name) / known_tokens - 1 for name in ("flat", "o200k"))
    assert Policy.brain().token_counter == "flat"
    assert flat == pytest.approx(0.22, abs=0.01)
    assert abs(own) <= 0.15


@pytest.mark.req("B-05", "B-10", "B-14", "B-15", "B-28", "B-70")
async def test_a_first_message_makes_the_state_and_each_adds_to_the_unobserved_tokens() -> None:
    async with conversation() as (chat, _, _):
        nothing = await chat.state()
        counts = []
        for message in exchange(3):
            await chat.append(message)
            counts.append((await chat.state()).unobserved_tokens)
        state = await chat.state()
        context = await chat.context(system="You help.")

    assert (nothing.last_seq, nothing.unobserved_tokens, nothing.lock_version) == (0, 0, 0)
    assert counts == [400, 800, 1_200]
    assert (state.observed_seq, state.last_observed_at, state.last_reflected_at) == (0, None, None)
    assert seqs(context) == [1, 2, 3]


@pytest.mark.req("B-33", "B-34", "B-49")
async def test_without_messages_or_notes_no_model_is_called() -> None:
    async with conversation() as (chat, observer, reflector):
        await chat.flush(everything=True)
        await chat.append(*exchange(2))
        await chat.flush(everything=True)
        await chat.flush(everything=True)

    assert len(observer.requests) == 1
    assert reflector.requests == []


@pytest.mark.req("B-06")
async def test_opening_a_database_again_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'brain.db'}"
    async with conversation(url=url) as (chat, _, _):
        await chat.append(*exchange(3))
        before = await chat.state()
    for _ in range(2):
        async with conversation(url=url) as (chat, _, _):
            assert await chat.state() == before


@pytest.mark.req("B-25", "B-29", "B-48", "B-70")
async def test_before_the_first_observation_the_context_is_the_full_history() -> None:
    async with conversation() as (chat, observer, _):
        await chat.append(*exchange(30))
        await chat.append(Message.user("And now?"))
        context = await chat.context(system="You help.")

    assert seqs(context) == list(range(1, 32))
    assert kinds(context) == ["system"]
    assert context.messages[-1].text == "And now?"
    assert observer.requests == []


@pytest.mark.req("B-27", "B-40", "B-42", "B-71", "C-02", "C-10")
async def test_above_the_threshold_all_is_observed_and_cursor_and_counts_move() -> None:
    clock = FixedClock()
    async with conversation([noted(900)] * 3, clock=clock) as (chat, observer, _):
        await grown(chat, exchange(75))
        assert observer.requests == []
        await grown(chat, exchange(1, start=75))
        state = await chat.state()
        notes = await chat.observations()
        source = await chat.source(notes[0].id)
        context = await chat.context()

    assert state.observed_seq == state.active_seq == 76
    assert state.unobserved_tokens == 0
    assert state.last_observed_at == clock.now()
    assert [note.tokens for note in notes] == [900]
    assert (source[0].seq, source[-1].seq) == (1, 76)
    assert (source[0].id, source[-1].id) != (None, None)
    assert len(context.messages) == 12
    assert "notes-of-1-to-76" in system_text(context.to_anthropic())


@pytest.mark.req("B-23", "B-24", "B-26", "X-08")
async def test_the_tail_begins_after_the_cursor_and_has_twelve_messages_at_least() -> None:
    async with conversation([noted(900)] * 3) as (chat, _, _):
        await grown(chat, exchange(76))
        at_once = await chat.context()
        await grown(chat, exchange(20, start=76))
        later = await chat.context()
        state = await chat.state()
        segments = await chat.observations()

    assert seqs(at_once) == list(range(65, 77))
    assert seqs(later) == list(range(65, 97))
    check_coverage(later, state, segments)


@pytest.mark.req("B-26", "X-08")
async def test_twelve_messages_stay_raw_also_where_they_exceed_the_budget_of_the_tail() -> None:
    policy = Policy.brain(observe_tokens=2_000, tail_tokens=2_000)
    async with conversation([noted(100)] * 20, policy=policy) as (chat, _, _):
        await grown(chat, exchange(40))
        context = await chat.context()

    assert 12 <= len(context.messages) <= 12 + 2_000 // 400
    assert sum(message.tokens for message in context.messages) > 2_000


@pytest.mark.req("B-03", "B-07", "B-41")
async def test_the_log_is_the_old_text_a_separator_and_the_new() -> None:
    async with conversation([noted(900)] * 3) as (chat, _, _):
        await grown(chat, exchange(76))
        before = (await chat.context()).to_text()
        await grown(chat, exchange(76, start=76))
        context = await chat.context()
        first, second = await chat.observations()

    log = f"{first.text}\n\n---\n\n{second.text}"
    assert first.text in before
    assert log in context.to_text()
    assert log in context.to_openai()["messages"][0]["content"]


@pytest.mark.req("B-16", "B-18", "B-19", "B-20", "B-22", "B-64", "C-18")
async def test_identity_system_and_log_come_in_order_and_the_channel_hint_after_them() -> None:
    async with conversation([noted(900)] * 3) as (chat, _, _):
        await grown(chat, exchange(77))
        context = await chat.context(
            identity="You are Claude Code.", system="You help.", channel="telegram"
        )
        web = await chat.context(system="", channel="web")

    assert kinds(context) == ["identity", "system", "heading", "observation"]
    heading = context.system[2].text.splitlines()[0]
    assert heading == "## Conversation Context (Observations)"
    assert "telegram" in context.volatile
    assert "telegram" not in system_text(context.to_anthropic())
    assert kinds(web) == ["heading", "observation"]
    assert "web" not in web.volatile


@pytest.mark.req("B-63", "B-65", "B-66", "X-11")
async def test_the_breakpoint_is_on_the_log_or_else_on_the_system_prompt() -> None:
    async with conversation([noted(900)] * 3) as (chat, _, _):
        await chat.append(*exchange(2))
        without = (await chat.context(system="You help.")).to_anthropic()["system"]
        await grown(chat, exchange(76, start=2))
        await chat.append(Message.user("Which one?"))
        context = await chat.context(system="You help.", recall="What was 14?")
        blocks = context.to_anthropic()["system"]

    assert [block.get("cache_control") for block in without] == [{"type": "ephemeral"}]
    assert blocks[-1]["cache_control"] == {"type": "ephemeral"}
    assert "notes-of" in blocks[-1]["text"]
    assert "Retrieved memories" in context.volatile
    assert not any("Retrieved memories" in piece for piece in cached_prefix(context))


@pytest.mark.req("B-17", "B-61")
async def test_when_both_are_due_the_observer_runs_before_the_reflector() -> None:
    order: list[str] = []

    def observed(request: ObserveRequest) -> Draft:
        order.append("observe")
        return noted(500)(request)

    def reflected(request: ReflectRequest) -> Draft:
        order.append("reflect")
        return condensed_to(500)(request)

    policy = Policy.brain(reflect_tokens=(900,), reflect_min_interval_seconds=0)
    async with conversation([observed] * 9, [reflected] * 9, policy=policy) as (chat, _, _):
        await grown(chat, exchange(152))

    assert order == ["observe", "observe", "reflect"]


@pytest.mark.req("B-32", "B-46", "C-15", "X-01")
async def test_a_failed_observer_is_logged_with_its_conversation_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FixedClock()
    answers: list[ObserveAnswer] = [ModelError("overloaded", "overloaded"), noted(900)]
    with caplog.at_level(logging.WARNING, logger="remanence"):
        async with conversation(answers, clock=clock) as (chat, _, _):
            await grown(chat, exchange(76))
            failed = await chat.state()
            tail = await chat.context()
            clock.advance(HOUR)
            state = await chat.flush()

    assert (failed.observed_seq, failed.unobserved_tokens) == (0, 76 * 400)
    assert len(tail.messages) == 76
    assert state.observed_seq == 76
    assert any("session-1" in r.message and "overloaded" in r.message for r in caplog.records)


@pytest.mark.req("B-39")
async def test_an_empty_answer_writes_nothing_and_moves_no_cursor() -> None:
    async with conversation([draft()]) as (chat, _, _):
        await grown(chat, exchange(76))
        state = await chat.state()
        assert await chat.observations() == ()

    assert state.observed_seq == 0
    assert state.unobserved_tokens == 76 * 400


@pytest.mark.req("B-53", "X-06")
async def test_an_empty_reflection_leaves_the_log_as_it_is() -> None:
    policy = Policy.brain(reflect_tokens=(900,))
    async with conversation([noted(500)] * 9, [draft()], policy=policy) as (chat, _, reflector):
        await grown(chat, exchange(152))
        assert len(reflector.requests) == 1
        assert len(await chat.observations()) == 2
        assert await chat.reflections() == ()


@pytest.mark.req("B-50", "B-62", "C-03")
async def test_an_hour_passes_between_two_reflections() -> None:
    clock = FixedClock()
    policy = Policy.brain(reflect_tokens=(900,))
    condensed = [condensed_to(450)] * 9
    async with conversation([noted(500)] * 9, condensed, policy=policy, clock=clock) as (
        chat,
        _,
        reflector,
    ):
        await grown(chat, exchange(152))
        assert len(reflector.requests) == 1
        clock.advance(HOUR - 60)
        await grown(chat, exchange(76, start=152))
        assert len(reflector.requests) == 1
        clock.advance(120)
        await chat.flush()
        assert len(reflector.requests) == 2


@pytest.mark.req("B-27", "B-62", "C-03")
async def test_forty_thousand_tokens_of_log_are_not_reflected_and_more_are() -> None:
    big = Policy.brain(note_ratio=0.7, observe_max_tokens=40_000)
    async with conversation([noted(20_000)] * 2, policy=big) as (chat, _, reflector):
        await grown(chat, exchange(152))
        assert sum(note.tokens for note in await chat.observations()) == 40_000
        assert reflector.requests == []
    answers = [noted(20_000), noted(20_001)]
    async with conversation(answers, [condensed_to(20_000)], policy=big) as (chat, _, reflector):
        await grown(chat, exchange(152))
        assert len(reflector.requests) == 1


@pytest.mark.req("B-54", "B-55", "B-59", "B-60", "B-72", "C-06", "C-08", "C-09")
async def test_a_condensed_log_is_a_new_version_and_the_older_one_stays_in_the_log() -> None:
    clock = FixedClock()
    policy = Policy.brain(reflect_tokens=(900,))
    condensed = [condensed_to(500)]
    async with conversation([noted(500)] * 2, condensed, policy=policy, clock=clock) as (
        chat,
        _,
        reflector,
    ):
        await grown(chat, exchange(152))
        state = await chat.state()
        reflection = (await chat.reflections())[0]
        sources = [await chat.source(s.id) for s in reflector.requests[0].segments]
        entries = [entry for entry in await chat.log() if entry.kind == "reflected"]

    assert reflector.requests[0].target_tokens == int(1_000 * 0.6)
    assert (reflection.first_seq, reflection.last_seq, reflection.tokens) == (1, 152, 500)
    assert [len(messages) for messages in sources] == [76, 76]
    assert state.last_reflected_at == clock.now()
    assert [entry.version for entry in entries] == [reflection.version]
    assert reflection.version > reflector.requests[0].segments[-1].version
    assert "2 segments" in entries[0].detail


@pytest.mark.req("B-35", "B-44", "B-45", "B-52", "B-56", "B-57", "B-58", "X-16")
async def test_the_models_are_asked_for_what_the_document_lists() -> None:
    words = " ".join(f"word{n}" for n in range(150))
    lines = (f"[NOTE Decision] user: {n} {words}" for n in itertools.count())
    model = ScriptedModel(otherwise=lambda request: next(lines))
    policy = Policy.brain(observe_tokens=3_000, tail_tokens=3_000, reflect_tokens=(300,))
    async with Memory.open(IN_MEMORY, policy=policy, model=model, clock=FixedClock()) as memory:
        chat = memory.conversation("c-1")
        for number in range(24):
            text = f"{number} " + " ".join(f"word{n}" for n in range(150))
            await chat.append(Message.user(text), Message.assistant(f"Noted {text}"))
            await chat.flush()

    observing = next(r for r in model.requests if r.purpose == "observe")
    reflecting = next(r for r in model.requests if r.purpose == "reflect")
    assert "Mon 2026-03-02 09:00 UTC\n#1 user: 0 word0" in observing.prompt
    assert "\n#2 assistant: Noted 0" in observing.prompt
    for piece in (
        "Decision, Preference, Issue (a problem or an open question), NextStep, or Outcome",
        "one or two sentences",
        "small talk",
        "decisions with their reasons",
    ):
        assert piece in " ".join(observing.stable.split())
    for piece in (
        "the later one holds",
        "drop trivial facts",
        "open",
        "constraints",
        "preferences",
    ):
        assert piece in reflecting.stable
    assert " tokens" in reflecting.prompt
    assert "[NOTE Decision]" in reflecting.prompt


@pytest.mark.req("B-44", "C-12")
async def test_lines_of_the_log_begin_with_their_tag() -> None:
    note = Note(text="rent the flat at Rua Augusta", first_seq=1, last_seq=1, tag="Decision")
    decision = Draft(notes=(note,), made_by="scripted/1")
    async with conversation([decision]) as (chat, _, _):
        await grown(chat, exchange(76))
        assert (await chat.observations())[0].text == "[Decision] rent the flat at Rua Augusta"


@pytest.mark.req("B-31", "C-25")
async def test_of_tool_results_that_notes_cover_the_newest_six_stay_whole() -> None:
    async with conversation([noted(900)] * 3, policy=Policy.brain(keep_last=20)) as (chat, _, _):
        await grown(chat, exchange(60, tokens=490))
        results = [tool_turn(number, f"result {number} " + "r" * 1_000) for number in range(9)]
        await chat.append(*(message for turn in results for message in turn))
        await chat.flush()
        observed = await chat.state()
        context = await chat.context()
        await chat.append(*tool_turn(9, "result 9 " + "r" * 1_000))
        later = await chat.context()

    lengths = [len(result.text) for m in context.messages for result in m.tool_results]
    assert observed.observed_seq >= 60
    assert [length > 1_000 for length in lengths] == [False] * (len(lengths) - 6) + [True] * 6
    assert len(lengths) > 6
    assert {gap.reason for gap in context.omitted} == {"excerpt"}
    assert flatten(later)[: len(flatten(context)) - 1] == flatten(context)[:-1]


@pytest.mark.req("B-77")
async def test_the_observer_is_asked_every_eight_turns_and_writes_a_thousand_tokens_a_turn_at_most() -> (
    None
):
    turns_at: list[int] = []
    async with conversation([noted(900)] * 9) as (chat, observer, _):
        for number in range(34):
            # A turn of 3,750 tokens, an eighth of the threshold.
            await chat.append(*exchange(2, tokens=1_875, start=2 * number))
            await chat.flush()
            turns_at += [number + 1] * (len(observer.requests) - len(turns_at))

    assert turns_at == [9, 18, 27]
    for request in observer.requests:
        assert sum(message.tokens for message in request.messages) == 9 * 3_750
        assert request.target_tokens / 9 <= 1_000


@pytest.mark.req("B-75", "B-76", "B-77", "B-78")
async def test_notes_and_the_cache_save_three_quarters_of_the_input_and_more_as_it_grows() -> None:
    policy = Policy.brain(observe_tokens=6_000, tail_tokens=6_000, observe_max_tokens=8_000)
    savings: list[float] = []
    before: list[str] = []
    async with conversation([noted(1_000)] * 40, policy=policy) as (chat, observer, _):
        for number in range(80):
            await chat.append(*exchange(2, tokens=375, start=2 * number))
            await chat.flush()
            context = await chat.context(system="s" * 8_000)
            pieces = flatten(context)
            cached = sum(len(new) for new, old in zip(pieces, before, strict=False) if new == old)
            cost = sum(map(len, pieces)) - 0.9 * cached
            history = 8_000 + 4 * context.stats.history_tokens
            savings.append(1 - cost / history)
            before = pieces
        calls = len(observer.requests)
        read = sum(m.tokens for request in observer.requests for m in request.messages)

    assert sum(savings[39:60]) / 21 >= 0.75
    assert sum(savings[60:]) / 20 > sum(savings[39:60]) / 21
    assert calls <= 80 / 8 + 1
    assert read <= 160 * 375


@pytest.mark.req("B-69")
async def test_the_first_part_works_without_the_later_ones() -> None:
    policy = Policy.brain(reflect_tokens=())
    async with Memory.open(IN_MEMORY, policy=policy) as memory:
        chat = memory.conversation("a")
        written = exchange(3)
        await chat.append(*written)
        await chat.flush()
        request = (await chat.context(system="You help.")).to_openai()

    assert [message["content"] for message in request["messages"]] == [
        "You help.",
        *(message.text for message in written),
    ]


@pytest.mark.req("B-04", "B-08", "B-09")
async def test_observations_and_reflections_are_listed_with_their_counts() -> None:
    policy = Policy.brain(reflect_tokens=(900,))
    async with conversation([noted(500)] * 3, [condensed_to(400)], policy=policy) as (chat, _, _):
        await grown(chat, exchange(228))
        assert ranges(await chat.reflections()) == [(1, 152)]
        assert ranges(await chat.observations()) == [(153, 228)]
        assert [s.tokens for s in await chat.reflections()] == [400]


@pytest.mark.req("B-11", "B-43", "B-47", "C-19")
async def test_of_two_observers_one_commits_and_the_other_finds_nothing_left(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'brain.db'}"
    gate = asyncio.Event()
    slow, fast = ScriptedObserver([noted(900)], gate=gate), ScriptedObserver([noted(800)])
    clock = FixedClock()
    late = FixedClock(prefix="b")
    late.advance(2 * HOUR)
    policy = Policy.brain()
    async with Memory.open(url, policy=policy, observer=slow, clock=clock) as one:
        await one.conversation("c").append(*exchange(76))
        async with asyncio.timeout(60):
            await slow.called.wait()  # it has the lease: only now may another one open
        async with Memory.open(url, policy=policy, observer=fast, clock=late) as other:
            await other.conversation("c").flush()
        gate.set()
        await one.conversation("c").flush()
        notes = await one.conversation("c").observations()
        state = await one.conversation("c").state()

    assert [note.tokens for note in notes] == [800]
    assert state.observed_seq == 76
    assert state.unobserved_tokens == 0
