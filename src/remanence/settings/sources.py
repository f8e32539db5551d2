"""Sources of settings, in order of precedence: arguments, environment, a file, defaults.

`REMANENCE_URL`, `REMANENCE_POLICY__TAIL_TOKENS` and so on are the same keys as in the file, which is
`remanence.toml` or `remanence.json` in the working directory, or named by `REMANENCE_CONFIG`. The
file may also be in a dialect of `remanence.settings.compat`.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from remanence.errors import InvalidPolicy, InvalidSetting
from remanence.files import expand_home
from remanence.policy.policy import Policy
from remanence.settings import PREFIX, Settings, nearest_hint
from remanence.settings.compat import translate
from remanence.settings.entry import Entry, flat_entries, whole_number
from remanence.validation import check_value, field_types, is_of_type

CONFIG_VARIABLE = "REMANENCE_CONFIG"
_LIST_SETTINGS = "remove it; 'remanence config show' then lists the settings"
FILE_NAMES = ("remanence.toml", "remanence.json")
OTHER_VARIABLES = frozenset(
    {CONFIG_VARIABLE, "REMANENCE_DATA", "REMANENCE_DEBUG", "REMANENCE_WEBHOOK_SECRET"}
)
"""Variables with the prefix that are not settings, beside those that start with REMANENCE_TEST_."""
_SERVICE = r"_SERVICE_(HOST|PORT(_\w+)?)=|_PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://"
_SERVICE_PORT = r"_PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)="
_SERVICE_LINK: Final = re.compile(rf"\w+(?:{_SERVICE}|{_SERVICE_PORT}).*", re.DOTALL)
"""What Kubernetes sets in each pod beside a service, here one called `remanence` or `remanence-…`."""
ENVIRONMENT: Final = "environment"
CHAINS: Final = frozenset({"model", "observer_model", "reflector_model"})
"""Keys that may be a list of models, tried in order."""

_STRING = r'"(?:[^"\\]|\\.)*+"'
_LAST_COMMA = r",(?=(?:\s|//[^\n]*\n|/\*.*?\*/)*+[\]}])"
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)|{_LAST_COMMA}", re.DOTALL)
"""A comment, or a comma after the last item; a string may contain comment marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with the source of each value; keys are dotted, such as `policy.tail_tokens`.

    Keys that are not in `origins` have their default.
    """

    settings: Settings
    origins: Mapping[str, str]


def load_settings(*, arguments: Mapping[str, object], file: Path | None) -> LoadedSettings:
    """Read the settings once, at the start; arguments of None count as missing.

    Raises:
        InvalidPolicy: a key is unknown, or its value is impossible; the text names the key as in its
            source, the value, the source, and the remedy.
    """
    entries = {} if file is None else dict(_read_file(file))
    entries |= _read_environment()
    entries |= flat_entries({k: v for k, v in arguments.items() if v is not None}, "argument")
    values = {key: _check(key, entry) for key, entry in entries.items()}
    changes: dict[str, Any] = {  # checked above
        key.removeprefix("policy."): values.pop(key)
        for key in tuple(values)
        if key.startswith("policy.")
    }
    try:
        Policy.from_preset(values.get("preset", "default"), changes)
    except InvalidSetting as error:
        # Of contradicting values, name one that a source sets.
        words = (error.name, *re.findall(r"\w+", error.remedy))
        key = next((f"policy.{word}" for word in words if f"policy.{word}" in entries), None)
        if key is None:
            raise
        raise _refusal(key, entries[key], error) from error
    settings = Settings(**values, policy=changes)
    origins = {key: entry.origin for key, entry in entries.items()}
    return LoadedSettings(settings=settings, origins=origins)


def config_file(directory: Path) -> Path | None:
    """Return the path of the settings file, or None.

    Raises:
        InvalidPolicy: `REMANENCE_CONFIG` is not a file.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if not named:
        files = (directory / name for name in FILE_NAMES)
        return next((file for file in files if file.is_file()), None)
    file = directory / expand_home(named)
    if not file.is_file():
        raise InvalidPolicy(f"{CONFIG_VARIABLE}={named!r} is not a file: name a TOML or JSON file")
    return file


