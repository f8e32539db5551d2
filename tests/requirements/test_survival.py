"""REQUIREMENTS 6: what must survive every layer, what can be undone, and who is asked instead."""

import asyncio
import itertools
from pathlib import Path

import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    SMALL,
    noting,
    ranges,
    system_text,
    tool_turn,
    turns,
)

from remanence import Memory, Message, Policy
from remanence.archive.blocks import BlockStore
from remanence.context.layout import PREAMBLE
from remanence.errors import ModelError
from remanence.observers.llm import ModelObserver, ModelReflector
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector, check_coverage
from remanence.testing.models import ScriptedModel
from remanence.types import ImagePart

REJECTED = "rejected Kafka because nobody runs it at night"
STEERED = "wants metric units, not the inches that the assistant used"


LETTERS = str.maketrans("0123456789", "abcdefghij")


def words(start: int, count: int = 20) -> str:
    """Words that no other start has, none of which is a value."""
    return " ".join(f"w{start * 100 + n}x".translate(LETTERS) for n in range(count))


@pytest.mark.req("X-05")
async def test_images_count_by_their_size_for_the_trigger() -> None:
    observer = ScriptedObserver()
    image = ImagePart(url="https://example.org/a.png", width=1_000, height=1_000)
    async with Memory.open(
        IN_MEMORY, policy=SMALL.replace(observe_tokens=1_200), observer=observer
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Look at this"))
        state = await chat.flush()
        assert observer.requests == []
        await chat.append(
            Message(role="user", content=(image,)), Message.assistant("A boat."), Message.user("?")
        )
        pictured = await chat.flush()

    assert pictured.last_sum_tokens - state.last_sum_tokens >= 1_200
    assert [m.seq for m in observer.requests[0].messages][:2] == [1, 2]


@pytest.mark.req("X-09")
@pytest.mark.parametrize(
    "policy",
    [Policy(), Policy.lango(enabled=True), Policy.zora(), Policy.brain()],
    ids=["default", "lango", "zora", "brain"],
)
async def test_a_first_turn_in_a_file_that_another_process_made_has_all_of_the_history(
    policy: Policy, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Memory.open(url, policy=policy, observer=ScriptedObserver()) as memory:
        await memory.conversation("a").append(Message.user("look"), *tool_turn(1, "r" * 900))
    async with Memory.open(
        url, policy=policy, observer=ScriptedObserver(), clock=FixedClock(prefix="b")
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("And now?"))
        context = await chat.context()
        fresh = await memory.conversation("b").context(system="You help.")

    assert [message.seq for message in context.messages] == [1, 2, 3, 4]
    assert "r" * 900 in str(context.to_anthropic())
    assert fresh.messages == ()


@pytest.mark.req("X-13")
async def test_notes_are_told_to_be_of_this_conversation_and_facts_of_past_ones() -> None:
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=ScriptedObserver()) as memory:
        await memory.facts.save("Ana keeps bees", user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(*turns(60, tokens=100, counter="flat"))
        await chat.flush()
        blocks = {block.kind: block.text for block in (await chat.context()).system}

    assert blocks["heading"].splitlines() == ["## Conversation Memory", PREAMBLE]
    assert PREAMBLE.startswith("Notes of the earlier part of this conversation")
    head, scope, _, fact = blocks["facts"].splitlines()
    assert head == "## Known from earlier conversations"
    assert "past conversations with this user" in scope
    assert "not part of this conversation" in scope
    assert fact == "- Ana keeps bees"


@pytest.mark.req("X-22")
async def test_every_request_of_observer_and_reflector_names_the_language_of_notes() -> None:
    lines = (f"[NOTE] user: {words(n, 60)}" for n in itertools.count())
    model = ScriptedModel(otherwise=lambda request: next(lines))
    async with Memory.open(
        IN_MEMORY,
        policy=SMALL.replace(reflect_tokens=(150, 500)),
        observer=ModelObserver(model, language="Korean"),
        reflector=ModelReflector(model, language="Korean"),
        clock=FixedClock(),
    ) as memory:
        chat = memory.conversation("a")
        for start in range(0, 60, 12):
            await chat.append(*turns(12, tokens=100, counter="flat", start=start))
            await chat.flush()

    assert {request.purpose for request in model.requests} >= {"observe", "reflect"}
    for request in model.requests:
        assert "in Korean." in request.prompt
        assert "in the language of the conversation" not in request.prompt


@pytest.mark.req("X-24", "X-25")
async def test_what_is_open_was_rejected_or_corrected_outlives_background_that_has_no_room() -> (
    None
):
    lasting = [
        f"#1-9 [Decision] user: {REJECTED}",
        f"#1-9 [Preference] user: {STEERED}",
        "#1-9 [NextStep] user: under way: moving the shop to Porto",
        "#1-9 [NextStep] user: next: call the carrier",
    ]

    def answer(request: ModelRequest) -> str:
        background = [f"#1-9 [NOTE] user: {words(number)}" for number in range(30)]
        return "\n".join([*background[:15], *lasting, *background[15:]])

    policy = SMALL.replace(note_ratio=0.2, reflect_tokens=(5_000, 5_000))
    async with Memory.open(
        IN_MEMORY, policy=policy, model=ScriptedModel([answer]), clock=FixedClock()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(40, tokens=100, counter="flat"))
        await chat.flush()
        segment = (await chat.observations())[0]
        text = system_text((await chat.context()).to_anthropic())

    assert len([line for line in segment.dropped if line.reason == "over_budget"]) > 10
    for line in lasting:
        assert line.partition("user: ")[2] in text


@pytest.mark.req("X-25")
async def test_a_rejected_alternative_and_a_correction_reach_the_reflector_and_its_reflection() -> (
    None
):
    def answer(request: ModelRequest) -> str:
        if request.purpose == "observe":
            extra = "\n".join(f"#1 [NOTE] user: {words(n)}" for n in range(3))
            return (
                f"#1 [CRITICAL Decision] user: {REJECTED}\n#1 [Preference] user: {STEERED}\n{extra}"
            )
        return f"#1 [Preference] user: {STEERED}"

    policy = SMALL.replace(note_ratio=0.6, reflect_tokens=(100, 500), reflect_ratio=0.5)
    model = ScriptedModel(otherwise=answer)
    async with Memory.open(IN_MEMORY, policy=policy, model=model, clock=FixedClock()) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(40, tokens=100, counter="flat"))
        await chat.flush()
        reflections = await chat.reflections()
        text = system_text((await chat.context()).to_anthropic())

    asked = next(request for request in model.requests if request.purpose == "reflect")
    assert REJECTED in asked.prompt
    assert STEERED in asked.prompt
    assert reflections
    assert REJECTED in text  # the model left it out, and it is CRITICAL
    assert STEERED in text


@pytest.mark.req("X-25")
async def test_the_embedded_observer_keeps_a_rejected_alternative_and_a_correction() -> None:
    small_talk = [
        f"Nice weather again, isn't it? We could go for a walk along the river later, number {n}."
        for n in range(30)
    ]
    said = [
        *small_talk[:10],
        "We decided against Kafka because nobody here can run it at night; we take Postgres.",
        *small_talk[10:20],
        "No, please use metric units from now on, not inches.",
        *small_talk[20:],
    ]
    policy = SMALL.replace(observe_tokens=300, tail_tokens=400, tail_keep_tokens=100)
    async with Memory.open(IN_MEMORY, policy=policy, clock=FixedClock()) as memory:
        chat = memory.conversation("a")
        for text in said:
            await chat.append(Message.user(text), Message.assistant("I see."))
            await chat.flush()
        context = await chat.context()

    shown = system_text(context.to_anthropic())
    assert "Kafka" in shown
    assert "metric" in shown


@pytest.mark.req("X-27")
async def test_notes_that_a_reflection_replaced_are_restored_from_their_backup(
    tmp_path: Path,
) -> None:
    store = BlockStore(tmp_path / "backup")
    messages = turns(8, tokens=300, counter="flat")
    notes_only = SMALL.replace(reflect_tokens=())
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Memory.open(
        url, policy=notes_only, observer=ScriptedObserver([noting(200)] * 9)
    ) as memory:
        chat = memory.conversation("a")
        for start in (0, 4):
            await chat.append(*messages[start : start + 4])
            await chat.flush(everything=True)
        before = await chat.observations()
        exported = await chat.export_blocks(store)
    async with Memory.open(
        url,
        policy=SMALL.replace(reflect_tokens=(100, 500)),
        reflector=ScriptedReflector(),
        clock=FixedClock(prefix="b"),
    ) as memory:
        await memory.conversation("a").flush()
        condensed = await memory.conversation("a").reflections()
    async with Memory.open(
        IN_MEMORY, policy=notes_only, observer=ScriptedObserver([RuntimeError("down")] * 9)
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages)
        report = await chat.import_blocks(store)
        restored = await chat.observations()
        context = await chat.context()
        state = await chat.state()

    assert condensed
    assert (exported, report.imported, report.conflicts) == (len(before), len(before), ())
    assert ranges(restored) == ranges(before)
    assert [note.text for note in restored] == [note.text for note in before]
    check_coverage(context, state, restored)


@pytest.mark.req("X-29")
async def test_while_the_first_model_cools_down_the_next_one_writes_the_notes() -> None:
    clock = FixedClock()
    lines = (f"[NOTE] user: {words(n, 30)}" for n in itertools.count())
    first = ScriptedModel(
        [ModelError("overloaded", "busy")], otherwise=lambda request: next(lines), name="first"
    )
    second = ScriptedModel(otherwise=lambda request: next(lines), name="second")
    async with Memory.open(
        IN_MEMORY,
        policy=SMALL.replace(reflect_tokens=()),
        observer=[first, second],
        model_options=ModelOptions(attempts=1, cooldown_seconds=60),
        clock=clock,
    ) as memory:
        chat = memory.conversation("a")
        asked = []
        for start, seconds in ((0, 0), (14, 59), (28, 2)):
            clock.advance(seconds)
            await chat.append(*turns(14, tokens=100, counter="flat", start=start))
            await chat.flush()
            asked.append((len(first.requests) > 0, len(first.requests), len(second.requests)))
        made_by = [segment.made_by.split()[0] for segment in await chat.observations()]

    assert [calls > 0 for _, _, calls in asked] == [True, True, True]
    assert asked[0][1] == asked[1][1] == 1
    assert asked[2][1] > 1
    assert made_by[0] == "second"
    assert made_by[-1] == "first"


@pytest.mark.req("X-29")
async def test_leaving_a_memory_waits_for_the_notes_that_are_being_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    observer = ScriptedObserver()
    async with Memory.open(url, policy=SMALL, observer=observer) as memory:
        await memory.conversation("a").append(*turns(20, tokens=100, counter="flat"))
        async with asyncio.timeout(60):
            await observer.called.wait()
    async with Memory.open(url, policy=SMALL, clock=FixedClock(prefix="b")) as memory:
        notes = await memory.conversation("a").observations()

    assert notes
