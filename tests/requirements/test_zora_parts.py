"""REQUIREMENTS 1.2: the components of the zora preset, and where the host plugs in."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.requirements.samples import IN_MEMORY, condensing, noting, scripted, turns

from remanence import Memory, Message, Policy, Settings, count_tokens
from remanence.protocols import ModelRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.models import ScriptedModel
from remanence.tokens import counter_for

SMALL = Policy.zora(
    tail_tokens=3_000, observe_tokens=3_000, tail_keep_tokens=2_000, reflect_tokens=(300,)
)


def events(count: int, *, tokens: int = 350, start: int = 0) -> list[Message]:
    return turns(count, tokens=tokens, counter="split", start=start)


@pytest.mark.req("Z-14", "Z-28")
async def test_store_observer_and_reflector_are_those_that_are_given_and_counting_is_zoras(
    tmp_path: Path,
) -> None:
    file = tmp_path / "zora.db"
    observer = ScriptedObserver([noting(200)] * 9)
    reflector = ScriptedReflector([condensing(100)] * 9)
    async with Memory.open(
        f"sqlite:///{file}", policy=SMALL, observer=observer, reflector=reflector
    ) as memory:
        chat = memory.conversation("a")
        for message in events(70):
            await chat.append(message)
            await chat.flush()
        messages = await chat.messages()
        segments = (await chat.snapshot()).segments

    assert [message.tokens for message in messages] == [350] * 70
    assert observer.requests
    assert reflector.requests
    assert {segment.made_by for segment in segments} == {"scripted/1"}
    assert {segment.generation > 0 for segment in segments} == {True, False}
    assert [s.tokens for s in segments] == [count_tokens(s.text, model="split") for s in segments]
    assert b"gist-of-1-to-" in content(file)


def content(file: Path) -> bytes:
    return file.read_bytes()


@pytest.mark.req("Z-28")
async def test_a_function_can_be_what_compresses() -> None:
    asked: list[str] = []

    async def compress(request: ModelRequest) -> str:
        asked.append(request.purpose)
        return "\n".join(f"[IMPORTANT Fact] user: room {len(asked)}{n} is taken" for n in range(9))

    policy = SMALL.replace(reflect_tokens=(100,))
    async with Memory.open(IN_MEMORY, policy=policy, model=compress) as memory:
        chat = memory.conversation("a")
        for number in range(70):
            await chat.append(Message.user(f"{number} " + "hello there my friend " * 40))
            await chat.flush()
        segments = (await chat.snapshot()).segments

    assert {"observe", "reflect"} <= set(asked)
    assert all("is taken" in segment.text for segment in segments)


@pytest.mark.req("Z-15")
async def test_settings_name_the_preset_and_a_session_runs_by_append_context_and_end() -> None:
    settings = Settings(url=IN_MEMORY, preset="zora", policy={"facts_tokens": 1_000})
    reflector = ScriptedReflector([condensing(40)])
    async with Memory.open(
        settings=settings, observer=ScriptedObserver([noting(50)] * 3), reflector=reflector
    ) as memory:
        chat = memory.conversation("task")
        await chat.append(*events(6))
        context = await chat.context(identity="You are Zora.")
        state = await chat.end()
        rolled_up = await chat.reflections()

    assert memory.policy == chat.policy == Policy.zora(facts_tokens=1_000)
    assert [block.kind for block in context.system] == ["identity"]
    assert [message.seq for message in context.messages] == [1, 2, 3, 4, 5, 6]
    assert (state.observed_seq, state.reflected_seq) == (6, 6)
    assert [(r.first_seq, r.last_seq) for r in rolled_up] == [(1, 6)]


@pytest.mark.req("Z-09")
async def test_the_model_of_the_observer_compresses_in_the_background_and_not_the_agents() -> None:
    gate = asyncio.Event()
    line = "#1-20 [IMPORTANT Fact] user: all of it in short"
    cheap = ScriptedModel(otherwise=line, name="cheap", gate=gate)
    agents = ScriptedModel(otherwise=line, name="agents")
    async with Memory.open(IN_MEMORY, policy=SMALL, model=agents, observer=cheap) as memory:
        chat = memory.conversation("a")
        await chat.append(*events(12))
        async with asyncio.timeout(60):
            await cheap.called.wait()
        await chat.append(*events(2, start=12))
        meanwhile = await chat.context()
        gate.set()
        await chat.flush()
        notes = await chat.observations()

    assert len(meanwhile.messages) == 14
    assert {request.purpose for request in cheap.requests} == {"observe"}
    assert "observe" not in {request.purpose for request in agents.requests}
    assert all(note.made_by.startswith("cheap ") for note in notes)
    assert notes


@pytest.mark.req("Z-64")
async def test_without_a_model_notes_are_made_by_the_embedded_observer_at_no_cost() -> None:
    async with Memory.open(settings=Settings(url=IN_MEMORY, preset="zora")) as memory:
        chat = memory.conversation("a")
        await chat.append(*(Message.user(f"I moved to street {n} of Lisbon.") for n in range(9)))
        await chat.flush(everything=True)
        [note] = await chat.observations()
        calls = await memory.usage()

    assert note.made_by.startswith("extractive/")
    assert calls == ()


@pytest.mark.req("Z-67")
async def test_opening_a_memory_is_all_that_background_work_needs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'zora.db'}"
    async with Memory.open(
        settings=Settings(url=url, workers=0), policy=Policy.zora(), clock=FixedClock()
    ) as memory:
        await memory.conversation("left").append(*events(70))
    async with scripted([noting(900)] * 9, policy=Policy.zora(), url=url) as (_, observer, _):
        async with asyncio.timeout(60):
            await observer.called.wait()

    assert observer.requests[0].conversation.id == "left"


@pytest.mark.req("Z-51")
async def test_a_models_note_has_the_time_of_its_message_and_the_day_that_it_speaks_of() -> None:
    line = "#1 [IMPORTANT Fact] user: signed the lease yesterday"
    at = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
    later = FixedClock(at + timedelta(days=90))
    async with Memory.open(
        IN_MEMORY, policy=SMALL, model=ScriptedModel([line]), clock=later
    ) as memory:
        chat = memory.conversation("a")
        said = Message.user("Yesterday I signed the lease.").replace(created_at=at)
        await chat.append(said, *(message.replace(created_at=at) for message in events(2)))
        await chat.flush(everything=True)
        [segment] = await chat.observations()

    [note] = segment.notes
    assert note.observed_at == at
    assert "2026-03-01" in f"{note.text} {note.referenced_at}"
    assert segment.text.startswith("[2026-03-02 09:05] IMPORTANT ")


LOADED = """
import sys
before = set(sys.modules)  # an environment may load its own at start
from remanence.tokens import counter_for
print(counter_for("split").text("x" * 35))
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - set(sys.stdlib_module_names)))
"""


@pytest.mark.req("Z-19")
def test_counting_by_zoras_rule_loads_nothing_but_the_standard_library() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True, text=True)

    assert run.stdout.splitlines() == ["10", "['remanence']"]


@pytest.mark.req("Z-19")
def test_counting_by_zoras_rule_does_as_little_for_a_long_text_as_for_a_short_one() -> None:
    """So it stays below a millisecond for every message."""

    def calls(text: str) -> int:
        made = 0

        def note(*_: object) -> None:
            nonlocal made
            made += 1

        count, before = counter_for("split").text, sys.getprofile()
        sys.setprofile(note)
        try:
            count(text)
        finally:
            sys.setprofile(before)
        return made

    assert calls("word " * 400_000) == calls("word") <= 20


@pytest.mark.req("Z-19")
async def test_every_message_is_counted_as_it_is_appended() -> None:
    result = Message.tool("c", "x" * 1_050)
    said = [Message.user("x" * 1_050), Message.assistant("y" * 35)]
    async with scripted(policy=Policy.zora()) as (chat, _, _):
        appended = await chat.append(*said)
        state = await chat.state()

    assert [message.tokens for message in appended] == [300, 10]
    assert state.last_sum_tokens == 310
    assert count_tokens(result, model="split") == 350
