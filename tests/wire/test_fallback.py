import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import observe_request
from tests.wire.dialects import Reply
from tests.wire.reach import Wire
from tests.wire.scripts import Script, failed, model_of
from tests.wire.servers import Fail

from remanence import Memory, Message, Policy, Settings
from remanence.errors import ModelError, ObservationRejected
from remanence.observers.llm import ModelObserver
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers import ModelOptions, open_model
from remanence.providers.fallback import FallbackModel
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


def chain(clock: FixedClock, *scripts: Script) -> FallbackModel[ModelRequest, ModelAnswer]:
    return FallbackModel([model_of(script) for script in scripts], clock=clock, cooldown_seconds=60)


async def test_the_first_model_answers_while_it_can(ask: ModelRequest, clock: FixedClock) -> None:
    first, second = Script("from the first"), Script()

    answer = await chain(clock, first, second).complete(ask)

    assert answer.text == "from the first"
    assert second.calls == []


async def test_the_next_model_is_asked_when_one_fails(ask: ModelRequest, clock: FixedClock) -> None:
    answer = await chain(clock, Script(failed("server")), Script("from the second")).complete(ask)

    assert answer.text == "from the second"


@pytest.mark.req("X-29")
async def test_a_model_that_failed_is_left_alone_until_it_has_cooled_down(
    ask: ModelRequest, clock: FixedClock
) -> None:
    first = Script(failed("server"))
    model = chain(clock, first, Script())

    await model.complete(ask)
    clock.advance(59)
    await model.complete(ask)
    assert len(first.calls) == 1

    clock.advance(1)
    await model.complete(ask)
    assert len(first.calls) == 2


async def test_the_cool_down_is_as_long_as_the_provider_asks_for(
    ask: ModelRequest, clock: FixedClock
) -> None:
    first = Script(failed("rate_limit", retry_after_seconds=300))
    model = chain(clock, first, Script())

    await model.complete(ask)
    clock.advance(299)
    await model.complete(ask)

    assert len(first.calls) == 1


@pytest.mark.parametrize("reason", ["bad_request", "refused", "too_long"])
async def test_a_request_that_a_model_cannot_take_does_not_cool_it_down(
    ask: ModelRequest, clock: FixedClock, reason: str
) -> None:
    first = Script(failed(reason))
    model = chain(clock, first, Script())

    await model.complete(ask)
    await model.complete(ask)

    assert len(first.calls) == 2


async def test_when_all_fail_the_last_failure_is_raised(
    ask: ModelRequest, clock: FixedClock
) -> None:
    model = chain(clock, Script(failed("server")), Script(failed("overloaded")))

    with pytest.raises(ModelError) as caught:
        await model.complete(ask)

    assert caught.value.reason == "overloaded"


async def test_while_all_providers_ask_for_a_pause_the_error_says_when_to_come_again(
    ask: ModelRequest, clock: FixedClock
) -> None:
    first = Script(failed("server", retry_after_seconds=90))
    second = Script(failed("server", retry_after_seconds=50), "from the second")
    model = chain(clock, first, second)
    with pytest.raises(ModelError):
        await model.complete(ask)
    clock.advance(10)

    with pytest.raises(ModelError, match="09:00:50 UTC") as caught:
        await model.complete(ask)

    assert (caught.value.reason, caught.value.retry_after_seconds) == ("cooling", 40)
    assert (len(first.calls), len(second.calls)) == (1, 1)

    clock.advance(40)
    assert (await model.complete(ask)).text == "from the second"
    assert len(first.calls) == 1


@pytest.mark.parametrize("pause_seconds", [None, 0])
async def test_when_all_have_failed_the_one_that_is_free_first_is_asked_all_the_same(
    ask: ModelRequest, clock: FixedClock, pause_seconds: float | None
) -> None:
    limited = failed("rate_limit", retry_after_seconds=pause_seconds)
    first, second = Script(limited, limited), Script(limited, "from the second")
    model = chain(clock, first, second)

    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await model.complete(ask)
        assert caught.value.reason == "rate_limit"
        clock.advance(1)

    assert (await model.complete(ask)).text == "from the second"
    assert (await model.complete(ask)).text
    assert (len(first.calls), len(second.calls)) == (2, 3)


