import asyncio
from dataclasses import replace

import pytest
from tests.wire.reach import Wire
from tests.wire.scripts import Script, Sleeper, failed, model_of

from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions, open_model
from remanence.providers.limit import LimitedModel, Limits
from remanence.testing import FixedClock


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def sleeper(clock: FixedClock) -> Sleeper:
    return Sleeper(clock)


async def test_calls_within_the_limit_do_not_wait(
    ask: ModelRequest, clock: FixedClock, sleeper: Sleeper
) -> None:
    limits = Limits(clock=clock, requests_per_minute=3, sleep=sleeper)
    model = LimitedModel(model_of(Script()), limits)

    for _ in range(3):
        await model.complete(ask)

    assert sleeper.slept == []


async def test_a_call_beyond_the_limit_waits_for_its_turn(
    ask: ModelRequest, clock: FixedClock, sleeper: Sleeper
) -> None:
    limits = Limits(clock=clock, requests_per_minute=3, sleep=sleeper)
    model = LimitedModel(model_of(Script()), limits)

    for _ in range(5):
        await model.complete(ask)

    assert sleeper.slept == [20, 20]


async def test_models_of_one_provider_share_its_limit(
    ask: ModelRequest, clock: FixedClock, sleeper: Sleeper
) -> None:
    limits = Limits(clock=clock, requests_per_minute=1, sleep=sleeper)

    await LimitedModel(model_of(Script()), limits).complete(ask)
    await LimitedModel(model_of(Script()), limits).complete(ask)

    assert sleeper.slept == [60]


async def test_tokens_are_limited_by_what_calls_used(
    ask: ModelRequest, clock: FixedClock, sleeper: Sleeper
) -> None:
    limits = Limits(clock=clock, tokens_per_minute=1_000, sleep=sleeper)
    model = LimitedModel(model_of(Script()), limits)
    greedy = replace(ask, max_output_tokens=800)

    for _ in range(5):
        await model.complete(greedy)

    assert sleeper.slept == []


async def test_a_call_waits_for_the_tokens_that_it_may_use(
    ask: ModelRequest, clock: FixedClock, sleeper: Sleeper
) -> None:
    limits = Limits(clock=clock, tokens_per_minute=600, sleep=sleeper)
    model = LimitedModel(model_of(Script(failed("server"))), limits)

    with pytest.raises(ModelError):
        await model.complete(replace(ask, max_output_tokens=590))
    await model.complete(replace(ask, stable="", prompt="", max_output_tokens=300))

    assert sleeper.slept == [pytest.approx(30, abs=1)]


async def test_a_call_larger_than_a_minutes_tokens_waits_for_one_minute_at_most(
    ask: ModelRequest, clock: FixedClock, sleeper: Sleeper
) -> None:
    limits = Limits(clock=clock, tokens_per_minute=100, sleep=sleeper)
    model = LimitedModel(model_of(Script(failed("server"))), limits)
    huge = replace(ask, max_output_tokens=1_000_000)

    with pytest.raises(ModelError):
        await model.complete(huge)
    await model.complete(huge)

    assert sleeper.slept == [60]


async def test_no_more_calls_run_at_once_than_allowed(ask: ModelRequest, clock: FixedClock) -> None:
    running, most = 0, 0

    async def count(request: ModelRequest) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        return "ok"

    model = LimitedModel(model_of(count), Limits(clock=clock, parallel=2))
    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(model.complete(ask))

    assert most == 2


async def test_an_opened_model_keeps_within_the_limits_of_its_options(
    wire: Wire, ask: ModelRequest
) -> None:
    options = ModelOptions(requests_per_minute=1, stream=wire.stream)
    model = open_model(wire.spec, options=options, clock=FixedClock())
    await model.complete(ask)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await model.complete(ask)

    assert len(wire.server.received) == 1


async def test_models_of_one_chain_and_provider_share_their_parallel_calls(
    wire: Wire, ask: ModelRequest
) -> None:
    options = ModelOptions(parallel=1, stream=wire.stream)
    model = open_model([wire.spec, wire.spec], options=options)

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(model.complete(ask))

    assert wire.server.most_at_once == 1


async def test_a_call_that_is_cancelled_gives_its_place_to_the_next(
    ask: ModelRequest, clock: FixedClock
) -> None:
    entered = asyncio.Event()

    async def never(request: ModelRequest) -> str:
        entered.set()
        await asyncio.Event().wait()
        return "unreached"

    limits = Limits(clock=clock, parallel=1)
    stuck = asyncio.create_task(LimitedModel(model_of(never), limits).complete(ask))
    await entered.wait()
    stuck.cancel()
    await asyncio.wait([stuck])

    answer = await LimitedModel(model_of(Script()), limits).complete(ask)

    assert answer.text == "ok"