def variable(key: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + key.replace(".", "__").upper()


@cache
def _key_types() -> Mapping[str, Any]:  # types with their ranges
    types = {name: kind for name, kind in field_types(Settings).items() if name != "policy"}
    return types | {f"policy.{name}": kind for name, kind in field_types(Policy).items()}


def _read_environment() -> dict[str, Entry]:
    """Return the entries from the environment; empty variables count as missing."""
    types = _key_types()
    keys = {variable(key): key for key in ("policy", *types)}
    entries: dict[str, Entry] = {}
    for name, text in sorted(os.environ.items()):
        if not name.startswith(PREFIX) or _is_other(name, text) or (name in keys and not text):
            continue
        key, value = keys.get(name, name), None if text.lower() == "none" else text
        is_list = get_origin(types.get(key)) is tuple or (key in CHAINS and text[:1] == "[")
        if value and (key == "policy" or is_list):
            value = _read_json(name, text)
        if key == "policy":
            for field, entry in flat_entries({key: value}, ENVIRONMENT).items():
                entries[field] = entry._replace(name=variable(field))
        else:
            entries[key] = Entry(value, name, text, ENVIRONMENT)
    return entries


def _is_other(name: str, text: str) -> bool:
    """Return whether a variable with the prefix is not meant as a setting."""
    is_ours = name in OTHER_VARIABLES or name.startswith(f"{PREFIX}TEST_")
    return is_ours or _SERVICE_LINK.fullmatch(f"{name}={text}") is not None


def _read_json(name: str, text: str) -> Any:  # any JSON
    try:
        return json.loads(text)
    except ValueError as error:
        problem = "write lists and tables as JSON, such as [4000, 4000, 8000]"
        raise Entry(text, name, text, ENVIRONMENT).error(problem) from error


def _read_file(file: Path) -> Mapping[str, Entry]:
    is_json = file.suffix in (".json", ".jsonc")
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix == ".jsonc":  # blank out comments, so that errors name the right line
            text = _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
        values = json.loads(text) if is_json else tomllib.loads(text)
    except OSError as error:
        raise InvalidPolicy(
            f"{str(file)!r} cannot be read: {error.strerror}: give the path of a settings file"
        ) from error
    except ValueError as error:
        kind = "JSON" if is_json else "TOML"
        raise InvalidPolicy(f"{file.name} is not {kind}: {error}") from error
    if not isinstance(values, dict):
        raise InvalidPolicy(f"{file.name} holds {values!r}: write an object of settings")
    translated = translate(values, file=file.absolute())
    return flat_entries(values, f"file {file.name}") if translated is None else translated


def _check(key: str, entry: Entry) -> Any:  # of the type of its key
    """Return the value of a key, converted from what its source can express."""
    types = _key_types()
    if key not in types:
        names = (*types, "policy")
        known = [variable(name) if entry.source == ENVIRONMENT else name for name in names]
        hint = nearest_hint(entry.name, known, otherwise=_LIST_SETTINGS)
        raise InvalidPolicy(f"{entry.name} ({entry.source}) is unknown: {hint}")
    value: Any = entry.setting
    if key in CHAINS and not isinstance(value, str | None):
        if not (isinstance(value, list) and value and is_of_type(value, tuple[str, ...])):
            raise entry.error("use the name of a model, a list of names, or None")
        value = ", ".join(value)
    value = _convert(value, types[key], entry)
    try:
        check_value(key.removeprefix("policy."), value, types[key])
    except InvalidSetting as error:
        raise _refusal(key, entry, error) from error
    return value


def _convert(value: Any, hint: Any, entry: Entry) -> Any:  # of any type, as of a file
    """Convert a value to a type, or return it unchanged if that is impossible.

    The environment has numbers as strings; files have tuples as lists, and budgets as tables.

    Raises:
        InvalidPolicy: a table has an unknown field.
    """
    kind = next(iter(get_args(hint)), None)
    if isinstance(value, list) and is_dataclass(kind):
        return _read_tables(value, hint, entry)
    is_text = entry.source == ENVIRONMENT
    if isinstance(value, list | dict) or (is_text and isinstance(value, str)):
        with suppress(ValidationError):
            return TypeAdapter(hint).validate_python(value)
    return whole_number(value, hint)


def _read_tables(tables: list[Any], hint: Any, entry: Entry) -> Any:  # as above
    """Return tables as a tuple of objects."""
    known = field_types(get_args(hint)[0])
    unknown = (n for table in tables if isinstance(table, dict) for n in table if n not in known)
    for name in unknown:
        raise entry.error(f"a table has no {name!r}: {nearest_hint(name, [*known])}")
    try:
        return TypeAdapter(hint).validate_python(tables)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False)
        number, *fields = first["loc"]
        said = first["msg"].removeprefix("Value error, ")
        field = f" {fields[0]}={first['input']!r:.80}" if fields else ""
        problem = f"table {int(number) + 1}{field}: {said[:1].lower()}{said[1:]}"
        raise entry.error(problem) from error


def _refusal(key: str, entry: Entry, error: InvalidSetting) -> InvalidPolicy:
    """Return *error* in terms of the source that set *key*."""
    if entry.translated:
        return entry.error(f"it sets {key}, and {error}")
    return entry.error(error.remedy if key.removeprefix("policy.") == error.name else str(error))
