"""One setting of a source, as its writer wrote it and as we read it."""

from typing import NamedTuple

from remanence.errors import InvalidPolicy


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
