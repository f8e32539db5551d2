"""One setting of a source, as its writer wrote it and as we read it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from remanence.errors import InvalidPolicy
from remanence.validation import is_of_type


class Entry(NamedTuple):
    """A setting in our terms; `name` and `value` are its own in `source`, such as `file lango.json`."""

    setting: object
    name: str
    value: object
    source: str
    translated: bool = False

    @property
    def origin(self) -> str:
        """The source, and the name that it has there if that is another one."""
        return f"{self.source}: {self.name}" if self.translated else self.source

    def error(self, problem: str) -> InvalidPolicy:
        """Return the error of an impossible value."""
        return InvalidPolicy(f"{self.name}={self.value!r} ({self.source}) is impossible: {problem}")


def flat_entries(values: Mapping[str, Any], source: str) -> dict[str, Entry]:
    """Return the entries of a source that has our keys, with the policy's in a table."""
    changes = values.get("policy", {})
    if not isinstance(changes, Mapping):
        raise InvalidPolicy(
            f"policy={changes!r} ({source}) is not a table: write its keys below it"
        )
    flat = {key: value for key, value in values.items() if key != "policy"}
    flat |= {f"policy.{key}": value for key, value in changes.items()}
    return {key: Entry(value, key, value, source) for key, value in flat.items()}


def whole_number(value: object, kind: Any) -> object:  # a type with its range
    """Return a number without its point where *kind* has none: a program may write 1000.0."""
    if isinstance(value, float) and value.is_integer() and not is_of_type(value, kind):
        return int(value)
    return value
