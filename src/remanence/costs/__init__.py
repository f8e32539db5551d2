"""Cost of model calls: ledger, budgets, prices and calibration of the token estimate."""

from dataclasses import replace

from remanence.types import Usage

__all__ = ["with_list_price"]


def with_list_price(usage: Usage) -> Usage:
    """The usage with the list price where it has none and one is known; what we estimated has none.

    Loads the price list, which takes a while, when it is first asked for one.
    """
    known = usage.cost_usd is not None or usage.estimated
    if known or not (usage.input_tokens or usage.output_tokens):
        return usage
    try:
        from remanence.costs.prices import price
    except ModuleNotFoundError:
        return usage
    return replace(usage, cost_usd=price(usage.model, usage))
