"""Settings of a running memory."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from remanence.errors import InvalidPolicy
from remanence.policy.policy import Policy
from remanence.policy.presets import PolicyValue, Preset
from remanence.types import Budget
from remanence.validation import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    check_fields,
    check_variable,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Read once, when a memory opens.

    Attributes:
        url: the URL of the database, such as `sqlite:///memory.db`.
        preset: the policy that the `policy` values change.
        policy: changes to the preset, by field name.
        model: the model of observer and reflector, such as `anthropic:claude-haiku-4-5`, or several,
            tried in order: `anthropic:claude-haiku-4-5, openai:gpt-5-mini`, in a file also a list;
            None: the embedded ones, which need no model.
        observer_model: the model of the observer instead of *model*.
        reflector_model: the model of the reflector instead of *model*.
        model_key_variable: the environment variable of the key for *model*; None: that of its
            provider, such as `ANTHROPIC_API_KEY`. Of several models only those of the first one's
            provider get it.
        observer_key_variable: the same for the observer's model.
        reflector_key_variable: the same for the reflector's model.
        durability: of a SQLite file: `full` survives power loss, `normal` only a killed process.
        lease_seconds: the time after a crash until other processes may take over its conversations;
            those that share a file notice within a further minute.
        turn_wait_seconds: the longest wait of a chat's turn for another turn of the conversation.
        workers: the number of conversations observed or reflected in parallel; 0: work is only done
            by calls that wait for it, such as `flush`.
        observer_processes: the number of processes in which observing, reflecting and extracting
            without a model are computed; 0: in this process. A program that sets it must open the
            memory under `if __name__ == "__main__"`, as processes that are started import it.
        parallel_slices: the number of stretches of one conversation that are observed in parallel
            while so many are due, as after an import; their notes do not know one another.
        engine: `local` looks for background work in each process that opens the memory;
            `procrastinate` has the processes on a PostgreSQL database share it as jobs.
        shutdown_timeout_seconds: the longest wait for steps in progress on closing.
        blocks_directory: the directory for notes of ended conversations as JSON Lines, such as
            `~/.zora/memory/observations`; none by default.
        blocks_keep_last: the number of blocks kept there for each conversation.
        daily_directory: the directory of daily notes, a Markdown file per day and user; none by
            default.
        daily_keep_days: the age in days at which daily notes are summarised and archived.
        superseded_keep_days: the days that segments stay after a reflection replaced them. Of each
            kind of rows what none of its two rules keeps is deleted, and without rules nothing is;
            the last 24 hours always stay.
        superseded_keep_last: the number of newest replaced segments of a conversation that stay.
        log_keep_days: the days that entries of a conversation's log stay; the newest one always does.
        log_keep_last: the number of newest entries of a conversation's log that stay.
        usage_keep_days: the days that model calls stay in the ledger.
        usage_keep_last: the number of newest model calls that stay in the ledger.
        vectors_keep_days: the days that messages are found by their vectors; by words they always are.
        vectors_keep_last: the number of newest messages of a conversation whose vectors stay.
        calls_per_minute: the most calls of a model in any minute for the background work of all
            processes on the database together; what is beyond waits, and no turn does. Later calls of
            a step, such as a repair, count and do not wait; embedders are not limited.
        input_tokens_per_minute: the same for input tokens, by our count.
        budgets: limits on what observers, reflectors and extractors spend on models; see `Budget`.
        over_budget: beyond a hard budget notes are `extractive`, or messages stay `raw`.
    """

    url: str = "sqlite:///memory.db"
    preset: Preset = "default"
    policy: Mapping[str, PolicyValue] = field(default_factory=dict)
    model: str | None = None
    observer_model: str | None = None
    reflector_model: str | None = None
    model_key_variable: str | None = None
    observer_key_variable: str | None = None
    reflector_key_variable: str | None = None
    durability: Literal["full", "normal"] = "full"
    lease_seconds: PositiveFloat = 10.0
    turn_wait_seconds: NonNegativeFloat = 60.0
    workers: NonNegativeInt = 4
    observer_processes: NonNegativeInt = 0
    parallel_slices: PositiveInt = 1
    engine: Literal["local", "procrastinate"] = "local"
    shutdown_timeout_seconds: NonNegativeFloat = 10.0
    blocks_directory: str | None = None
    blocks_keep_last: PositiveInt = 200
    daily_directory: str | None = None
    daily_keep_days: NonNegativeInt = 7
    superseded_keep_days: PositiveInt | None = None
    superseded_keep_last: PositiveInt | None = None
    log_keep_days: PositiveInt | None = None
    log_keep_last: PositiveInt | None = None
    usage_keep_days: PositiveInt | None = None
    usage_keep_last: PositiveInt | None = None
    vectors_keep_days: PositiveInt | None = None
    vectors_keep_last: PositiveInt | None = None
    calls_per_minute: PositiveInt | None = None
    input_tokens_per_minute: PositiveInt | None = None
    budgets: tuple[Budget, ...] = ()
    over_budget: Literal["extractive", "raw"] = "extractive"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("model_key_variable", "observer_key_variable", "reflector_key_variable"):
            check_variable(name, getattr(self, name))


def policy_of(settings: Settings) -> Policy:
    """Return the policy that *settings* describe: a preset with changes.

    Raises:
        InvalidPolicy: a field is unknown, or its value contradicts the others.
    """
    known = [field.name for field in dataclasses.fields(Policy)]
    for name in settings.policy:
        if name not in known:
            raise InvalidPolicy(f"policy.{name} is unknown: {nearest_hint(name, known)}")
    return Policy.from_preset(settings.preset, settings.policy)


def nearest_hint(name: str, known: Sequence[str], listed: Sequence[str] = ()) -> str:
    """Return the remedy for an unknown name: the nearest known one, or else those to list."""
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(listed or known)}"
