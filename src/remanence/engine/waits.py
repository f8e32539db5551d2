"""Steps that had to wait for a limit of a model: their calls go first."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from remanence.policy.schedule import DEFERRED
from remanence.types import Failure

_waited: ContextVar[bool] = ContextVar("waited", default=False)


@contextmanager
def calls_after(failure: Failure | None) -> Iterator[None]:
    """Mark the calls within as those of a step whose last try ended so."""
    token = _waited.set(failure is not None and failure.reason == DEFERRED)
    try:
        yield
    finally:
        _waited.reset(token)


def has_waited() -> bool:
    """Return whether the calls of this task belong to a step that waited."""
    return _waited.get()
