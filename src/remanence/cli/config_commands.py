"""`remanence config`: the settings, their file, and the economics of the prompt cache."""

import dataclasses
import inspect
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from remanence.catalog import look_up
from remanence.cli import output
from remanence.cli.options import AsJson, Database, PresetName
from remanence.cli.settings import load
from remanence.clock import SystemClock
from remanence.engine.retention import retention_rules
from remanence.errors import ModelError, needs_extra
from remanence.policy.cache_economics import BreakEven, break_even
from remanence.policy.policy import Policy
from remanence.settings import Settings, policy_of
from remanence.settings.sources import FILE_NAMES, LoadedSettings, config_file, variable
from remanence.stores import mask_password
from remanence.types import Budget

_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*):[^/\s]*@")
_ATTRIBUTE = re.compile(r"^    (\w+): (.+?)(?=^    \w+: |\Z)", re.DOTALL | re.MULTILINE)


def config_show(*, db: Database = None, preset: PresetName = None, as_json: AsJson = False) -> None:
    """Show each setting with its value, source and meaning."""
    loaded = load(url=db, preset=preset)
    retention_rules(loaded.settings, loaded.settings.budgets)  # refuses what a memory refuses
    documents = _documents(loaded)
    if as_json:
        output.write_json(documents)
        return
    for key, document in documents.items():
        value = _format_value(document["value"])
        output.line(f"{key} = {value}  ({document['source']})", style="bold")
        output.line(f"    {document['meaning']}")


def config_path(*, as_json: AsJson = False) -> None:
    """Show which file the settings are read from."""
    file = config_file(Path.cwd())
    if as_json:
        output.write_json({"file": file, "looked_for": FILE_NAMES})
    else:
        output.line(str(file) if file else f"no file: {' and '.join(FILE_NAMES)} are missing")


def config_cache(
    *,
    model: Annotated[
        str | None, typer.Option(help="The model that reads the prompts, by default the policy's.")
    ] = None,
    preset: PresetName = None,
    as_json: AsJson = False,
) -> None:
    """Show the cost and savings of an activation.

    Includes the prices and lifetime of the prompt cache, and the break-even.
    """
    policy = policy_of(load(preset=preset).settings)
    name = model or policy.model
    with needs_extra("models"):
        from remanence.costs.prices import cache_prices
    facts, ttl = look_up(name), policy.cache_ttl_seconds
    lifetime = facts.cache_lifetime_seconds if ttl is None else ttl
    prices = cache_prices(name, at=SystemClock().now(), lifetime_seconds=lifetime)
    if prices is None:
        raise ModelError(
            "unknown_model", f"the price list has no {name!r}: choose a listed model with --model"
        )
    freed = policy.tail_tokens - policy.tail_keep_tokens
    even = {
        state: break_even(
            prices,
            tail_tokens=policy.tail_tokens,  # a tail that has just reached its budget
            kept_tokens=policy.tail_keep_tokens,
            note_tokens=int(freed * policy.note_ratio),
            warm=state == "warm",
        )
        for state in ("warm", "cold")
    }
    if as_json:
        output.write_json(
            {
                "prices": prices,
                "lifetime_seconds": lifetime,
                "min_cached_tokens": facts.min_cached_tokens,
                "break_even": even,
            }
        )
        return
    output.line(
        f"{name}: input ${prices.plain:g} a million tokens, read from the cache ${prices.read:g}, "
        f"written to it ${prices.write:g}; a prompt of {facts.min_cached_tokens:,} tokens or more "
        f"is cached for {lifetime:g} s"
    )
    for state, value in even.items():
        output.line(f"activation while the cache is {state}: {_format_break_even(value)}")


def _documents(loaded: LoadedSettings) -> Mapping[str, dict[str, Any]]:  # values of many types
    """Return value, source, meaning and variable of each setting and each policy field."""
    settings, standard = loaded.settings, Policy()
    values = {field.name: getattr(settings, field.name) for field in dataclasses.fields(Settings)}
    del values["policy"]
    values |= {"url": mask_password(settings.url), "budgets": [*map(_table, settings.budgets)]}
    sources = dict.fromkeys(values, "default")
    for name, value in dataclasses.asdict(policy_of(settings)).items():
        key, is_standard = f"policy.{name}", value == getattr(standard, name)
        values[key] = value
        sources[key] = "default" if is_standard else f"preset {settings.preset}"
    meanings = attribute_meanings(Settings) | {
        f"policy.{name}": text for name, text in attribute_meanings(Policy).items()
    }
    return {
        key: {
            "value": _without_password(value),
            "source": loaded.origins.get(key, sources[key]),
            "meaning": meanings[key],
            "variable": variable(key),
        }
        for key, value in values.items()
    }


@cache
def attribute_meanings(documented: type) -> dict[str, str]:
    """Return the description of each field in the `Attributes:` section of a class."""
    section = inspect.getdoc(documented) or ""
    section = section.partition("Attributes:\n")[2]
    return {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}


def _without_password(value: Any) -> Any:  # the values of settings
    """Return a value with the passwords of all URLs in it masked."""
    if isinstance(value, tuple | list):
        return [_without_password(one) for one in value]
    return _PASSWORD.sub(r"\1:***@", value) if isinstance(value, str) else value


def _table(budget: Budget) -> dict[str, object]:
    fields = dataclasses.asdict(budget).items()
    return {name: value for name, value in fields if value is not None and value is not False}


def _format_value(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(_format_value, value)) or "[]"
    return "none" if value is None else output.cell(value)


def _format_break_even(even: BreakEven) -> str:
    saved = f"each later call saves ${even.saved_per_call:.6f}"
    if even.calls is None:
        return f"costs ${even.cost:.6f} once, and saves nothing"
    if even.calls == 0:
        return f"saves ${-even.cost:.6f} at once, and {saved}"
    return f"costs ${even.cost:.6f} once; {saved}; even after {even.calls:.1f} calls"
