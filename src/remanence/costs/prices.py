"""Prices of model calls from the installed price list, which is never fetched."""

import re
from datetime import datetime

import genai_prices

from remanence.types import Usage
from remanence.types.usage import CachePrices

LONG_LIFETIME_SECONDS = 3_600.0
"""The lifetime of Anthropic's cache entries with `ttl: 1h`, in seconds."""

_TOKENS = 1_000


def price(usage: Usage) -> float | None:
    """Return the price of a call of `provider:model`, or of `model`, in US dollars.

    A base URL after the name, as in `provider:model@url`, is ignored. None if the model is not
    listed, or the call was not answered.
    """
    model, *_ = re.split(r"@(?=https?://)", usage.model, maxsplit=1)
    provider, separator, name = model.partition(":")
    if not separator:
        provider, name = "", model
    elif not provider:
        return None
    if not (name and (usage.input_tokens or usage.output_tokens)):
        return None
    return _price(
        name,
        provider or None,
        usage.at,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )


def cache_prices(
    model: str, *, at: datetime, lifetime_seconds: float = 300.0
) -> CachePrices | None:
    """Return the prices of `model` or `provider:model` at a time; None if not listed.

    Surcharges for long prompts are ignored. With *lifetime_seconds* of an hour, the price of one-hour
    cache writes is used, if there is one.
    """
    provider, _, name = model.rpartition(":")

    def million(**tokens: int) -> float | None:
        price = _price(name, provider or None, at, **tokens)
        return None if price is None else price * 1e6 / _TOKENS

    plain = million(input_tokens=_TOKENS)
    read = million(input_tokens=_TOKENS, cache_read_tokens=_TOKENS)
    output = million(output_tokens=_TOKENS)
    if plain is None or read is None or output is None:
        return None
    written = {"input_tokens": _TOKENS, "cache_write_tokens": _TOKENS}
    write = million(**written)
    if lifetime_seconds >= LONG_LIFETIME_SECONDS:
        write = million(**written, cache_write_1h_tokens=_TOKENS) or write
    # Without a separate price, cache writes cost as much as plain input.
    return CachePrices(model=model, plain=plain, read=read, write=write or plain, output=output)


def _price(name: str, provider: str | None, at: datetime, **tokens: int) -> float | None:
    """Return the price in US dollars; None if not listed."""
    try:
        found = genai_prices.calc_price(
            genai_prices.Usage(**tokens), name, provider_id=provider, genai_request_timestamp=at
        )
    except (LookupError, ValueError):
        return None
    return float(found.total_price)
