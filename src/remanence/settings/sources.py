"""Sources of settings: arguments, environment, a file, defaults; the first with a value counts.

`REMANENCE_URL`, `REMANENCE_POLICY__TAIL_TOKENS` and so on name the same keys as `remanence.toml`
or `remanence.json` in the working directory, or as the file in `REMANENCE_CONFIG`. That file may
also be in a dialect of `remanence.settings.compat`.
"""

import dataclasses
import difflib
import json
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from remanence.errors import InvalidPolicy
from remanence.settings import Settings
from remanence.settings.comments import strip_comments
from remanence.settings.compat import Translation, translate

PREFIX = "REMANENCE_"
CONFIG_VARIABLE = "REMANENCE_CONFIG"
FILE_NAMES = ("remanence.toml", "remanence.json")
OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "REMANENCE_DATA", "REMANENCE_DEBUG"})
"""Variables with the prefix that are not settings, like those that begin with REMANENCE_TEST_."""

Values: TypeAlias = dict[str, Any]  # from one source, before they are checked


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with the source of each value; keys are dotted, such as `policy.tail_tokens`.

    A key that is not in `origins` has its default. `file` is the file that was read.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None


def load_settings(
    policy_type: type,
    *,
    arguments: Mapping[str, object],
    directory: Path,
    file: Path | None = None,
) -> LoadedSettings:
    """Read settings once, at the start; *policy_type* is the dataclass whose fields may be set.

    *file* replaces the one in *directory*. An argument of None counts as not given.

    Raises:
        InvalidPolicy: a key is unknown, or a value is not of its type; the text names the key, its
            value, its source, and what to write.
    """
    models = _models(policy_type)
    file = file or config_file(directory)
    from_file, other = _read_file(file) if file else ({}, None)
    given = {key: value for key, value in arguments.items() if value is not None}
    sources: tuple[tuple[str, Values], ...] = (
        (f"file {file.name}" if file else "", from_file),
        ("environment", _read_environment(models.environment)),
        ("argument", given),
    )
    origins: dict[str, str] = {}
    merged: Values = {}
    for origin, values in sources:
        _check_table(values, origin)
        merged = {**merged, **values, "policy": merged.get("policy", {}) | values.get("policy", {})}
        origins |= dict.fromkeys(_keys(values), origin)
        if values is from_file and other:
            origins |= other.origins
    try:
        checked = models.values.model_validate(merged)
    except ValidationError as error:
        raise InvalidPolicy(_explain(error, origins, _known_keys(policy_type))) from error
    settings = _settings(checked)
    if file and other:
        _check_policy(policy_type, settings, other, file)
    return LoadedSettings(settings=settings, origins=origins, file=file)


