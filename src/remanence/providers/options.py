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

    Attributes:
        timeout_seconds: the time limit of a call; by default `Policy.observe_timeout_seconds` for a
            memory's observer, and `TIMEOUT_SECONDS` elsewhere.
        attempts: the number of attempts, including the first.
        cooldown_seconds: how long a chain skips a failed model.
        requests_per_minute, tokens_per_minute, parallel: limits per provider.
        stream: stream the answer, which some servers need for long answers.
        key_variable: the environment variable of the key, by default the provider's; in a chain, only
            models of the first one's provider get that key.
        connections: a pool kept open between calls and closed by its owner; by default a memory has
            its own, and any other call opens a new connection.
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
        """Return the options with *connections*, unless they already have some."""
        return self if self.connections else replace(self, connections=connections)

    @property
    def call_seconds(self) -> float:
        """The timeout of one call."""
        return TIMEOUT_SECONDS if self.timeout_seconds is None else self.timeout_seconds
