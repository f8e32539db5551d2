"""Validation of public methods' arguments, before they reach a thread or a database."""

import inspect
import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from remanence.errors import InvalidArgument, InvalidMessage

_HOST_NAME: Final = re.compile(r"[^\s:/?#@*\[\]]+|\[[0-9A-Fa-f:.]+\]")  # or an IPv6 address
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\sA-Z/?#@*]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_JOINERS: Final = {0x200C: None, 0x200D: None}
"""Characters that join letters or keep them apart, as words of Persian and Hindi need."""
MAX_COUNT: Final = 2**31 - 1
_EXAMPLES: Final[dict[type, str]] = {tzinfo: ", such as zoneinfo.ZoneInfo('Europe/Berlin')"}


def require_name(label: str, value: object) -> None:
    """Raise `InvalidMessage` unless *value* can name a user, a tenant or a conversation."""
    if not isinstance(value, str) or not value.translate(_JOINERS):
        as_text = f", such as {str(value)!r}" if isinstance(value, int) else ""
        raise InvalidMessage(f"{label} {value!r:.80} is not a name: use plain text{as_text}")
    if wrong := next((c for c in value.translate(_JOINERS) if not c.isprintable()), ""):
        raise InvalidMessage(f"{label} {value!r:.80} is not a name: leave out {wrong!r}")


def require_no_control(label: str, text: str) -> None:
    """Raise `InvalidMessage` for a text with a control character, such as a line break."""
    if wrong := _CONTROL.search(text):
        raise InvalidMessage(
            f"{label} {text!r:.80} has a control character: leave out {wrong[0]!r}"
        )


