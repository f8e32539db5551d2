"""Prices of model calls from the installed price list, which is never fetched."""

import genai_prices

from remanence.types import Usage


def price(model: str, usage: Usage) -> float | None:
    """Return the price of a call of `provider:model` in US dollars; None if not listed.

    *usage* counts cached input as input, too. An unanswered call has no price.
    """
    provider, separator, name = model.partition(":")
    tokens = usage.input_tokens + usage.output_tokens
    if not (provider and separator and name and tokens):
        return None
    counts = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        calculation = genai_prices.calc_price(
            counts, name, provider_id=provider, genai_request_timestamp=usage.at
        )
    except (LookupError, ValueError):
        return None
    return float(calculation.total_price)
