"""Priority for the model calls of steps that were deferred by a rate limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from remanence.policy.schedule import DEFERRED
from remanence.types import Failure

_waited: ContextVar[bool] = ContextVar("waited", default=False)


@contextmanager
def calls_after(failure: Failure | None) -> Iterator[None]:
    """Mark the model calls within the block as those of a step that last ended with *failure*."""
    token = _waited.set(failure is not None and failure.reason == DEFERRED)
    try:
        yield
    finally:
        _waited.reset(token)


def has_waited() -> bool:
    """Return whether the calls of this task belong to a step that was deferred before."""
    return _waited.get()
