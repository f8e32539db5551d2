import pytest
from tests.wire.reach import Wire
from tests.wire.scripts import Script, Sleeper, failed, model_of
from tests.wire.servers import Fail

from remanence.errors import ModelError
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers.retry import RetryingModel
from remanence.testing import FixedClock


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper(FixedClock())


def retrying(
    script: Script, sleeper: Sleeper, *, attempts: int = 2
) -> RetryingModel[ModelRequest, ModelAnswer]:
    return RetryingModel(
        model_of(script), attempts=attempts, max_wait_seconds=30, jitter=lambda: 1.0, sleep=sleeper
    )


@pytest.mark.parametrize("reason", ["connection", "overloaded", "rate_limit", "server", "timeout"])
async def test_a_failure_that_may_pass_is_tried_once_more(
    ask: ModelRequest, sleeper: Sleeper, reason: str
) -> None:
    script = Script(failed(reason), "[Fact] noted")

    answer = await retrying(script, sleeper).complete(ask)

    assert answer.text == "[Fact] noted"
    assert len(sleeper.slept) == 1


@pytest.mark.parametrize(
    "reason", ["auth", "bad_answer", "bad_request", "empty", "quota", "refused", "too_long"]
)
async def test_a_failure_that_would_come_again_is_not_tried_again(
    ask: ModelRequest, sleeper: Sleeper, reason: str
) -> None:
    script = Script(failed(reason))

    with pytest.raises(ModelError, match=reason):
        await retrying(script, sleeper).complete(ask)

    assert len(script.calls) == 1
    assert sleeper.slept == []


async def test_no_more_calls_are_made_than_attempts(ask: ModelRequest, sleeper: Sleeper) -> None:
    script = Script(*[failed("server")] * 5)

    with pytest.raises(ModelError):
        await retrying(script, sleeper, attempts=3).complete(ask)

    assert len(script.calls) == 3


async def test_the_pause_grows_up_to_its_bound(ask: ModelRequest, sleeper: Sleeper) -> None:
    await retrying(Script(*[failed("server")] * 7), sleeper, attempts=8).complete(ask)

    assert sleeper.slept == [1, 2, 4, 8, 16, 30, 30]


async def test_the_pause_is_drawn_between_half_of_it_and_the_whole(
    ask: ModelRequest, sleeper: Sleeper
) -> None:
    model = RetryingModel(model_of(Script(failed("server"))), jitter=lambda: 0.0, sleep=sleeper)

    await model.complete(ask)

    assert sleeper.slept == [0.5]


async def test_the_pause_that_a_provider_asks_for_is_kept(
    ask: ModelRequest, sleeper: Sleeper
) -> None:
    script = Script(failed("rate_limit", retry_after_seconds=20))

    await retrying(script, sleeper).complete(ask)

    assert sleeper.slept == [20]


async def test_a_pause_beyond_the_bound_is_left_to_the_caller(
    ask: ModelRequest, sleeper: Sleeper
) -> None:
    script = Script(failed("rate_limit", retry_after_seconds=31))

    with pytest.raises(ModelError) as caught:
        await retrying(script, sleeper).complete(ask)

    assert caught.value.retry_after_seconds == 31
    assert len(script.calls) == 1


async def test_an_opened_model_is_tried_twice_over_the_wire(wire: Wire, ask: ModelRequest) -> None:
    wire.server.script(Fail(500), Fail(401))

    with pytest.raises(ModelError) as caught:
        await wire.open(attempts=2).complete(ask)

    assert caught.value.reason == "auth"
    assert len(wire.server.received) == 2
