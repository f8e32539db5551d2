"""REQUIREMENTS 1.1: how much the notes of the lango preset cover, and what they leave raw."""

import asyncio
import dataclasses
import json
from datetime import timedelta
from pathlib import Path

import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    condensing,
    grown,
    noting,
    ranges,
    scripted,
    seqs,
    tool_turn,
    turns,
)

from remanence import Memory, Message, Policy, Settings
from remanence.observers.llm.prompt import prompt
from remanence.protocols import ReflectRequest
from remanence.server.app import create_app
from remanence.stores import open_store
from remanence.testing import FixedClock, ScriptedObserver
from remanence.testing.models import ScriptedModel
from remanence.testing.store_contract.samples import observation
from remanence.types import Draft, Segment

LANGO = Policy.lango(enabled=True)


@pytest.mark.req("L-02", "L-06", "L-31")
async def test_one_note_covers_all_messages_that_wait_however_many_times_the_threshold() -> None:
    gate = asyncio.Event()
    async with scripted([noting(60)] * 3, policy=LANGO, gate=gate) as (chat, observer, _):
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        async with asyncio.timeout(60):
            await observer.called.wait()
        await chat.append(*turns(60, tokens=110, counter="cjk", start=10))
        gate.set()
        await chat.flush()
        notes = await chat.observations()

    assert ranges(notes) == [(1, 10), (11, 70)]
    assert [len(request.messages) for request in observer.requests] == [10, 60]


@pytest.mark.req("L-16")
async def test_a_reflection_is_made_of_all_notes_however_large_they_are() -> None:
    sizes = (300, 400, 500, 700, 600)
    answers = [noting(size) for size in sizes]
    async with scripted(answers, [condensing(300)], policy=LANGO) as (chat, _, reflector):
        await grown(chat, turns(50, tokens=110, counter="cjk"))
        reflections = await chat.reflections()

    [request] = reflector.requests
    assert [segment.tokens for segment in request.segments] == list(sizes)
    assert [(r.first_seq, r.last_seq, r.tokens) for r in reflections] == [(1, 50, 300)]


@pytest.mark.req("L-18")
async def test_a_note_that_comes_while_a_reflection_is_made_survives_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lango.db'}"

    class Reflector:
        """Condenses its segments while another process commits an observation."""

        async def reflect(self, request: ReflectRequest) -> Draft:
            store = await open_store(url)
            messages = turns(10, tokens=110, counter="cjk", start=50)
            await store.append(request.conversation, messages, user=None)
            state = await store.state(request.conversation)
            assert state is not None
            assert await store.commit_observation(state, meanwhile(51, 60))
            await store.close()
            return condensing(300)(request)

    observer = ScriptedObserver([noting(500)] * 5)
    async with Memory.open(
        url, policy=LANGO, observer=observer, reflector=Reflector(), clock=FixedClock()
    ) as memory:
        chat = memory.conversation("session-1")
        await grown(chat, turns(50, tokens=110, counter="cjk"))
        reflections, left = await chat.reflections(), await chat.observations()
        source = await chat.source("obs_meanwhile")

    assert ranges(reflections) == [(1, 50)]
    assert [note.id for note in left] == ["obs_meanwhile"]
    assert [message.seq for message in source] == list(range(51, 61))


def meanwhile(first_seq: int, last_seq: int) -> Segment:
    later = FixedClock().now() + timedelta(hours=1)
    return observation(
        first_seq, last_seq, id="obs_meanwhile", text="came meanwhile", created_at=later
    )


