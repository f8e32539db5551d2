"""Configuration files of the source designs, translated to ours.

Each design has a table of keys with its own names and units; `translate` converts them. A file may
also have other tables of its host, which are ignored, and keys of `Settings`, which work as in a
file of ours. An unknown key in the memory's own table is an error.
"""

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from remanence.errors import InvalidPolicy
from remanence.settings import Preset, Settings

Table: TypeAlias = Mapping[str, Any]  # the content of a file, before it is checked
Values: TypeAlias = dict[str, Any]  # our keys; fields of a policy below `policy`

_OUR_KEYS = tuple(field.name for field in dataclasses.fields(Settings))


class Key(NamedTuple):
    """The type of a key's values, its settings in our terms, and its other spellings."""

    type: type
    settings: Callable[[Any], Mapping[str, Any]]  # a value of the key's own type
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The settings format of a design.

    `path` is that of its table in a file. A file without that table is also of this design if it
    has the design's name, or one of the tables in `hosts`; then the preset's defaults apply.
    """

    preset: Preset
    path: tuple[str, ...]
    keys: Mapping[str, Key]
    hosts: tuple[str, ...] = ()

    def key_path(self, name: str) -> str:
        """Return a key with its path."""
        return ".".join((*self.path, name))


class Translation(NamedTuple):
    """Settings in our terms, and the source and the original key and value of each."""

    values: Values
    origins: Mapping[str, str]
    written: Mapping[str, str]


class GivenKey(NamedTuple):
    """A key in the file's spelling, and its value."""

    name: str
    value: Any  # of the key's type, as `_given_keys` checks


def translate(values: Table, *, file: Path) -> Translation | None:
    """Translate the settings of a file in one of the dialects; None if it is in none of them.

    Raises:
        InvalidPolicy: the file is in two dialects, a key is unknown or given twice, or its value
            is not of its type.
    """
    tables = {dialect.preset: dialect for dialect in DIALECTS if _has_table(values, dialect.path)}
    if len(tables) > 1:
        found = " and ".join(".".join(dialect.path) for dialect in tables.values())
        raise InvalidPolicy(f"file {file.name} holds {found}: keep the one that should work")
    for dialect in tables.values():
        return _translate(dialect, _table(values, dialect, file), values, file)
    if set(values) & set(BRAIN.keys):
        bare = {name: value for name, value in values.items() if name not in _OUR_KEYS}
        return _translate(dataclasses.replace(BRAIN, path=()), bare, values, file)
    for dialect in DIALECTS:
        named = dialect.preset in (file.stem, file.parent.name.removeprefix("."))
        if named or any(isinstance(values.get(host), Mapping) for host in dialect.hosts):
            return _translate(dialect, {}, values, file)
    return None


def _has_table(values: Table, path: tuple[str, ...]) -> bool:
    found: object = values
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return False
        found = found[name]
    return True


def _table(values: Table, dialect: Dialect, file: Path) -> Table:
    found: Any = values  # checked by `_has_table`, down to the last step
    for name in dialect.path:
        found = found[name]
    if found is not None and not isinstance(found, Mapping):
        name = ".".join(dialect.path)
        raise InvalidPolicy(f"{name}={found!r} (file {file.name}) is not a table: write its keys")
    return found or {}


def _translate(dialect: Dialect, table: Table, whole: Table, file: Path) -> Translation:
    given = dict(_given_keys(dialect, table, file))
    policy: Values = {}
    written: dict[str, str] = {}
    origins = {"preset": f"file {file.name}"}

    def note(settings: Mapping[str, Any], name: str, value: object) -> None:
        policy.update(settings)
        for key in settings:
            origins[f"policy.{key}"] = f"file {file.name}: {name}"
            written[f"policy.{key}"] = f"{name}={value!r}"

    for name, (spelling, value) in given.items():
        note(dialect.keys[name].settings(value), dialect.key_path(spelling), value)
    if dialect is ZORA and "block_after_tokens" in given:
        spelling, tokens = given["block_after_tokens"]
        working = given.get("working_tier_max_tokens", GivenKey("", ZORA_WORKING_TOKENS)).value
        note({"block_after": tokens / max(1, working)}, dialect.key_path(spelling), tokens)
    main = _main_agent(dialect, whole)
    if window := main.get("model"):
        note({"model": window}, "agent.model", window)
    values: Values = {"preset": dialect.preset, "policy": policy}
    if model := _model(dialect, given, main, file):
        values["model"] = model
        origins["model"] = f"file {file.name}"
    _add_ours(values, origins, written, whole, file)
    return Translation(values, origins, written)


def _given_keys(dialect: Dialect, table: Table, file: Path) -> Iterator[tuple[str, GivenKey]]:
    """Yield the keys with a value, by their first spelling; null means the default."""
    names = {
        spelling: name for name, key in dialect.keys.items() for spelling in (name, *key.spellings)
    }
    seen: dict[str, str] = {}
    for spelling, value in table.items():
        if spelling not in names:
            raise _unknown(dialect, spelling, names, file)
        name = names[spelling]
        if other := seen.get(name):
            both = f"{dialect.key_path(other)} and {dialect.key_path(spelling)}"
            raise InvalidPolicy(f"{both} (file {file.name}) set the same: keep one of them")
        seen[name] = spelling
        if value is not None:
            yield name, GivenKey(spelling, _check_value(dialect, name, spelling, value, file))


def _unknown(dialect: Dialect, name: str, names: Mapping[str, str], file: Path) -> InvalidPolicy:
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(dialect.keys)}"
    return InvalidPolicy(f"{dialect.key_path(name)} (file {file.name}) is unknown: {hint}")