@pytest.mark.req("X-29")
async def test_a_chain_of_names_falls_back_over_the_wire(wire: Wire, ask: ModelRequest) -> None:
    wire.server.script(Fail(529))
    clock = FixedClock()
    options = ModelOptions(attempts=1, stream=wire.stream, cooldown_seconds=5)
    chain = [wire.spec, f"openai:spare@{wire.server.url}/v1"]
    model = open_model(chain, options=options, clock=clock)

    first, second = await model.complete(ask), await model.complete(ask)
    clock.advance(5)
    third = await model.complete(ask)

    answered = [answer.usage.model for answer in (first, second, third)]
    assert answered == ["openai:spare", "openai:spare", wire.name]


async def test_the_names_of_a_chain_may_be_one_text(wire: Wire, ask: ModelRequest) -> None:
    wire.server.script(Fail(529))
    options = ModelOptions(attempts=1, stream=wire.stream)
    model = open_model(f"{wire.spec}, openai:spare@{wire.server.url}/v1", options=options)

    answer = await model.complete(ask)

    assert answer.usage.model == "openai:spare"
    assert model.name == f"{wire.name} > openai:spare"


@pytest.mark.parametrize("role", ["model", "observer_model"])
async def test_settings_name_a_chain_for_the_notes(whole_wire: Wire, role: str) -> None:
    wire = whole_wire
    wire.server.script(Fail(529), Reply("#1 [NOTE Fact] user: sails on LH 454"))
    models: dict[str, Any] = {role: f"{wire.spec}, openai:spare@{wire.server.url}/v1"}
    settings = replace(Settings(url="sqlite:///:memory:", policy={"keep_last": 0}), **models)
    async with Memory.open(settings=settings, clock=FixedClock()) as memory:
        chat = memory.conversation("trip")
        await chat.append(Message.user("I take LH 454 on Friday."), Message.assistant("Noted."))
        await chat.flush(everything=True)
        observation, *_ = await chat.observations()

    assert observation.made_by.startswith("openai:spare ")


async def test_in_a_step_the_next_model_answers_for_one_that_hangs_and_then_cools_down() -> None:
    hung: list[ModelRequest] = []

    async def hangs(request: ModelRequest) -> str:
        hung.append(request)
        await asyncio.Event().wait()
        return ""

    async def answers(request: ModelRequest) -> str:
        return "#1 [NOTE Fact] user: sails on LH 454"

    policy = Policy(keep_last=0, observe_timeout_seconds=1)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, model=[hangs, answers], clock=FixedClock()
    ) as memory:
        for name in ("trip", "cruise"):
            chat = memory.conversation(name)
            await chat.append(Message.user("I take LH 454 on Friday."), Message.assistant("Noted."))
            await chat.flush(everything=True)
            (observation,) = await chat.observations()
            assert "answers" in observation.made_by

    assert len(hung) == 1


REFUSAL = "I'm sorry, but I can't help with that."


async def test_where_a_model_refuses_in_words_the_next_one_takes_the_notes(
    clock: FixedClock,
) -> None:
    first = ScriptedModel(otherwise=REFUSAL, name="first")
    second = ScriptedModel(["#1 [Preference] likes tea"], name="second")
    request = observe_request(Message.user("I like tea."))

    draft = await ModelObserver(FallbackModel([first, second], clock=clock)).observe(request)

    assert [note.text for note in draft.notes] == ["likes tea"]
    assert draft.made_by.startswith("second ")
    assert len(first.requests) == 1


@pytest.mark.parametrize("second", [REFUSAL, ModelError("auth", "no key")], ids=["words", "no key"])
async def test_an_answer_in_words_stays_rejected_where_no_other_model_helps(
    clock: FixedClock, second: str | ModelError
) -> None:
    """So that messages which no model takes are found, although another one is out of order."""
    models = [
        ScriptedModel(otherwise=text, name=str(n)) for n, text in enumerate((REFUSAL, second))
    ]
    request = observe_request(Message.user("I like tea."))

    with pytest.raises(ObservationRejected) as caught:
        await ModelObserver(FallbackModel(models, clock=clock)).observe(request)

    assert caught.value.reason == "malformed"
    assert [len(model.requests) for model in models] == [1, 1]


def test_a_chain_of_nothing_is_refused(clock: FixedClock) -> None:
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel([], clock=clock)
