"""Input prices with and without the prompt cache, from the installed price list."""

from datetime import datetime

import genai_prices

from remanence.types.prices import CachePrices

LONG_LIFETIME_SECONDS = 3_600.0
"""Seconds that Anthropic keeps a cache entry with `ttl: 1h`."""

_TOKENS = 1_000


def cache_prices(
    model: str, *, at: datetime, lifetime_seconds: float = 300.0
) -> CachePrices | None:
    """Return the prices of `model` or `provider:model` at a time; None if not listed.

    Models with other prices for long prompts count as for short ones. A *lifetime_seconds* of an
    hour uses the price of writing for an hour, if there is one.
    """
    plain = _price(model, at, input_tokens=_TOKENS)
    read = _price(model, at, input_tokens=_TOKENS, cache_read_tokens=_TOKENS)
    write = _price(model, at, input_tokens=_TOKENS, cache_write_tokens=_TOKENS)
    output = _price(model, at, output_tokens=_TOKENS)
    if plain is None or read is None or output is None:
        return None
    if lifetime_seconds >= LONG_LIFETIME_SECONDS:
        write = (
            _price(
                model,
                at,
                input_tokens=_TOKENS,
                cache_write_tokens=_TOKENS,
                cache_write_1h_tokens=_TOKENS,
            )
            or write
        )
    # Where writing has no price of its own, it costs what plain input costs.
    return CachePrices(model=model, plain=plain, read=read, write=write or plain, output=output)


def _price(model: str, at: datetime, **tokens: int) -> float | None:
    """Return US dollars per million tokens."""
    provider, _, name = model.rpartition(":")
    try:
        found = genai_prices.calc_price(
            genai_prices.Usage(**tokens),
            name,
            provider_id=provider or None,
            genai_request_timestamp=at,
        )
    except (LookupError, ValueError):
        return None
    return float(found.total_price) * 1e6 / _TOKENS
