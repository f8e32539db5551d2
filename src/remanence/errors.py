"""Exceptions of remanence.

RemanenceError
├── InvalidMessage            a message that is not allowed on a tape (also a ValueError)
│   └── MalformedTranscript   a transcript line that is not a message
├── WrongUser                 the conversation belongs to another user
├── ConversationErased        messages were deleted or forgotten meanwhile
├── DuplicateMessage          an id is taken by another message
├── InvalidPolicy             settings that contradict one another (also a ValueError)
│   └── InvalidSetting        one setting with an impossible value
├── InvalidArgument           an argument that a method does not accept (also a TypeError and a ValueError)
│   └── ConversationGrown     the conversation has more messages than expected
├── NotOpen                   Memory.open(...) was not awaited or entered, or not in asyncio (also an AttributeError)
├── ContextOverflow           system text and newest message exceed the model's window
├── ConversationNotFound      (also a LookupError)
├── TurnTaken                 another turn of the conversation is in progress
├── StoreError                the database failed
│   ├── StoreUnavailable      it cannot be opened or written: no directory, read-only, full, locked
│   │   └── OutcomeUnknown    a commit whose connection broke may or may not have taken effect
│   ├── NotADatabase          the file is not a database, or encrypted
│   └── NewerSchema           a later version of remanence migrated it
├── ObservationRejected       an observer's answer was unusable
├── ObservationSkipped        an observation or reflection was skipped on purpose
├── ModelError                a model call failed
├── ServiceError              the service cannot be reached, or refused a client's request
├── MissingExtra              an optional package is not installed (also an ImportError)
├── Deadlock                  a call would wait for the work that makes it (also a RuntimeError)
└── Closed                    the memory was closed, or its work has stopped, or it belongs to another process or event loop
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any


class RemanenceError(Exception):
    """The root of every error of this package; it can be pickled, as between processes."""

    _public: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:  # as its base class
        return _create, (type(self), *self.args), vars(self)

    @property
    def public(self) -> str:
        """The text for clients of a service, without addresses, paths or users of the server."""
        return str(self) if self._public is None else self._public


def _create(kind: type[RemanenceError], *args: object) -> RemanenceError:
    """Return an error without `__init__`, whose parameters are other ones than the text."""
    return kind.__new__(kind, *args)


class InvalidMessage(RemanenceError, ValueError):
    """A message that a tape does not accept; nothing was written."""


class MalformedTranscript(InvalidMessage):
    """A line of a transcript is not a message; the error names the line."""


class DuplicateMessage(RemanenceError):
    """A message id is taken by another message of the same conversation; nothing was written."""


class InvalidPolicy(RemanenceError, ValueError):
    """An impossible setting, or settings that contradict one another."""


class InvalidSetting(InvalidPolicy):
    """A setting with an impossible value; `name` is its field, `remedy` how to fix it."""

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"{name}={value!r:.200} is impossible: {remedy}")
        self.name = name
        self.remedy = remedy


class InvalidArgument(RemanenceError, TypeError, ValueError):
    """An argument that a method does not accept; nothing was read or written."""


class ConversationGrown(InvalidArgument):
    """A conversation has more messages than the caller expected; nothing was written."""


class NotOpen(RemanenceError, AttributeError):
    """The result of `Memory.open(...)` was used before it was entered or awaited in asyncio."""


class ContextOverflow(RemanenceError):
    """The system text and the newest message do not fit into the model's window."""


class ConversationNotFound(RemanenceError, LookupError):
    """No conversation has this id."""


class TurnTaken(RemanenceError):
    """Another turn of the conversation is in progress; nothing was written."""


class ConversationErased(RemanenceError):
    """Messages were deleted or forgotten since the conversation was read; nothing was written."""

    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"messages of conversation {conversation!r} were deleted or forgotten meanwhile: read it again"
        )


class WrongUser(RemanenceError):
    """A conversation belongs to another user, whom the error does not name; nothing was written."""

    def __init__(self, conversation: str, *, user: str | None) -> None:
        whom = "a handle that names no user" if user is None else f"user {user!r}"
        super().__init__(
            f"conversation {conversation!r} is not open to {whom}: name its user, or another "
            "conversation"
        )


class StoreError(RemanenceError):
    """The database failed; nothing was written, apart from earlier steps of an import or erasure."""

    def __init__(self, message: str, *, public: str | None = None) -> None:
        super().__init__(message)
        self._public = public


class StoreUnavailable(StoreError):
    """The database cannot be opened or written now.

    `remedy` is how to fix it, also the end of the text; by default what follows its last ": ".
    """

    def __init__(self, message: str, *, remedy: str = "", public: str | None = None) -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message, public=public)
        self.remedy = remedy or message.rpartition(": ")[2]


class OutcomeUnknown(StoreUnavailable):
    """The connection broke during a commit, and the server does not know if it took effect."""


class NotADatabase(StoreError):
    """Not a database that remanence can read, or one without its tables where none may be created."""


class NewerSchema(StoreError):
    """The database was written by a later version of remanence."""


class ObservationRejected(RemanenceError):
    """The answer of an observer or reflector was unusable; `reason` is a short code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ObservationSkipped(RemanenceError):
    """An observation or reflection was skipped on purpose; it is tried again later.

    `reason` is a short code; `until` is the earliest useful time for that, if known.
    """

    def __init__(self, reason: str, message: str, *, until: datetime | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.until = until


class ModelError(RemanenceError):
    """A model call failed.

    `reason` is a short code such as `auth`, `rate_limit`, `overloaded`, `too_long`, `refused` or
    `connection`; `retry_after_seconds` is the delay that the provider asked for. `log_text` is the
    text for logs, without words of the provider or a function, which may repeat a message.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        public: str | None = None,
        log_text: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.log_text = log_text
        self._public = public
        self.retry_after_seconds = retry_after_seconds


class ServiceError(RemanenceError):
    """The service cannot be reached, or refused a request.

    `status` is the HTTP status, None without a response; `code` is a short code such as `no_key`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class MissingExtra(RemanenceError, ImportError):
    """An optional package is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        # Not `pip install remanence[...]`: the project of that name on PyPI is another.
        super().__init__(
            f"{package!r} is not installed: add the extra {extra!r} to your installation of "
            f"remanence, such as by pip install '.[{extra}]' in a checkout"
        )


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Raise `MissingExtra` if a package of an extra cannot be imported in the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "remanence":  # no extra has it
            raise
        raise MissingExtra(extra, error.name or extra) from error


class Deadlock(RemanenceError, RuntimeError):
    """A call would wait for the work that makes it, such as `close()` in a hook."""


class Closed(RemanenceError):
    """The memory was closed, or its background work has stopped; open it again to continue."""
