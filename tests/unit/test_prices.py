"""Prices from the list that is installed: never fetched, never guessed."""

from dataclasses import replace

import genai_prices
import pytest

from remanence.costs import with_list_price
from remanence.costs.prices import price
from remanence.providers.spec import parse_spec
from remanence.testing.store_contract.samples import usage

CALL = usage(
    model="anthropic:claude-haiku-4-5",
    input_tokens=1_000_000,
    output_tokens=0,
    cache_read_tokens=0,
    cache_write_tokens=0,
    cost_usd=None,
)


def of(**changes: int) -> float:
    found = price(replace(CALL, **changes))  # type: ignore[arg-type]  # fields by name
    assert found is not None
    return found


@pytest.mark.req("B-67")
def test_cached_input_is_part_of_the_input_and_is_not_paid_twice() -> None:
    fresh, read = of(), of(cache_read_tokens=1_000_000)
    written, half = of(cache_write_tokens=1_000_000), of(cache_read_tokens=500_000)

    assert read == pytest.approx(fresh * 0.1)
    assert written == pytest.approx(fresh * 1.25)
    assert half == pytest.approx((fresh + read) / 2)


@pytest.mark.parametrize(
    "model",
    ["ollama:llama3.2", "openai:my-own-model", "function:answer", "scripted-model", ":", ""],
)
def test_a_model_that_is_not_listed_has_no_price(model: str) -> None:
    assert price(replace(CALL, model=model)) is None


@pytest.mark.parametrize(
    ("model", "with_provider"),
    [
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("gemini-2.5-flash", "google:gemini-2.5-flash"),
    ],
)
def test_a_model_named_without_its_provider_has_the_same_price(
    model: str, with_provider: str
) -> None:
    found = price(replace(CALL, model=model))

    assert found is not None
    assert found == price(replace(CALL, model=with_provider))


def test_the_price_goes_by_the_name_wherever_the_call_is_sent() -> None:
    address = "openai:gpt-5-mini@http://gateway:4000/v1"
    listed = parse_spec(address).name
    own = parse_spec("openai:my-model@http://127.0.0.1:8000/v1").name

    assert price(replace(CALL, model=listed)) == price(replace(CALL, model="openai:gpt-5-mini"))
    assert price(replace(CALL, model=address)) == price(replace(CALL, model=listed))
    assert price(replace(CALL, model=own)) is None


def test_a_call_with_as_many_tokens_of_output_as_of_input_costs_both() -> None:
    assert of(output_tokens=CALL.input_tokens) > of()


def test_a_call_that_was_not_answered_has_no_price() -> None:
    assert price(replace(CALL, input_tokens=0)) is None


@pytest.mark.req("L-67")
@pytest.mark.parametrize(
    "model",
    ["anthropic:claude-haiku-4-5", "openai:gpt-5-mini", "google:gemini-2.5-flash"],
)
def test_the_models_that_the_docs_name_are_listed(model: str) -> None:
    found = price(replace(CALL, model=model))

    assert found is not None
    assert found > 0


def test_a_price_that_the_provider_told_is_kept() -> None:
    assert with_list_price(replace(CALL, cost_usd=0.5)).cost_usd == 0.5
    assert with_list_price(CALL).cost_usd == of()


def test_the_price_list_is_the_installed_one() -> None:
    of()

    assert not genai_prices.data_snapshot.get_snapshot().from_auto_update
