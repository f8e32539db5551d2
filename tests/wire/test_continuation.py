"""`observer_mode="continuation"`: the observer goes on from the live prompt and reads its cache."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import MODELS, Wire

from remanence import Context, Hooks, Memory, Message, Policy, Settings
from remanence.errors import InvalidPolicy
from remanence.protocols import ObserveRequest
from remanence.providers import ModelSource
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel

POLICY = Policy(
    observe_tokens=120,
    keep_last=2,
    tail_tokens=4_000,
    note_ratio=0.5,
    observer_mode="continuation",
    show_clock=False,
)
SYSTEM = "You are the ship's clerk. " * 30
NOTE = "#1 [IMPORTANT Fact] user: bay 0 is at 48.21 N, and the harbour master is Ines Okafor"


def said(number: int) -> str:
    return f"Bay {number} is at 48.2{number + 1} N, and its harbour master is Ines Okafor, who likes it."


async def observed(wire: Wire, policy: Policy, **options: Any) -> tuple[Any, Any, Any]:
    """The live prompt as an application sent it, the observer's request, and what it took."""
    wire.server.script(Reply(NOTE), Reply("SKIP"))
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, model=wire.spec, clock=FixedClock(), **options
    ) as memory:
        chat = memory.conversation("bay", user="ana")
        live: Any = None
        for number in range(4):
            await chat.append(Message.user(said(number)))
            context = await chat.context(system=SYSTEM)
            if not wire.server.received:
                live = (
                    context.to_anthropic() if wire.provider == "anthropic" else context.to_openai()
                )
            await chat.append(Message.assistant(f"Noted bay {number}, thank you."))
            await chat.flush()
        state = await chat.state()
        observations = await chat.observations()
    assert state.failures == 0, state.last_error
    assert observations[0].notes[0].text.startswith("bay 0 is at 48.21 N")
    return live, wire.server.received[0].body, observations


async def test_the_observers_request_begins_with_the_live_prompt_byte_for_byte(wire: Wire) -> None:
    live, body, _ = await observed(wire, POLICY)

    last = live["messages"][-1]
    assert body.get("system") == live.get("system")
    assert body["messages"][: len(live["messages"]) - 1] == live["messages"][:-1]
    if wire.provider == "anthropic":
        sent = body["messages"][-1]
        assert sent["content"][: len(last["content"])] == last["content"]
        question = sent["content"][-1]["text"]
    else:
        assert body["messages"][-2] == last
        question = body["messages"][-1]["content"]
    assert question.startswith("The conversation above is paused")
    assert "#1 user:" in question
    assert said(0) not in question
    assert "tools" not in body


async def test_the_system_text_is_not_sent_to_a_separate_observer(wire: Wire) -> None:
    _, body, _ = await observed(wire, POLICY.replace(observer_mode="separate"))

    assert SYSTEM.strip() not in json.dumps(body)
    assert said(0) in json.dumps(body)


async def test_what_a_hook_may_have_taken_out_is_not_sent_with_the_live_prompt(wire: Wire) -> None:
    async def same(request: ObserveRequest) -> ObserveRequest:
        return request

    _, body, _ = await observed(wire, POLICY, hooks=Hooks(before_observe=same))

    assert SYSTEM.strip() not in json.dumps(body)


async def test_without_a_prompt_that_shows_the_messages_the_observer_asks_by_itself(
    wire: Wire,
) -> None:
    wire.server.script(Reply(NOTE), Reply("SKIP"))
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, model=wire.spec, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("bay")
        for number in range(4):
            await chat.append(Message.user(said(number)), Message.assistant("Noted."))
        state = await chat.flush()

    assert state.observed_seq > 0
    assert said(0) in json.dumps(wire.server.received[0].body)


async def ask_as_the_application(wire: Wire, context: Context) -> None:
    """Send a context to the model, as an application does for a turn."""
    path = "/v1/messages" if wire.provider == "anthropic" else "/v1/chat/completions"
    request = context.to_anthropic() if wire.provider == "anthropic" else context.to_openai()
    body = {"model": MODELS[wire.provider], "max_tokens": 9, **request}
    async with httpx2.AsyncClient() as client:
        (await client.post(wire.server.url + path, json=body)).raise_for_status()


async def test_the_history_is_billed_as_read_from_the_cache(wire: Wire) -> None:
    read: dict[str, float] = {}
    for mode in ("separate", "continuation"):
        policy = POLICY.replace(observe_tokens=5_000, observer_mode=mode)
        async with Memory.open(
            "sqlite:///:memory:", policy=policy, model=wire.spec, clock=FixedClock()
        ) as memory:
            chat = memory.conversation(mode)
            for number in range(6):
                await chat.append(Message.user(said(number)))
                await ask_as_the_application(wire, await chat.context(system=SYSTEM))
                await chat.append(Message.assistant(f"Noted bay {number}, thank you."))
            wire.server.script(Reply(NOTE), Reply("SKIP"))
            await chat.flush(everything=True)
            usage = {total.purpose: total for total in await chat.usage()}
        read[mode] = usage["observe"].cache_read_tokens

    # The servers of the tests count a word as a token: the system text alone has 150.
    assert read["continuation"] > 150
    assert read["separate"] == 0


@pytest.mark.parametrize("model", [None, ScriptedModel(), "ollama:llama3.2"])
async def test_a_model_that_cannot_go_on_from_a_prompt_is_refused_at_the_start(
    model: "ModelSource | None",
) -> None:
    with pytest.raises(InvalidPolicy, match="observer_mode='continuation' needs"):
        async with Memory.open("sqlite:///:memory:", policy=POLICY, model=model):
            pass


async def test_a_repair_asks_by_itself(wire: Wire) -> None:
    wire.server.script(Reply("#1 user: a bay"), Reply("SKIP"))
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, model=wire.spec, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("bay")
        for number in range(4):
            await chat.append(Message.user(said(number)))
            await chat.context(system=SYSTEM)
            await chat.append(Message.assistant(f"Noted bay {number}, thank you."))
            await chat.flush()
        observations = await chat.observations()

    asked, repair = (json.dumps(received.body) for received in wire.server.received[:2])
    assert "The conversation above is paused" in asked
    assert "The conversation above is paused" not in repair
    assert SYSTEM.strip() not in repair
    assert "missing values" in repair
    assert "observe-continued/3" in observations[0].made_by


async def test_a_prompt_of_a_deleted_conversation_is_not_sent_for_the_next_of_its_name(
    wire: Wire, tmp_path: Path
) -> None:
    url, clock, settings = f"sqlite:///{tmp_path}/memory.db", FixedClock(), Settings(workers=0)
    same = [Message.user(said(number)) for number in range(4)]
    async with (
        Memory.open(url, settings=settings, policy=POLICY, model=wire.spec, clock=clock) as ours,
        Memory.open(url, settings=settings, clock=clock) as other,
    ):
        await ours.conversation("bay").append(*same, Message.user("The vault code is K7Q-2201."))
        await ours.conversation("bay").context(system=SYSTEM)
        await other.conversation("bay").delete()
        await other.conversation("bay").append(*same, Message.user("Good."), Message.user("Go on."))
        wire.server.script(Reply(NOTE), Reply("SKIP"))
        await ours.conversation("bay").flush()

    sent = json.dumps([received.body for received in wire.server.received])
    assert said(0) in sent
    assert "K7Q-2201" not in sent
