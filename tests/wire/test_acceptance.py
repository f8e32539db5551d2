"""OM-10 and LS-11, as the documents word them, on the requests that a model on a socket received."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.wire.dialects import Body
from tests.wire.reach import Wire
from tests.wire.talking import SYSTEM, chat_of, said, texts

from remanence import Conversation, Memory, Policy
from remanence.protocols import ModelRequest
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel
from remanence.tokens import counter_for

WORKING_TIER, SESSION_TIER, CROSS_SESSION_TIER = 30_000, 10_000, 5_000
MESSAGE = re.compile(r"^#(\d+) \w+:", re.MULTILINE)
ROOM = re.compile(r"room (\d+)")
STORY = "x" * 3_400


def compress(request: ModelRequest) -> str:
    """Notes of the rooms that were named, a gist of such notes, or facts."""
    if request.purpose == "facts":
        return json.dumps(fact_of(request.prompt))
    if request.purpose == "reflect":
        return "[CRITICAL Decision] Ana stays in town for good."
    numbers = MESSAGE.findall(request.prompt)
    lines = (
        f"#{numbers[0]}-{numbers[-1]} [IMPORTANT Fact] Ana sleeps in room {room}."
        for room in dict.fromkeys(ROOM.findall(request.prompt))
    )
    return "\n".join(lines) or "NOTHING"


def fact_of(prompt: str) -> list[dict[str, object]]:
    rooms = ROOM.findall(prompt)
    summary = f"Ana knows room {rooms[-1]}" if rooms else "Ana lives in Lisbon"
    return [{"summary": summary, "type": "profile", "tags": ["home"], "source": [1]}]


def question(number: int) -> str:
    return f"On day {number} I sleep in room {200 + number}. {STORY}"


@asynccontextmanager
async def remembering(
    model: ScriptedModel, policy: Policy, *, path: Path | None = None
) -> AsyncIterator[Memory]:
    url = f"sqlite:///{path or ':memory:'}"
    async with Memory.open(url, policy=policy, model=model, clock=FixedClock()) as memory:
        yield memory


def raw(body: Body) -> list[str]:
    """The texts of a request's messages, without system text and what is for this call alone."""
    return [text for text in texts({"messages": said_in(body)}) if "<memory-context>" not in text]


def system_of(body: Body) -> str:
    """The system text of a request."""
    count = len(texts(body)) - len(texts({"messages": said_in(body)}))
    return "\n\n".join(texts(body)[:count])


def said_in(body: Body) -> list[Body]:
    return [m for m in body["messages"] if m["role"] in ("user", "assistant")]


def latest(wire: Wire) -> Body:
    return wire.server.received[-1].body


async def told(conversation: Conversation, wire: Wire, *questions: str) -> list[Body]:
    """The request that the model received for each of some turns."""
    chat, bodies = chat_of(conversation, wire), []
    for text in questions:
        await said(chat, wire, text)
        bodies.append(latest(wire))
    return bodies


@pytest.mark.req("Z-01", "Z-06", "Z-74", "Z-83", "Z-84", "Z-85", "Z-86", "Z-87", "Z-88", "Z-89")
@pytest.mark.timeout(60)
async def test_om_10_a_long_session_goes_through_all_three_tiers(
    anthropic_wire: Wire, tmp_path: Path
) -> None:
    wire, gate = anthropic_wire, asyncio.Event()
    model = ScriptedModel(otherwise=compress, gate=gate)
    path, count = tmp_path / "zora.db", counter_for("split").text
    async with remembering(model, Policy.zora(), path=path) as memory:
        earlier = memory.conversation("session-0", user="ana")
        gate.set()
        await told(earlier, wire, "I live in Lisbon.")
        await earlier.end()
        gate.clear()
        model.called.clear()

        session = memory.conversation("session-1", user="ana")
        bodies: list[Body] = []
        while not model.called.is_set():
            bodies += await told(session, wire, question(len(bodies)))
        while_compressing = await told(session, wire, *map(question, range(len(bodies), 28)))
        assert (await session.state()).observed_seq == 0
        gate.set()
        await session.flush()
        bodies += while_compressing
        for number in range(28, 60):
            bodies += await told(session, wire, question(number))
            await session.flush()  # a machine may be slower than this conversation is fast
        known = set(await memory.facts.list(user="ana"))
        state = await session.end()
        items = set(await memory.facts.list(user="ana")) - known
        (before,) = await told(session, wire, "Where did I sleep on day 3?")

    async with remembering(model, Policy.zora(), path=path) as memory:
        session = memory.conversation("session-1", user="ana")
        (after,) = await told(session, wire, "And on day 4?")
        (next_one,) = await told(memory.conversation("session-2", user="ana"), wire, "Hello.")

    assert state.last_seq == 120
    assert all(sum(map(count, raw(body))) <= WORKING_TIER for body in bodies)
    assert len(while_compressing) >= 2
    assert all("Ana sleeps" not in str(body) for body in while_compressing)
    assert {fact.summary for fact in known} == {"Ana lives in Lisbon"}
    assert {fact.conversation for fact in items} == {"session-1"}
    assert "Ana knows room 259" in {fact.summary for fact in items}
    check_tiers(bodies[-1], note="IMPORTANT Ana sleeps in room 203.")
    check_tiers(after, note="CRITICAL Ana stays in town for good.")
    assert system_of(after) == system_of(before)
    assert raw(after)[: len(raw(before))] == raw(before)
    assert "Ana knows room 259" in system_of(next_one)


