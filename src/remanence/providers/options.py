"""Settings for the calls of a model."""

from dataclasses import dataclass, field, replace

from remanence.providers.connections import Connections
from remanence.validation import (
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    check_fields,
    check_variable,
)

TIMEOUT_SECONDS = 120.0
"""The default timeout of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Options of model calls: timeout, retries, limits and key.

    A call that takes longer than `timeout_seconds` fails; None means the timeout of a memory's
    observer (`Policy.observe_timeout_seconds`), elsewhere `TIMEOUT_SECONDS`. `attempts` includes
    the first one. A chain skips a model for `cooldown_seconds` after it failed. Requests and tokens
    per minute and `parallel` calls are limits for each provider. With `stream` the answer is
    streamed, which some servers need for long answers. `key_variable` is the environment variable
    of the key, by default that of the provider; in a chain only models of the first one's provider
    get that key. `connections` are kept open between calls, and
    closed by their owner; without them each call opens its own, except those of a memory.
    """

    timeout_seconds: PositiveFloat | None = None
    attempts: PositiveInt = 2
    cooldown_seconds: NonNegativeFloat = 60
    requests_per_minute: PositiveFloat | None = None
    tokens_per_minute: PositiveFloat | None = None
    parallel: PositiveInt = 8
    stream: bool = False
    key_variable: str | None = None
    connections: Connections | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_variable("key_variable", self.key_variable)
        check_fields(self)

    def with_connections(self, connections: Connections) -> "ModelOptions":
        """Return the options with *connections*, unless they have their own."""
        return self if self.connections else replace(self, connections=connections)

    @property
    def call_seconds(self) -> float:
        """The timeout of one call."""
        return TIMEOUT_SECONDS if self.timeout_seconds is None else self.timeout_seconds
