"""Validation of settings by the type and range of each field."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from remanence.errors import InvalidPolicy, InvalidSetting


class Range(NamedTuple):
    """A condition on the values of a field, and the remedy for values that fail it."""

    accepts: Callable[[Any], bool]  # a value of the field's type
    remedy: str

    def __repr__(self) -> str:
        return f"Range({self.remedy!r})"


MAX_NUMBER: Final = 10**10
"""The largest number of a setting, so that a number of seconds from now is still a valid date."""

_POSITIVE: Final = Range(lambda value: value > 0, "use a positive number")
_NOT_NEGATIVE: Final = Range(lambda value: value >= 0, "use 0 or more")
_SHARE: Final = Range(lambda value: 0 < value <= 1, "use a share between 0 and 1")

PositiveInt: TypeAlias = Annotated[int, _POSITIVE]
PositiveFloat: TypeAlias = Annotated[float, _POSITIVE]
NonNegativeInt: TypeAlias = Annotated[int, _NOT_NEGATIVE]
NonNegativeFloat: TypeAlias = Annotated[float, _NOT_NEGATIVE]
Share: TypeAlias = Annotated[float, _SHARE]

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


def check_variable(name: str, value: str | None) -> None:
    """Raise `InvalidPolicy` unless *value* can name a variable; the error does not repeat it."""
    if value is not None and not _VARIABLE.fullmatch(value):
        raise InvalidPolicy(
            f"{name} is not the name of an environment variable: write the name of the variable "
            "that has the key, such as OBSERVER_KEY, never the key itself"
        )


def check_fields(settings: object) -> None:
    """Raise `InvalidSetting` for the first field with an impossible value."""
    kind: Any = type(settings)  # hashable, unlike what `type[object]` promises
    for name, hint in field_types(kind).items():
        check_value(name, getattr(settings, name), hint)


def check_value(name: str, value: object, hint: Any) -> None:  # a type, with its ranges
    """Raise `InvalidSetting` unless *value* has the type and range of *hint*."""
    if not is_of_type(value, hint):
        raise InvalidSetting(name, value, f"use {type_text(hint)}")
    if remedy := _range_remedy(value, hint):
        raise InvalidSetting(name, value, remedy)


@cache
def field_types(kind: Any) -> Mapping[str, Any]:  # a class, and its types with their ranges
    """Return the types of a class's fields, annotated with their ranges."""
    return get_type_hints(kind, include_extras=True)


def is_of_type(value: object, hint: Any) -> bool:  # as above
    """Return whether *value* has a type, ignoring its range.

    Checks the members of `Literal`, union and tuple types.
    """
    origin, choices = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return is_of_type(value, choices[0])
    if origin is Literal:
        return value in choices
    if origin in (Union, UnionType):
        return any(is_of_type(value, choice) for choice in choices)
    if origin is tuple:
        return isinstance(value, tuple | list) and all(is_of_type(v, choices[0]) for v in value)
    if hint in (int, float):
        kinds = (int, float) if hint is float else int
        return isinstance(value, kinds) and not isinstance(value, bool) and value == value
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def _range_remedy(value: Any, hint: Any) -> str:  # as above
    """Return the remedy for a value out of range; empty if it is in range."""
    if isinstance(value, int | float) and value > MAX_NUMBER:
        return f"use at most {MAX_NUMBER:,}"
    origin, choices = get_origin(hint), get_args(hint)
    if origin is Annotated:
        ranges = (each for each in choices[1:] if isinstance(each, Range))
        return next((each.remedy for each in ranges if not each.accepts(value)), "")
    if origin in (Union, UnionType):
        own = next(choice for choice in choices if is_of_type(value, choice))
        remedy = _range_remedy(value, own)
        return f"{remedy}, or None" if remedy and NoneType in choices else remedy
    if origin is tuple:
        return next((text for each in value if (text := _range_remedy(each, choices[0]))), "")
    return ""


def type_text(hint: Any, *, series: str = "a list") -> str:  # as above
    """Return a type's name for an error; a tuple is a *series*, as settings also accept lists."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return type_text(choices[0], series=series)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in choices)
    if origin in (Union, UnionType):
        return " or ".join(type_text(choice, series=series) for choice in choices)
    if origin is tuple:
        return f"{series}, each of {type_text(choices[0], series=series)}"
    if origin is Mapping:
        return "a dict"
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    return "None" if hint is NoneType else names.get(hint, getattr(hint, "__name__", str(hint)))