def check_tiers(body: Body, *, note: str) -> None:
    """Cross-session facts, session notes and raw messages, in this order and in their budgets."""
    count = counter_for("split").text
    before, heading, notes = system_of(body).partition("## Earlier in This Session")
    base, _, facts = before.partition("## Known from earlier conversations")
    assert base.strip() == SYSTEM
    assert "Ana lives in Lisbon" in facts
    assert note in notes
    assert 0 < count(facts) <= CROSS_SESSION_TIER
    assert 0 < count(heading + notes) <= SESSION_TIER
    assert question(3) not in raw(body)
    assert question(59) in raw(body)


LANGO = Policy.lango(enabled=True, show_clock=False)
TURN_TOKENS = 1_050
"""Tokens of a turn of these tests: each is observed once it is over."""


def long_question(number: int) -> str:
    return f"I sleep in room {200 + number}. ".ljust(4 * TURN_TOKENS, "x")


def lango_notes(request: ModelRequest) -> str:
    """A note that is as long as a fifth of its turn; one line for all such notes."""
    if request.purpose == "reflect":
        return "[Fact] All of it in one line."
    room = max(ROOM.findall(request.prompt))
    return f"[Fact] Ana sleeps in room {room}, and says so at length: ".ljust(707, "y")


@pytest.mark.req("L-24", "LS-11")
async def test_ls_11_a_turns_trigger_an_observation_that_the_next_request_contains(
    whole_wire: Wire,
) -> None:
    model = ScriptedModel(otherwise="#1 [Fact] Ana sleeps in room 200.")
    async with remembering(model, LANGO) as memory:
        session = memory.conversation("session-1")
        (first,) = await told(session, whole_wire, long_question(0))
        await session.flush()
        (second,) = await told(session, whole_wire, "Where do I sleep?")

    assert texts(first) == [SYSTEM, long_question(0)]
    assert [request.purpose for request in model.requests] == ["observe"]
    memory_text = system_of(second).removeprefix(SYSTEM).lstrip()
    assert memory_text.startswith("## Conversation Memory")
    assert "Ana sleeps in room 200." in memory_text


@pytest.mark.req("L-18", "LS-11")
async def test_ls_11_b_accumulated_observations_are_replaced_by_a_reflection(
    whole_wire: Wire,
) -> None:
    model = ScriptedModel(otherwise=lango_notes)
    async with remembering(model, LANGO) as memory:
        session, shown = memory.conversation("session-1"), [""]
        while "All of it" not in shown[-1]:
            assert len(shown) < 40, "no reflection came"
            (body,) = await told(session, whole_wire, long_question(len(shown)))
            await session.flush()
            shown.append(system_of(body))
        left = await session.observations()
        state = await session.state()

    observed = [text.count("Ana sleeps in room") for text in shown]
    assert max(observed) >= 9
    assert "All of it in one line." in shown[-1]
    assert observed[-1] <= 1
    assert all(segment.first_seq > state.reflected_seq for segment in left)


@pytest.mark.req("L-34", "L-42", "LS-07", "LS-11")
async def test_ls_11_c_switched_off_a_request_is_as_before_with_a_hundred_messages(
    anthropic_wire: Wire,
) -> None:
    model = ScriptedModel(otherwise=lango_notes)
    questions = [f"Question {number}" for number in range(70)]
    async with remembering(model, Policy.lango()) as memory:
        session = memory.conversation("session-1")
        bodies = await told(session, anthropic_wire, *questions)
        await session.flush()

    assert [len(raw(body)) for body in bodies[:50]] == list(range(1, 101, 2))
    assert {len(raw(body)) for body in bodies[50:]} == {99}
    assert texts(bodies[-1])[:2] == [SYSTEM, "Question 20"]
    assert raw(bodies[-1])[-1] == "Question 69"
    assert "cache_control" not in str(bodies[-1])
    assert model.requests == []