def config_file(directory: Path) -> Path | None:
    """Return the path of the settings file, None if there is none.

    Raises:
        InvalidPolicy: `REMANENCE_CONFIG` is not a file.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if not named:
        files = (directory / name for name in FILE_NAMES)
        return next((file for file in files if file.is_file()), None)
    file = directory / named
    if not file.is_file():
        raise InvalidPolicy(f"{CONFIG_VARIABLE}={named!r} is not a file: name a TOML or JSON file")
    return file


def variable(key: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + key.replace(".", "__").upper()


class _Environment(BaseSettings):
    """Reader of the environment; `_models` adds the fields."""

    model_config = SettingsConfigDict(
        env_ignore_empty=True,
        env_nested_delimiter="__",
        env_parse_none_str="none",
        env_prefix=PREFIX,
    )


class _Models(NamedTuple):
    environment: type[_Environment]
    values: type[BaseModel]


@cache
def _models(policy_type: type) -> _Models:
    """Create models with the fields of `Settings`, and those of *policy_type* under `policy`."""
    strict = ConfigDict(extra="forbid")
    changes = create_model("PolicyChanges", __config__=strict, **_fields(policy_type))
    fields = _fields(Settings)
    fields["policy"] = (changes, None)
    fields["workers"] = (int, Field(default=None, ge=0))
    fields["daily_keep_days"] = (int, Field(default=None, ge=0))
    fields["blocks_keep_last"] = (int, Field(default=None, ge=1))
    fields["shutdown_timeout_seconds"] = (float, Field(default=None, ge=0))
    return _Models(
        create_model("Environment", __base__=_Environment, **fields),
        create_model("Values", __config__=strict, **fields),
    )


def _fields(of: type) -> dict[str, Any]:  # for create_model: a type and a default
    hints = get_type_hints(of)
    return {field.name: (hints[field.name], None) for field in dataclasses.fields(of)}


def _known_keys(policy_type: type) -> list[str]:
    keys = [field.name for field in dataclasses.fields(Settings) if field.name != "policy"]
    return keys + [f"policy.{field.name}" for field in dataclasses.fields(policy_type)]


def _keys(values: Values) -> Iterator[str]:
    yield from (key for key in values if key != "policy")
    yield from (f"policy.{key}" for key in values.get("policy", {}))


def _check_table(values: Values, origin: str) -> None:
    policy = values.get("policy", {})
    if not isinstance(policy, dict):
        raise InvalidPolicy(f"policy={policy!r} ({origin}) is not a table: write its keys below it")


def _read_file(file: Path) -> tuple[Values, Translation | None]:
    """Return the settings of a file, and their translation if it is in another dialect."""
    values = _parse(file)
    other = translate(values, file=file.absolute())
    return (other.values, other) if other else (values, None)


def _check_policy(
    policy_type: Any, settings: Settings, other: Translation, file: Path
) -> None:  # one with presets
    """Raise `InvalidPolicy` with the file's own key if values contradict each other."""
    try:
        getattr(policy_type, settings.preset)(**settings.policy)
    except InvalidPolicy as error:
        fields = (f"policy.{word}" for word in re.findall(r"\w+", str(error)))
        field = next((field for field in fields if field in other.written), None)
        if field is None:
            raise
        raise InvalidPolicy(
            f"{other.written[field]} (file {file.name}) is impossible: it sets {field}, and {error}"
        ) from error


def _parse(file: Path) -> Values:
    is_json = file.suffix in (".json", ".jsonc")
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix == ".jsonc":
            text = strip_comments(text)
        values = json.loads(text) if is_json else tomllib.loads(text)
    except OSError as error:
        raise InvalidPolicy(f"{file.name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        kind = "JSON" if is_json else "TOML"
        raise InvalidPolicy(f"{file.name} is not {kind}: {error}") from error
    if not isinstance(values, dict):
        raise InvalidPolicy(f"{file.name} holds {values!r}: write an object of settings")
    return values


def _read_environment(model: type[_Environment]) -> Values:
    known = {variable(key) for key in model.model_fields}
    for name in sorted(os.environ):
        ours = name.startswith(PREFIX) and not name.startswith(f"{PREFIX}TEST_")
        if ours and name not in OTHER_VARIABLES and name.split("__")[0] not in known:
            raise InvalidPolicy(f"environment variable {name} is unknown: {_hint(name, known)}")
    try:
        return EnvSettingsSource(model)()
    except SettingsError as error:
        text = getattr(error.__cause__, "doc", "")
        names = (name for name in os.environ if name.startswith(PREFIX))
        name = next((name for name in names if os.environ[name] == text), f"a {PREFIX} variable")
        raise InvalidPolicy(
            f"{name}={text!r} (environment) is impossible: write lists and tables as JSON, such "
            "as [4000, 4000, 8000]"
        ) from error


def _hint(name: str, known: Collection[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(sorted(known))}"


def _explain(error: ValidationError, origins: Mapping[str, str], known: list[str]) -> str:
    problems = []
    for problem in error.errors():
        key = ".".join(str(piece) for piece in problem["loc"][:2])
        origin = origins.get(key) or origins.get(str(problem["loc"][0]), "default")
        if problem["type"] == "extra_forbidden":
            problems.append(f"{key} ({origin}) is unknown: {_hint(key, known)}")
        else:
            remedy = problem["msg"][:1].lower() + problem["msg"][1:]
            problems.append(f"{key}={problem['input']!r} ({origin}) is impossible: {remedy}")
    return "; ".join(dict.fromkeys(problems))


def _settings(checked: BaseModel) -> Settings:
    given = {name: getattr(checked, name) for name in checked.model_fields_set}
    policy: BaseModel | None = given.pop("policy", None)
    changes = {name: getattr(policy, name) for name in policy.model_fields_set} if policy else {}
    return Settings(**given, policy=changes)
