"""`remanence config cache`: the cost and the savings of an activation at today's prices."""

from typing import Annotated

import typer

from remanence.catalog import look_up
from remanence.cli.options import AsJson, PresetName
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load
from remanence.clock import SystemClock
from remanence.errors import MissingExtra, ModelError
from remanence.policy.cache_economics import (
    BreakEven,
    break_even,
)
from remanence.policy.policy import Policy
from remanence.settings import policy_of
from remanence.types.prices import CachePrices


def run(
    *,
    model: Annotated[
        str | None, typer.Option(help="The model that reads the prompts; by default the policy's.")
    ] = None,
    preset: PresetName = None,
    as_json: AsJson = False,
) -> None:
    """Show what an activation costs and saves.

    Prices and lifetime of the prompt cache, and the break-even.
    """
    policy = policy_of(load(preset=preset).settings)
    name = model or policy.model
    prices, facts = _prices(name), look_up(name)
    even = {warm: _even(policy, prices, warm=warm == "warm") for warm in ("warm", "cold")}
    lifetime = policy.cache_ttl_seconds or facts.cache_lifetime_seconds
    if as_json:
        write_json(
            {
                "prices": prices,
                "lifetime_seconds": lifetime,
                "min_cached_tokens": facts.min_cached_tokens,
                "break_even": even,
            }
        )
        return
    printer = Printer()
    printer.line(
        f"{name}: input ${prices.plain:g} a million tokens, read from the cache ${prices.read:g}, "
        f"written to it ${prices.write:g}; a prompt of {facts.min_cached_tokens:,} tokens or more "
        f"is cached for {lifetime:g} s"
    )
    for warm, value in even.items():
        printer.line(f"activation while the cache is {warm}: {_format_break_even(value)}")


def _prices(model: str) -> CachePrices:
    try:
        from remanence.costs.prices import cache_prices
    except ImportError as error:
        raise MissingExtra("models", "genai-prices") from error
    prices = cache_prices(model, at=SystemClock().now())
    if prices is None:
        raise ModelError(
            "unknown_model", f"the price list has no {model!r}: name a model of it with --model"
        )
    return prices


def _even(policy: Policy, prices: CachePrices, *, warm: bool) -> BreakEven:
    """Return the break-even of a tail that has just reached its budget."""
    freed = policy.tail_tokens - policy.tail_keep_tokens
    return break_even(
        prices,
        tail_tokens=policy.tail_tokens,
        kept_tokens=policy.tail_keep_tokens,
        note_tokens=int(freed * policy.note_ratio),
        warm=warm,
    )


def _format_break_even(even: BreakEven) -> str:
    saved = f"each later call saves ${even.saved_per_call:.6f}"
    if even.calls is None:
        return f"costs ${even.cost:.6f} once, and saves nothing"
    if even.calls == 0:
        return f"saves ${-even.cost:.6f} at once, and {saved}"
    return f"costs ${even.cost:.6f} once; {saved}; even after {even.calls:.1f} calls"