def require_text(*, optional: bool = False, **values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not a string, or None if *optional*."""
    for name, value in values.items():
        if name.endswith("_id") and isinstance(getattr(value, "id", None), str):
            raise _impossible(name, value, "use a str, its id")
    require_one_of(str, optional=optional, **values)


def require_unicode(**values: str | Sequence[str] | None) -> None:
    """Raise `InvalidArgument` for the first text with a NUL character or a lone surrogate."""
    for name, value in values.items():
        for text in (value,) if isinstance(value, str) else value or ():
            if problem := bad_character(text):
                raise InvalidArgument(f"{name} {problem}")


def bad_character(text: str) -> str | None:
    """Return where *text* has a character that no database or request takes, and the remedy."""
    if (position := text.find("\0")) >= 0:
        return f"has a NUL character at position {position}: remove it"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"has the lone surrogate {text[error.start]!r} at position {error.start}: "
            "leave it out, or replace it by U+FFFD"
        )
    return None


def require_words(**values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not a string, or that is blank."""
    require_text(optional=False, **values)
    for name, value in values.items():
        if not str(value).strip():
            raise _impossible(name, value, "use a text with words")


def require_path(**values: object) -> None:
    """Raise `InvalidArgument` for the first value that cannot name a file."""
    for name, value in values.items():
        if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
            raise _impossible(name, value, "use the path of a file")
        if "://" in str(value):
            raise _impossible(name, value, "use the path of a file, not a URL")


def require_texts(**values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not a list or tuple of strings."""
    for name, value in values.items():
        if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
            raise _impossible(name, value, "use a list or tuple of str")


def require_choices(known: Collection[str], **values: Sequence[str]) -> None:
    """Raise `InvalidArgument` for the first value that is not a list or tuple of *known* strings."""
    require_texts(**values)
    for name, value in values.items():
        for text in set(value).difference(known):
            raise _impossible(name, text, f"known are {', '.join(known)}")


def require_http_url(**values: str) -> None:
    """Raise `InvalidArgument` for the first value that is not an HTTP URL."""
    for name, value in values.items():
        if not is_http_url(value):
            raise _impossible(name, value, "use a URL that begins with https:// or http://")


def require_provider_url(**values: str) -> None:
    """Raise `InvalidArgument` for the first value that is not an HTTP URL, or has a user or password."""
    require_http_url(**values)
    for name, value in values.items():
        if "@" in urlsplit(value).netloc:  # the error must not repeat the password
            raise InvalidArgument(
                f"{name} has a user or password, which would replace the provider's key: leave it out, "
                "as keys come from clients or from OPENAI_API_KEY and ANTHROPIC_API_KEY"
            )


def require_origins(**values: Collection[str]) -> None:
    """Raise `InvalidArgument` for the first string that is not an origin as browsers send it."""
    for name, value in values.items():
        for text in value:
            if not _ORIGIN.fullmatch(text):
                remedy = "use scheme://host or scheme://host:port in lower case, without a path"
                raise _impossible(name, text, f"{remedy}, such as https://app.example.com")


def require_host_names(**values: Collection[str]) -> None:
    """Raise `InvalidArgument` for the first string that is not a bare host name."""
    for name, value in values.items():
        for text in value:
            if not _HOST_NAME.fullmatch(text):
                remedy = "use a host name without scheme, port and path, such as memory.example.com"
                raise _impossible(name, text, remedy)


def require_count(*, optional: bool = False, **values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not a whole number of at least 0."""
    for name, value in values.items():
        if optional and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
            no_limit = ", or None" if optional else ""
            raise _impossible(name, value, f"use a whole number from 0 to {MAX_COUNT:,}{no_limit}")


def require_amount(*, optional: bool = False, **values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not a finite number of at least 0."""
    for name, value in values.items():
        if optional and value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < inf:
            no_amount = ", or None" if optional else ""
            raise _impossible(name, value, f"use a number of at least 0{no_amount}")


def require_moment(**values: object) -> None:
    """Raise `InvalidArgument` for the first value that is neither None nor an aware time.

    A time must be within the years 1 to 9999 in UTC.
    """
    for name, value in values.items():
        if value is None:
            continue
        if not isinstance(value, datetime):
            raise _impossible(name, value, "use a datetime with a time zone")
        try:
            offset = value.utcoffset()
        except ValueError:  # pandas.NaT is a datetime that is no time
            raise _impossible(name, value, "use a datetime with a time zone") from None
        if offset is None:
            raise _impossible(name, value, "give it a time zone, such as datetime.UTC")
        try:
            value.astimezone(UTC)
        except OverflowError:
            remedy = "use a time that is within the years 1 to 9999 in UTC"
            raise _impossible(name, value.isoformat(), remedy) from None


def require_one_of(kind: type, /, *, optional: bool = False, **values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not of *kind*, or None if *optional*."""
    for name, value in values.items():
        if not isinstance(value, kind) and not (optional and value is None):
            raise _impossible(name, value, f"use a {kind.__name__}{_EXAMPLES.get(kind, '')}")


def require_object(source: object) -> None:
    """Raise `InvalidArgument` for a class, which has the methods of its objects."""
    if isinstance(source, type):
        name = source.__name__
        raise InvalidArgument(f"{name} is a class: pass an object of it, such as {name}()")


def require_async(*, or_pieces: bool = False, **values: object) -> None:
    """Raise `InvalidArgument` for the first value that is not an async callable.

    With *or_pieces*, async generators are allowed. Lambdas and builtins pass, as they may return an
    awaitable.
    """
    for name, value in values.items():
        if not callable(value):
            raise _impossible(name, value, "use an async function")
        yields = inspect.isasyncgenfunction(_function_of(value))
        if is_plain(value) or (yields and not or_pieces):
            remedy = "return the text instead of yielding it" if yields else "write async def"
            raise _impossible(name, value, f"{remedy}, as it is awaited")


def require_async_methods(label: str, value: object, *methods: str) -> None:
    """Raise `InvalidArgument` for the first named method of *value* that is not async."""
    for method in methods:
        require_async(**{f"{label}.{method}": getattr(value, method)})


def is_async(value: object) -> bool:
    """Return whether a callable is an async function, or calls one."""
    return inspect.iscoroutinefunction(_function_of(value))


def is_plain(value: object) -> bool:
    """Return whether a callable is a sync function; lambdas and builtins may return an awaitable."""
    function = _function_of(value)
    is_named = inspect.isfunction(function) and function.__name__ != "<lambda>"
    return is_named and not (is_async(value) or inspect.isasyncgenfunction(function))


def _function_of(value: Any) -> Any:  # any callable
    """Return the function behind a partial, a decorator, a method or a callable object."""
    while isinstance(value, partial):
        value = value.func
    value = inspect.unwrap(value)
    if inspect.ismethod(value):
        return inspect.unwrap(value.__func__)
    if inspect.isroutine(value) or inspect.isclass(value):
        return value
    return inspect.unwrap(type(value).__call__)


def is_http_url(value: str) -> bool:
    """Return whether a string is an HTTP URL with a host."""
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number, or the host not an address
        return False


def _impossible(name: str, value: object, remedy: str) -> InvalidArgument:
    return InvalidArgument(f"{name}={value!r:.80} is impossible: {remedy}")
