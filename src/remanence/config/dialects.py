"""The configuration files of the source designs, read as they are.

Each is a table of keys with other names and units; `translated` gives the same settings in ours.
A file may hold other tables of its host, which are left alone; an unknown key in the memory's own
table is refused.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from remanence.config import Preset
from remanence.errors import InvalidPolicy

Table: TypeAlias = Mapping[str, Any]  # what a file holds, before it is checked
Values: TypeAlias = dict[str, Any]  # our keys; those of a policy below `policy`


class Key(NamedTuple):
    """The type of a key's values, and the settings of ours that it stands for."""

    type: type
    settings: Callable[[Any], Mapping[str, Any]]  # a value of the key's own type


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A design's way to write its settings; `path` leads to its table in a file."""

    preset: Preset
    path: tuple[str, ...]
    keys: Mapping[str, Key]


class Translated(NamedTuple):
    """Settings in our terms, and the key that each came from."""

    values: Values
    origins: Mapping[str, str]


def translated(file_values: Table, *, file_name: str) -> Translated | None:
    """The settings of a file in one of the dialects; None if it is in none of them.

    Raises:
        InvalidPolicy: a key is unknown, or its value is not of its type.
    """
    for dialect in DIALECTS:
        table = _table(file_values, dialect.path)
        if table is not None:
            return _translated(dialect, table, file_values, file_name)
    if file_values and set(file_values) <= set(BRAIN.keys):
        return _translated(BRAIN, file_values, file_values, file_name)
    return None


def _table(values: Table, path: tuple[str, ...]) -> Table | None:
    found: object = values
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found if isinstance(found, Mapping) else None


def _translated(dialect: Dialect, table: Table, whole: Table, file_name: str) -> Translated:
    policy: Values = {}
    origins = {"preset": f"file {file_name}"}
    for name, value in table.items():
        _check(dialect, name, value, file_name)
        settings = dialect.keys[name].settings(value)
        policy |= settings
        written = ".".join((*dialect.path, name))
        origins |= {f"policy.{key}": f"file {file_name}: {written}" for key in settings}
    _finish(dialect, table, policy)
    values: Values = {"preset": dialect.preset, "policy": policy}
    for key, model in _models(dialect, table, whole, file_name):
        values[key] = model
        origins[key] = f"file {file_name}"
    return Translated(values, origins)


def _check(
    dialect: Dialect,
    name: str,
    value: Any,  # of any type, which is what is checked
    file_name: str,
) -> None:
    key = dialect.keys.get(name)
    written = ".".join((*dialect.path, name))
    if key is None:
        nearest = difflib.get_close_matches(name, dialect.keys, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(dialect.keys)}"
        raise InvalidPolicy(f"{written} (file {file_name}) is unknown: {hint}")
    fits = isinstance(value, key.type) and isinstance(value, bool) == (key.type is bool)
    if not fits or (key.type is int and value < 0):
        wanted = {int: "a whole number, 0 or more", bool: "true or false", str: "a text"}[key.type]
        raise InvalidPolicy(f"{written}={value!r} (file {file_name}) is impossible: use {wanted}")


def _finish(dialect: Dialect, table: Table, policy: Values) -> None:
    """A limit that zora writes in tokens is a multiple of the working tier here."""
    if dialect is ZORA and "block_after_tokens" in table:
        working_tokens = table.get("working_tier_max_tokens", ZORA_WORKING_TOKENS)
        policy["block_after"] = table["block_after_tokens"] / working_tokens


def _models(
    dialect: Dialect, table: Table, whole: Table, file_name: str
) -> Iterator[tuple[str, str]]:
    """The model that makes notes; lango takes each half that is missing from its main agent."""
    agent = whole.get("agent")
    main: Table = agent if dialect is LANGO and isinstance(agent, Mapping) else {}
    provider = table.get("provider") or main.get("provider")
    model = table.get("model") or main.get("model")
    if dialect is ZORA and model:
        yield "model", str(model)
    elif provider and model:
        yield "model", f"{provider}:{model}"
    elif "provider" in table or "model" in table:
        missing = "model" if provider else "provider"
        raise InvalidPolicy(
            f"{'.'.join((*dialect.path, missing))} (file {file_name}) is missing: name the "
            f"{missing} there, or that of the main agent as agent.{missing}"
        )


def _nothing(_value: object) -> Mapping[str, Any]:  # a value that `_models` or `_finish` reads
    return {}


LANGO = Dialect(
    preset="lango",
    path=("observationalMemory",),
    keys={
        "enabled": Key(bool, lambda value: {"enabled": value}),
        "provider": Key(str, _nothing),
        "model": Key(str, _nothing),
        "messageTokenThreshold": Key(int, lambda value: {"observe_tokens": value}),
        "observationTokenThreshold": Key(int, lambda value: {"reflect_tokens": (value, value)}),
        "maxMessageTokenBudget": Key(
            int, lambda value: {"tail_tokens": value, "tail_keep_tokens": value * 3 // 4}
        ),
    },
)

ZORA_WORKING_TOKENS = 30_000

ZORA = Dialect(
    preset="zora",
    path=("memory", "compression"),
    keys={
        "enabled": Key(bool, lambda value: {"enabled": value}),
        "working_tier_max_tokens": Key(
            int,
            lambda value: {
                "observe_tokens": value,
                "tail_tokens": value,
                "tail_keep_tokens": value * 2 // 3,
            },
        ),
        "session_tier_max_tokens": Key(int, lambda value: {"reflect_tokens": (value,)}),
        "cross_session_tier_max_tokens": Key(int, lambda value: {"facts_tokens": value}),
        "chunk_size": Key(int, lambda value: {"observe_slice_messages": value}),
        "model": Key(str, _nothing),
        "async_buffer": Key(bool, lambda value: {} if value else {"precompute_at": None}),
        "block_after_tokens": Key(int, _nothing),
    },
)

BRAIN = Dialect(
    preset="brain",
    path=("MEMORY_CONFIG",),
    keys={
        "keepLastMessages": Key(int, lambda value: {"keep_last": value}),
        "keepLastToolSummaries": Key(int, lambda value: {"keep_last_tool_results": value}),
        "observeThresholdTokens": Key(
            int, lambda value: {"observe_tokens": value, "tail_tokens": value}
        ),
        "reflectThresholdTokens": Key(int, lambda value: {"reflect_tokens": (value,)}),
        "reflectMinIntervalMinutes": Key(
            int, lambda value: {"reflect_min_interval_seconds": value * 60.0}
        ),
    },
)

DIALECTS = (LANGO, ZORA, BRAIN)
