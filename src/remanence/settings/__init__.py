"""Settings of a running memory: where it keeps its tape and how it works."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from remanence.fields import check_fields, check_variable, impossible
from remanence.types import Budget

Preset: TypeAlias = Literal["default", "lango", "zora", "brain"]
PolicyValue: TypeAlias = bool | int | float | str | tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Read once, when a memory opens.

    Attributes:
        url: where the tape is, such as `sqlite:///memory.db`.
        preset: which policy the `policy` values are changes of.
        policy: changes of the preset, by field name.
        model: what observer and reflector ask, such as `anthropic:claude-haiku-4-5`; None: the
            embedded ones, which need no model.
        observer_model: what the observer asks instead of *model*.
        reflector_model: what the reflector asks instead of *model*.
        model_key_variable: the environment variable that has the key for *model*; None: that of its
            provider, such as `ANTHROPIC_API_KEY`.
        observer_key_variable: the same for the observer's model.
        reflector_key_variable: the same for the reflector's model.
        durability: `full` survives power loss, `normal` only a killed process.
        lease_seconds: after a crash, how long other processes leave its conversations alone.
        turn_wait_seconds: how long a turn of a chat waits for another one of its conversation.
        workers: conversations that are observed or reflected at once.
        shutdown_timeout_seconds: how long closing waits for steps in progress.
        blocks_directory: where a conversation's notes are also kept as JSON Lines when it ends, such
            as `~/.zora/memory/observations`; none by default.
        blocks_keep_last: how many blocks of a conversation are kept there.
        daily_directory: where daily notes are, a Markdown file a day for each user; none by default.
        daily_keep_days: days after which a day's notes are summarised and archived.
        budgets: what observers and reflectors may spend on models; see `Budget`.
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
    lease_seconds: float = 10.0
    turn_wait_seconds: float = 60.0
    workers: int = 4
    shutdown_timeout_seconds: float = 10.0
    blocks_directory: str | None = None
    blocks_keep_last: int = 200
    daily_directory: str | None = None
    daily_keep_days: int = 7
    budgets: tuple[Budget, ...] = ()
    over_budget: Literal["extractive", "raw"] = "extractive"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("model_key_variable", "observer_key_variable", "reflector_key_variable"):
            check_variable(name, getattr(self, name))
        for name in ("lease_seconds", "blocks_keep_last"):
            if (value := getattr(self, name)) <= 0:
                raise impossible(name, value, "use a positive number")
        for name in ("workers", "turn_wait_seconds", "shutdown_timeout_seconds", "daily_keep_days"):
            if (value := getattr(self, name)) < 0:
                raise impossible(name, value, "use 0 or more")
