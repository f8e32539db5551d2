import asyncio

import pytest

from remanence.costs.budgets import Budgets
from remanence.costs.ledger import Ledger
from remanence.errors import ModelError
from remanence.model_sources import ObserverFactory
from remanence.observers.llm import ModelObserver
from remanence.policy.policy import Policy
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions
from remanence.providers.shared_limit import SharedLimit
from remanence.settings import Settings
from remanence.stores import open_store
from remanence.testing import FixedClock

_ASK = ModelRequest(
    stable="", prompt="hi", max_output_tokens=9, purpose="observe", conversation=None
)


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        (ModelOptions(attempts=1), 0.02),
        (ModelOptions(attempts=1, timeout_seconds=0.01), 0.01),
    ],
    ids=["of the policy", "of the options"],
)
async def test_a_call_may_take_as_long_as_an_observation_unless_options_say_otherwise(
    options: ModelOptions, seconds: float
) -> None:
    async def never(request: ModelRequest) -> str:
        await asyncio.Event().wait()
        return ""

    store, clock = await open_store("sqlite:///:memory:"), FixedClock()
    ledger = Ledger(store)
    factory = ObserverFactory(
        policy=Policy(observe_timeout_seconds=0.02),
        settings=Settings(),
        clock=clock,
        record=lambda usage: None,
        compare=lambda *_: None,
        count=len,
        options=options,
        budgets=Budgets((), ledger=ledger, events=store, clock=clock),
        limit=SharedLimit(calls=store, clock=clock),
    )
    observer = factory.observer(never)
    assert isinstance(observer, ModelObserver)

    with pytest.raises(ModelError, match=f"took longer than {seconds:g} s"):
        async with asyncio.timeout(60):
            await observer.model.complete(_ASK)
    await store.close()
