"""`remanence config show`: each setting with its value, source and meaning."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from remanence.cli.options import AsJson, Database, PresetName
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, mask_password
from remanence.policy.policy import Policy
from remanence.settings import Settings, policy_of
from remanence.settings.sources import LoadedSettings, variable
from remanence.types import Budget

_ATTRIBUTE = re.compile(r"^    (\w+): (.+?)(?=^    \w+: |\Z)", re.DOTALL | re.MULTILINE)


class Setting(NamedTuple):
    """A key with its value, the source of the value, and its meaning."""

    key: str
    value: object
    source: str
    meaning: str


def run(*, db: Database = None, preset: PresetName = None, as_json: AsJson = False) -> None:
    """Show each setting: value, source and meaning."""
    found = tuple(_settings(load(url=db, preset=preset)))
    if as_json:
        write_json(
            {
                setting.key: {
                    "value": setting.value,
                    "source": setting.source,
                    "meaning": setting.meaning,
                    "variable": variable(setting.key),
                }
                for setting in found
            }
        )
        return
    printer = Printer()
    for setting in found:
        printer.line(
            f"{setting.key} = {_format_value(setting.value)}  ({setting.source})", style="bold"
        )
        printer.line(f"    {setting.meaning}")


def _settings(loaded: LoadedSettings) -> Iterator[Setting]:
    """Yield the settings, then the fields of their policy."""
    settings, policy = loaded.settings, policy_of(loaded.settings)
    meanings = attribute_meanings(Settings)
    for field in dataclasses.fields(Settings):
        if field.name != "policy":
            value = getattr(settings, field.name)
            shown = mask_password(value) if field.name == "url" else _plain(value)
            source = loaded.origins.get(field.name, "default")
            yield Setting(field.name, shown, source, meanings[field.name])
    meanings = attribute_meanings(Policy)
    standard = Policy()
    for field in dataclasses.fields(Policy):
        key, value = f"policy.{field.name}", getattr(policy, field.name)
        is_standard = value == getattr(standard, field.name)
        preset = "default" if is_standard else f"preset {settings.preset}"
        yield Setting(key, value, loaded.origins.get(key, preset), meanings[field.name])


@cache
def attribute_meanings(documented: type) -> dict[str, str]:
    """Return the description of each field in the `Attributes:` section of a class."""
    section = inspect.getdoc(documented) or ""
    section = section.partition("Attributes:\n")[2]
    return {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}


def _plain(value: object) -> object:
    """Return the value as plain JSON; a budget becomes a table of its fields."""
    if isinstance(value, tuple):
        return tuple(_table(item) if isinstance(item, Budget) else item for item in value)
    return value


def _table(budget: Budget) -> dict[str, object]:
    fields = dataclasses.asdict(budget).items()
    return {name: value for name, value in fields if value is not None and value is not False}


def _format_value(value: object) -> str:
    match value:
        case None:
            return "none"
        case tuple():
            return ", ".join(_format_value(item) for item in value) or "none"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return str(value)
