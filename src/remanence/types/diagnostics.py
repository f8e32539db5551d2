"""Diagnostics of a conversation's memory, for operators."""

from dataclasses import dataclass

from remanence.types.state import MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationLog:
    """The live notes; `version` grows by one with each observation and reflection.

    `lock_version` is that of the log entry that added the newest of them.
    """

    version: int
    lock_version: int
    token_count: int
    text_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """The state of a conversation's memory in a few numbers.

    `memory_state` is None before the first message, `observation_log` before the first notes.
    `observed_message_id` is the newest message that an observation covers. `observation_count` and
    `total_observation_tokens` count all observations, also those that a reflection replaced.
    """

    memory_state: MemoryState | None
    observed_message_id: str | None
    observation_log: ObservationLog | None
    observation_count: int
    total_observation_tokens: int
