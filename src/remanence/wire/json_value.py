"""Plain JSON values, from SDK objects and from strictly parsed text."""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, runtime_checkable

from remanence.errors import InvalidMessage

JsonObject: TypeAlias = dict[str, Any]  # a provider's JSON: its shape is the provider's
T = TypeVar("T")

_TYPES: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


@runtime_checkable
class ClientObject(Protocol):
    """A Pydantic model, the base of all objects of the providers' SDKs."""

    def model_dump(self, *args: Any, **options: Any) -> Any: ...  # as Pydantic's


MAX_BITS = 4_096
"""Maximum size of an integer; Python's JSON parser rejects more than 4,300 digits."""

MAX_DEPTH = 100
"""Maximum nesting that every parser on the way to a provider accepts."""


def json_object(value: object, what: str) -> JsonObject:
    """Convert an SDK's object, or a mapping with such objects in it, to plain JSON.

    *what* is its name in error messages.

    Raises:
        InvalidMessage: *value* is neither, or contains a value that JSON cannot represent.
    """
    plain = json_value(value, what)
    if not isinstance(plain, dict):
        raise InvalidMessage(
            f"{what} {value!r:.80} is a {type(value).__name__}: pass a dict or the SDK's object"
        )
    return plain


def json_value(value: object, what: str, depth: int = MAX_DEPTH) -> Any:  # any JSON
    """Convert *value* to plain JSON; unset fields of SDK objects are left out."""
    if depth < 0:
        raise InvalidMessage(f"{what} is nested deeper than {MAX_DEPTH} levels: make it flatter")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) and value.bit_length() <= MAX_BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {_key(key, what): json_value(item, what, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item, what, depth - 1) for item in value]
    if isinstance(value, ClientObject) and not isinstance(value, type):
        return json_value(_dump(value, what), what, depth)
    if isinstance(value, int):
        raise InvalidMessage(
            f"{what} holds an integer of {value.bit_length():,} bits, and the most is {MAX_BITS:,}: "
            "write it as text"
        )
    raise InvalidMessage(
        f"{what} holds a value {quote(value)} that JSON cannot represent: "
        "use text, finite numbers, lists and dicts"
    )


def require_type(value: object, kind: type[T], what: str) -> T:
    """Return *value* if it is of type *kind*; *what* is its name in error messages."""
    if not isinstance(value, kind):
        raise InvalidMessage(f"{what} is {value!r:.80}: pass {_TYPES[kind]}")
    return value


def dumps(value: object, *, sort_keys: bool = False) -> str:
    """Return *value* as compact JSON text."""
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"{quote(value)} is not JSON ({error}): use plain JSON") from error


def quote(value: object) -> str:
    """Return the start of a value's repr for an error message; never raises."""
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001 - a repr may raise anything, as that of a number too long
        return f"of type {type(value).__name__}"


def loads(text: str) -> Any:  # any JSON
    """Parse JSON text that every provider accepts.

    Raises:
        ValueError: *text* is not JSON, is nested deeper than `MAX_DEPTH`, or contains NaN, a number
            beyond the range of doubles, or a lone surrogate.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
        depth = _depth(value)
    except RecursionError:
        depth = MAX_DEPTH + 1
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def read_object(text: str | bytes) -> JsonObject | None:
    """Parse *text* as a JSON object; None if it is anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _key(key: object, what: str) -> str:
    if not isinstance(key, str):
        raise InvalidMessage(f"{what} has the key {quote(key)}: JSON keys are strings")
    return key


def _dump(model: ClientObject, what: str) -> object:
    try:
        return model.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(
            f"{what}, a {type(model).__name__}, cannot be written as JSON ({error}): "
            "pass a dict of plain JSON"
        ) from error


def _depth(value: Any) -> int:  # any JSON
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