def _check_value(
    dialect: Dialect,
    name: str,
    spelling: str,
    value: Any,  # any type, as this is the check
    file: Path,
) -> Any:
    """Return the value as the key's type: a program may have written 1000 as 1000.0."""
    kind = dialect.keys[name].type
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if not fits or (kind is int and value < 0):
        remedy = {int: "a whole number, 0 or more", bool: "true or false", str: "a text"}[kind]
        raise InvalidPolicy(
            f"{dialect.key_path(spelling)}={value!r} (file {file.name}) is impossible: use {remedy}"
        )
    return value


def _main_agent(dialect: Dialect, whole: Table) -> Mapping[str, str]:
    """Return provider and model of lango's main agent, as far as the file names them."""
    agent = whole.get("agent")
    if dialect is not LANGO or not isinstance(agent, Mapping):
        return {}
    halves = ((name, agent.get(name)) for name in ("provider", "model"))
    return {name: value for name, value in halves if isinstance(value, str) and value}


def _model(
    dialect: Dialect, given: Mapping[str, GivenKey], main: Mapping[str, str], file: Path
) -> str | None:
    """Return the model for notes; lango fills in missing parts from its main agent."""
    own = {name: given[name].value for name in ("provider", "model") if name in given}
    halves = {**main, **{name: value for name, value in own.items() if value}}
    if dialect is ZORA:
        if (model := halves.get("model")) and ":" not in model:
            raise InvalidPolicy(
                f"{dialect.key_path(given['model'].name)}={model!r} (file {file.name}) is not a "
                "model: write provider:model, such as google:gemini-2.5-flash"
            )
        return model
    if len(halves) == 2:
        return f"{halves['provider']}:{halves['model']}"
    if own:
        missing = "model" if "provider" in halves else "provider"
        raise InvalidPolicy(
            f"{dialect.key_path(missing)} (file {file.name}) is missing: name the "
            f"{missing} there, or that of the main agent as agent.{missing}"
        )
    return None


def _add_ours(
    values: Values, origins: dict[str, str], written: Mapping[str, str], whole: Table, file: Path
) -> None:
    """Add the keys of `Settings` that are next to the design's table.

    Raises:
        InvalidPolicy: one contradicts the table.
    """
    ours = {name: whole[name] for name in _OUR_KEYS if name in whole}
    changes = ours.pop("policy", {})
    for name, value in ours.items():
        if name in values and values[name] != value:
            raise InvalidPolicy(
                f"{name}={value!r} (file {file.name}) contradicts the file, which says "
                f"{values[name]!r} by itself: leave one of them out"
            )
    if isinstance(changes, Mapping):
        for name, value in changes.items():
            if other := written.get(f"policy.{name}"):
                raise InvalidPolicy(
                    f"policy.{name}={value!r} and {other} (file {file.name}) set the same: keep "
                    "one of them"
                )
        changes = {**values["policy"], **changes}
        origins |= {f"policy.{name}": f"file {file.name}" for name in whole.get("policy", {})}
    values |= ours | {"policy": changes}
    origins |= dict.fromkeys(ours, f"file {file.name}")


def _nothing(_value: object) -> Mapping[str, Any]:  # a value that `_model` or `_translate` reads
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
            int, lambda value: {"tail_tokens": value, "tail_keep_tokens": value * 7 // 8}
        ),
    },
)

ZORA_WORKING_TOKENS = 30_000

ZORA = Dialect(
    preset="zora",
    path=("memory", "compression"),
    hosts=("memory",),
    keys={
        "enabled": Key(bool, lambda value: {"enabled": value}),
        "working_tier_max_tokens": Key(
            int,
            lambda value: {
                "observe_tokens": value,
                "tail_tokens": value,
                "tail_keep_tokens": value * 2 // 3,
            },
            ("workingTierMaxTokens",),
        ),
        "session_tier_max_tokens": Key(
            int, lambda value: {"reflect_tokens": (value,)}, ("sessionTierMaxTokens",)
        ),
        "cross_session_tier_max_tokens": Key(
            int, lambda value: {"facts_tokens": value}, ("crossSessionTierMaxTokens",)
        ),
        "chunk_size": Key(
            int,
            lambda value: {"observe_slice_messages": value},
            ("chunkSize", "compressionChunkSize"),
        ),
        "model": Key(str, _nothing, ("compressionModel",)),
        "async_buffer": Key(
            bool, lambda value: {} if value else {"precompute_at": None}, ("asyncBuffer",)
        ),
        "block_after_tokens": Key(int, _nothing, ("blockAfterTokens",)),
    },
)

BRAIN_REFLECT_RATIO = 0.6
BRAIN_OUTPUT_TOKENS = 32_000
MAX_OUTPUT_TOKENS = 64_000
"""The output limit of today's models."""


def _brain_reflection(threshold: int) -> Mapping[str, Any]:
    """A reflection must fit in one answer, so a larger log needs a longer one."""
    tokens = max(BRAIN_OUTPUT_TOKENS, int(threshold * BRAIN_REFLECT_RATIO))
    return {"reflect_tokens": (threshold,), "max_output_tokens": min(tokens, MAX_OUTPUT_TOKENS)}


BRAIN = Dialect(
    preset="brain",
    path=("MEMORY_CONFIG",),
    keys={
        "keepLastMessages": Key(int, lambda value: {"keep_last": value}),
        "keepLastToolSummaries": Key(int, lambda value: {"keep_last_tool_results": value}),
        "observeThresholdTokens": Key(
            int, lambda value: {"observe_tokens": value, "tail_tokens": value}
        ),
        "reflectThresholdTokens": Key(int, _brain_reflection),
        "reflectMinIntervalMinutes": Key(
            int, lambda value: {"reflect_min_interval_seconds": value * 60.0}
        ),
    },
)

DIALECTS = (LANGO, ZORA, BRAIN)
