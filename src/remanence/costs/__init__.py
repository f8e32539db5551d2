"""Cost of model calls: ledger, budgets, prices and calibration of the token estimate."""

from dataclasses import replace

from remanence.types import Usage

__all__ = ["with_list_price"]


def with_list_price(usage: Usage) -> Usage:
    """Return the usage with its list price, unless it has a price or is an estimate.

    The first call loads the price list, which takes a while.
    """
    known = usage.cost_usd is not None or usage.estimated
    if known or not (usage.input_tokens or usage.output_tokens):
        return usage
    try:
        from remanence.costs.prices import price
    except ModuleNotFoundError:
        return usage
    return replace(usage, cost_usd=price(usage))
