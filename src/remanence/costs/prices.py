"""What a call costs by the price list that is installed; it is never fetched."""

import genai_prices

from remanence.types import Usage


def price(model: str, usage: Usage) -> float | None:
    """The price in US dollars of a call of `provider:model`; None where the list has none.

    *usage* counts cached input as input, too; of a call that was not answered nothing is known.
    """
    provider, separator, name = model.partition(":")
    tokens = usage.input_tokens + usage.output_tokens
    if not (provider and separator and name and tokens):
        return None
    taken = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(
            taken, name, provider_id=provider, genai_request_timestamp=usage.at
        )
    except (LookupError, ValueError):
        return None
    return float(found.total_price)