@pytest.mark.req("L-66")
@pytest.mark.parametrize(("exchange_tokens", "exchanges"), [(104, 10), (140, 7.5), (220, 5)])
async def test_an_observation_is_made_every_five_to_ten_exchanges(
    exchange_tokens: int, exchanges: float
) -> None:
    async with scripted([noting(60)] * 9, policy=LANGO) as (chat, observer, _):
        await grown(chat, turns(41, tokens=exchange_tokens // 2, counter="cjk"))

    assert observer.requests
    assert {len(request.messages) / 2 for request in observer.requests} == {exchanges}


@pytest.mark.req("L-65")
async def test_verbose_tool_results_and_old_messages_cost_a_fraction_once_they_are_notes() -> None:
    policy = LANGO.replace(tail_tokens=2_000, tail_keep_tokens=500)
    async with Memory.open(IN_MEMORY, policy=policy) as memory:
        chat = memory.conversation("a")
        for number in range(12):
            rows = "\n".join(f"row {n} | lamp-{n} | paid | {number}.{n:02} s" for n in range(120))
            await chat.append(
                Message.user(f"Are all rows of table {number} paid?"),
                *tool_turn(number, rows),
                Message.assistant(f"Yes, all 120 rows of table {number} are paid."),
            )
            await chat.flush()
        context = await chat.context()
        segments = (await chat.snapshot()).segments
        raw = sum(message.tokens for message in await chat.messages())

    source_tokens = sum(segment.source_tokens for segment in segments)
    assert source_tokens > 0.8 * raw
    assert sum(segment.tokens for segment in segments) <= source_tokens / 4
    assert context.stats.context_tokens < raw / 3


@pytest.mark.req("L-61")
@pytest.mark.parametrize("budget", [2_000, 8_000])
async def test_the_tail_is_the_newest_messages_and_fills_three_quarters_of_its_budget_or_more(
    budget: int,
) -> None:
    policy = LANGO.replace(tail_tokens=budget, tail_keep_tokens=budget * 3 // 4)
    sizes: list[int] = []
    async with scripted([noting(60)] * 60, [condensing(300)] * 9, policy=policy) as (chat, _, _):
        for number in range(budget * 2 // 110):
            await grown(chat, turns(1, tokens=110, counter="cjk", start=number))
            context = await chat.context()
            assert seqs(context)[-1] == number + 1
            assert seqs(context) == list(range(seqs(context)[0], number + 2))
            if seqs(context)[0] > 1:
                sizes.append(context.stats.working_tokens)

    assert budget * 3 // 4 <= min(sizes)
    assert max(sizes) <= budget


@pytest.mark.req("B-57", "L-10", "L-14", "X-24", "X-25")
async def test_observer_and_reflector_ask_the_main_model_by_the_packages_own_prompts() -> None:
    line = "#1-10 [NOTE Fact] " + " ".join(f"word{n}" for n in range(120))
    main = ScriptedModel(otherwise=line)
    policy = LANGO.replace(reflect_tokens=(150, 150))
    async with Memory.open(IN_MEMORY, policy=policy, model=main) as memory:
        chat = memory.conversation("a")
        for number in range(12):
            await chat.append(Message.user(" ".join(f"word{n}" for n in range(150)) + f" {number}"))
            await chat.flush()

    assert {(request.purpose, request.stable) for request in main.requests} >= {
        ("observe", prompt("observe")),
        ("reflect", prompt("reflect")),
    }


@pytest.mark.req("L-42")
async def test_switched_off_no_model_is_opened_and_no_work_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    off = Settings(url=IN_MEMORY, preset="lango", model="anthropic:claude-haiku-4-5")
    async with Memory.open(settings=off) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(*turns(40, tokens=110, counter="cjk"))
        state = await chat.flush(everything=True)
        log = await chat.log()
        facts = await memory.facts.list(user="ana")

    assert (state.last_seq, state.observed_seq, state.active_seq) == (40, 0, 0)
    assert {entry.kind for entry in log} <= {"appended"}
    assert facts == ()


@pytest.mark.req("L-N3")
async def test_no_setting_and_no_request_of_the_service_changes_the_observers_prompt() -> None:
    model = ScriptedModel()
    async with Memory.open(IN_MEMORY, policy=LANGO, model=model) as memory:
        app = create_app(memory)
        await memory.conversation("a").append(*turns(10, tokens=110, counter="cjk"))
        await memory.conversation("a").flush()
    taken = {field.name for kind in (Settings, Policy) for field in dataclasses.fields(kind)}
    schemas = json.loads(json.dumps(app.openapi()))["components"]["schemas"]
    taken |= {name for schema in schemas.values() for name in schema.get("properties", {})}

    assert {request.stable for request in model.requests} == {prompt("observe")}
    assert not [name for name in taken if "prompt" in name.casefold()]
