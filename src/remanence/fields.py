"""Type checks of the fields of settings."""

import re
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from remanence.errors import InvalidPolicy

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


def check_variable(name: str, value: str | None) -> None:
    """Raise `InvalidPolicy`, which does not repeat *value*, unless it can name a variable."""
    if value is not None and not _VARIABLE.fullmatch(value):
        raise InvalidPolicy(
            f"{name} is not the name of an environment variable: name the variable that has the "
            "key, in capitals such as OBSERVER_KEY, never the key itself"
        )


def check_fields(settings: object) -> None:
    """Raise `InvalidPolicy` for the first field whose value is not of the type that it has.

    Of types that are made of others, choices (`Literal`), unions and tuples are looked into.
    """
    kind: Any = type(settings)
    for name, hint in _hints(kind).items():
        value = getattr(settings, name)
        if not _fits(value, hint):
            raise impossible(name, value, f"use {_expected_type(hint)}")


def impossible(name: str, value: object, remedy: str) -> InvalidPolicy:
    """Return the error of a setting with an impossible value, with its remedy."""
    return InvalidPolicy(f"{name}={value!r} is impossible: {remedy}")


@cache
def _hints(kind: Any) -> Mapping[str, Any]:  # a class, and its hints
    return get_type_hints(kind)


def _fits(value: object, hint: Any) -> bool:  # as above
    origin, choices = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in choices
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in choices)
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_fits(item, choices[0]) for item in value)
    if hint in (int, float):
        kinds = (int, float) if hint is float else int
        return isinstance(value, kinds) and not isinstance(value, bool) and value == value
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def _expected_type(hint: Any) -> str:  # as above
    origin, choices = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in choices)
    if origin in (Union, UnionType):
        return " or ".join(_expected_type(choice) for choice in choices)
    if origin is tuple:
        return f"a tuple, each of {_expected_type(choices[0])}"
    names = {int: "a whole number", float: "a number", str: "a text", bool: "True or False"}
    return "None" if hint is NoneType else names.get(hint, getattr(hint, "__name__", str(hint)))
