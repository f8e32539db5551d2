"""A setting from a source, as written there and as read by us."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from remanence.errors import InvalidPolicy
from remanence.validation import is_of_type


class Entry(NamedTuple):
    """A setting by our key; `name` and `value` are as written in `source`, such as `file lango.json`."""

    setting: object
    name: str
    value: object
    source: str
    translated: bool = False

    @property
    def origin(self) -> str:
        """The source, with the setting's name there if it differs from ours."""
        return f"{self.source}: {self.name}" if self.translated else self.source

    def error(self, problem: str) -> InvalidPolicy:
        """Return the error for an impossible value."""
        return InvalidPolicy(f"{self.name}={self.value!r} ({self.source}) is impossible: {problem}")


def flat_entries(values: Mapping[str, Any], source: str) -> dict[str, Entry]:
    """Return the entries of a source with our keys, and the policy's keys in a table."""
    changes = values.get("policy", {})
    if not isinstance(changes, Mapping):
        raise InvalidPolicy(
            f"policy={changes!r} ({source}) is not a table: write its keys below it"
        )
    flat = {key: value for key, value in values.items() if key != "policy"}
    flat |= {f"policy.{key}": value for key, value in changes.items()}
    return {key: Entry(value, key, value, source) for key, value in flat.items()}


def whole_number(value: object, kind: Any) -> object:  # a type with its range
    """Return a number as an int if *kind* is one, as programs may write 1000.0."""
    if isinstance(value, float) and value.is_integer() and not is_of_type(value, kind):
        return int(value)
    return value
