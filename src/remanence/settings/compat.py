"""Translation of the source designs' configuration files.

Each design has a table of keys with its own names and units, which `translate` converts. A file may
also have other tables of its host, which are ignored, and keys of `Settings`, which work as in our
own files. An unknown key in the memory's table is an error.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from remanence.errors import InvalidPolicy, InvalidSetting
from remanence.settings import Settings, nearest_hint
from remanence.settings.dialects import BRAIN, DIALECTS, Dialect
from remanence.settings.entry import Entry, flat_entries, whole_number
from remanence.validation import check_value

Table: TypeAlias = Mapping[str, Any]  # the content of a file, before it is checked

_OUR_KEYS = tuple(field.name for field in dataclasses.fields(Settings))


def translate(values: Table, *, file: Path) -> Mapping[str, Entry] | None:
    """Return the settings of a file by our keys; None if it is not in one of the dialects.

    Raises:
        InvalidPolicy: the file is in two dialects, a key is unknown or occurs twice, or a value has
            a wrong type.
    """
    found = _find_table(values, file)
    if found is None:
        return None
    dialect, table = found
    source = f"file {file.name}"
    keys = dict(_table_keys(dialect, table, source))
    entries = {"preset": Entry(dialect.preset, "preset", dialect.preset, source)}
    own = {name: entry.value for name, entry in keys.items()}
    for name, entry in keys.items():
        for field, convert in dialect.keys[name].fields.items():
            setting = convert(entry.value, own)
            entries[f"policy.{field}"] = entry._replace(setting=setting, translated=True)
    main = _halves(values.get(dialect.agent))
    if window := main.get("model"):
        name = f"{dialect.agent}.model"
        entries["policy.model"] = Entry(window, name, window, source, translated=True)
    if model := _model(dialect, keys, main, source):
        entries["model"] = Entry(model, "model", model, source)
    return entries | _our_entries(entries, values, source)


def _find_table(values: Table, file: Path) -> tuple[Dialect, Table] | None:
    """Return the dialect of a file and its table, which may be empty."""
    tables = {
        dialect.name: (dialect, found[0])
        for dialect in DIALECTS
        if (found := _look_up(values, dialect.path))
    }
    if len(tables) > 1:
        names = " and ".join(tables)
        raise InvalidPolicy(f"file {file.name} holds {names}: keep the one that should work")
    for name, (dialect, table) in tables.items():
        if table is not None and not isinstance(table, Mapping):
            raise InvalidPolicy(
                f"{name}={table!r} (file {file.name}) is not a table: write its keys"
            )
        return dialect, table or {}
    if set(values) & set(BRAIN.keys):
        bare = {name: value for name, value in values.items() if name not in _OUR_KEYS}
        return dataclasses.replace(BRAIN, path=()), bare
    for dialect in DIALECTS:
        named = dialect.preset in (file.stem, file.parent.name.removeprefix("."))
        if named or any(isinstance(values.get(host), Mapping) for host in dialect.hosts):
            return dialect, {}
    return None


def _look_up(values: object, path: tuple[str, ...]) -> list[object]:
    """Return a list with the value at a path, or an empty list."""
    for name in path:
        if not isinstance(values, Mapping) or name not in values:
            return []
        values = values[name]
    return [values]


def _table_keys(dialect: Dialect, table: Table, source: str) -> Iterator[tuple[str, Entry]]:
    """Yield the keys with values, by their first spelling; null means the default."""
    names = {
        spelling: name for name, key in dialect.keys.items() for spelling in (name, *key.spellings)
    }
    seen: dict[str, str] = {}
    for spelling, written in table.items():
        path = dialect.key_path(spelling)
        if spelling not in names:
            nearest = nearest_hint(spelling, tuple(names), tuple(dialect.keys))
            raise InvalidPolicy(f"{path} ({source}) is unknown: {nearest}")
        name = names[spelling]
        if other := seen.get(name):
            both = f"{dialect.key_path(other)} and {path}"
            raise InvalidPolicy(f"{both} ({source}) set the same: keep one of them")
        seen[name] = spelling
        if written is None:
            continue
        kind = dialect.keys[name].type
        value = whole_number(written, kind)
        entry = Entry(value, path, value, source)
        try:
            check_value(path, value, kind)
        except InvalidSetting as error:
            raise entry.error(error.remedy) from error
        yield name, entry


def _halves(table: object) -> dict[str, str]:
    """Return the provider and model that a table names, as far as it does."""
    if not isinstance(table, Mapping):
        return {}
    halves = ((name, table.get(name)) for name in ("provider", "model"))
    return {name: value for name, value in halves if isinstance(value, str) and value}


def _model(
    dialect: Dialect, keys: Mapping[str, Entry], main: Mapping[str, str], source: str
) -> str | None:
    """Return the model for notes; the provider defaults to the main agent's."""
    halves = {**main, **_halves({name: entry.value for name, entry in keys.items()})}
    if "provider" not in dialect.keys:
        model = halves.get("model")
        if model and ":" not in model:
            raise InvalidPolicy(
                f"{keys['model'].name}={model!r} ({source}) is not a model: write provider:model, "
                "such as google:gemini-2.5-flash"
            )
        return model
    if len(halves) == 2:
        return f"{halves['provider']}:{halves['model']}"
    if keys.keys() & {"provider", "model"}:
        missing = "model" if "provider" in halves else "provider"
        raise InvalidPolicy(
            f"{dialect.key_path(missing)} ({source}) is missing: name the {missing} there, or that "
            f"of the main agent as {dialect.agent}.{missing}"
        )
    return None


def _our_entries(entries: Mapping[str, Entry], values: Table, source: str) -> dict[str, Entry]:
    """Return the keys of `Settings` beside the design's table.

    Raises:
        InvalidPolicy: a key contradicts the table.
    """
    ours = flat_entries({key: values[key] for key in _OUR_KEYS if key in values}, source)
    for key, entry in ours.items():
        other = entries.get(key)
        if other and key.startswith("policy."):
            raise InvalidPolicy(
                f"{key}={entry.value!r} and {other.name}={other.value!r} ({source}) set the same: "
                "keep one of them"
            )
        if other and other.setting != entry.value:
            raise InvalidPolicy(
                f"{key}={entry.value!r} ({source}) contradicts the file, which says "
                f"{other.setting!r} by itself: leave one of them out"
            )
    return ours
