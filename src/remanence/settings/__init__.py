"""Settings of a running memory."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from remanence.catalog import canonical_name
from remanence.errors import InvalidPolicy, InvalidSetting
from remanence.policy.policy import Policy
from remanence.policy.presets import PolicyValue, Preset
from remanence.types import Budget
from remanence.validation import (
    MAX_NUMBER,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    check_fields,
    check_variable,
)

PREFIX: Final = "REMANENCE_"
"""The beginning of each environment variable of a setting."""

_SIMILAR_ENDS: Final = 0.5
"""The similarity of `TAIL` to `TAIL_TOKENS` is 0.53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a memory, read once when it opens.

    Attributes:
        url: the URL of the database, such as `sqlite:///memory.db`; one of SQLite has no parameters.
        preset: the preset that `policy` changes.
        policy: changes to the preset, by field name.
        model: the model of observer, reflector and fact extractor, such as
            `anthropic:claude-haiku-4-5`, or several, tried in order:
            `anthropic:claude-haiku-4-5, openai:gpt-5-mini`, in a file also a list; None: the embedded
            ones, which need no model.
        observer_model: the model of the observer instead of `model`; it extracts no facts.
        reflector_model: the model of the reflector instead of `model`.
        model_key_variable: the environment variable of the key for `model`; None: that of its
            provider, such as `ANTHROPIC_API_KEY`. Of several models, only those of the first one's
            provider get it.
        observer_key_variable: the same for the observer's model.
        reflector_key_variable: the same for the reflector's model.
        durability: for a SQLite file: `full` survives power loss, `normal` only a killed process.
        lease_seconds: the time after a crash until other processes may take over its conversations;
            processes on the same file notice within another minute.
        turn_wait_seconds: the longest wait of a chat's turn for another turn of the conversation.
        workers: the number of conversations worked on in parallel; 0: only calls that wait for work,
            such as `flush`, do it.
        observer_processes: the number of processes for observing, reflecting and extracting without
            a model; 0: in this process. A program that sets it must open the memory under
            `if __name__ == "__main__"`, as the started processes import it.
        parallel_slices: the number of stretches of one conversation to observe in parallel if that
            many are due, as after an import; their observers do not see each other's notes.
        engine: with `local`, each process that opens the memory looks for background work; with
            `procrastinate`, the processes on a PostgreSQL database share it as jobs.
        shutdown_timeout_seconds: the longest wait on closing for steps in progress, and one step
            of each conversation that is queued.
        blocks_directory: the directory for notes of ended conversations as JSON Lines, such as
            `~/.zora/memory/observations`; none by default.
        blocks_keep_last: the number of blocks kept there for each conversation.
        daily_directory: the directory of daily notes, a Markdown file per day and user; none by
            default.
        daily_keep_days: the age in days at which daily notes are summarised and archived.
        superseded_keep_days: the days to keep segments after a reflection replaced them. Rows of a
            kind are deleted if neither of its two rules keeps them; without rules, and in the last
            24 hours, all rows are kept.
        superseded_keep_last: the number of newest replaced segments to keep per conversation.
        log_keep_days: the days to keep entries of a conversation's log; the newest always stays.
        log_keep_last: the number of newest log entries to keep per conversation.
        usage_keep_days: the days to keep model calls in the ledger.
        usage_keep_last: the number of newest model calls to keep in the ledger.
        vectors_keep_days: the days to keep vectors of messages; words are always searched.
        vectors_keep_last: the number of newest messages per conversation whose vectors are kept.
        branches_keep_days: the days after its newest message for which a branch at the proxies is
            kept; older ones are deleted while their conversation gets new branches.
        calls_per_minute: the rate limit per model for background work, shared by all processes on
            the database; calls beyond it wait, but turns never do. Follow-up calls of a step, such
            as a repair, count but do not wait; embedders are not limited.
        input_tokens_per_minute: the same for input tokens, by our count.
        prices: prices of models of your own, each as `openai:my-model 0.2 0.8`: US dollars per million
            tokens of input and output. They replace the price list.
        budgets: spending limits of observers, reflectors and extractors; see `Budget`.
        over_budget: beyond a hard budget, notes are `extractive`, or messages stay `raw`.
    """

    url: str = "sqlite:///memory.db"
    preset: Preset = "default"
    policy: Mapping[str, PolicyValue] = field(default_factory=dict, hash=False)
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
    branches_keep_days: PositiveInt | None = None
    calls_per_minute: PositiveInt | None = None
    input_tokens_per_minute: PositiveInt | None = None
    prices: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()
    over_budget: Literal["extractive", "raw"] = "extractive"

    def __post_init__(self) -> None:
        if isinstance(self.policy, Policy):
            raise InvalidPolicy(
                "policy of Settings is a Policy: use a dict of changes to the preset, or pass the "
                "Policy as policy= of Memory.open"
            )
        check_fields(self)
        known = [field.name for field in dataclasses.fields(Policy)]
        for name in self.policy:
            if name not in known:
                raise InvalidPolicy(f"policy.{name} is unknown: {nearest_hint(name, known)}")
        for name in ("model_key_variable", "observer_key_variable", "reflector_key_variable"):
            check_variable(name, getattr(self, name))
        own_prices(self.prices)
        policy_of(self)


def policy_of(settings: Settings) -> Policy:
    """Return the policy of *settings*: a preset with changes."""
    return Policy.from_preset(settings.preset, settings.policy)


def own_prices(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the prices of `Settings.prices` by model: dollars per million tokens of input and output.

    Raises:
        InvalidSetting: a price is not written as `model input output`.
    """
    prices = {}
    for text in texts:
        try:
            model, *dollars = text.split()
            input_usd, output_usd = map(float, dollars)
        except ValueError:
            model, input_usd, output_usd = "", -1.0, -1.0
        if not (0 <= input_usd <= MAX_NUMBER and 0 <= output_usd <= MAX_NUMBER):
            raise InvalidSetting(
                "prices", text, "write 'openai:my-model 0.2 0.8', dollars per million tokens"
            )
        name, *_ = model.split("@http", maxsplit=1)  # a price counts wherever the call is sent
        prices[canonical_name(name)] = (input_usd, output_usd)
    return prices


def _last_part(name: str) -> str:
    return name.removeprefix(PREFIX).rpartition("__")[2].rpartition(".")[2]


def nearest_hint(
    name: str, known: Sequence[str], listed: Sequence[str] = (), *, otherwise: str = ""
) -> str:
    """Return the remedy for an unknown name: the most similar known name, or a list of names.

    A name that is the beginning of others means the shortest of them: `TAIL`, `TAIL_TOKENS`.
    If none is similar, *otherwise* replaces a list that would be long.
    The last parts must be similar, too: what names share, such as `policy.`, makes none similar.
    """
    longer = [each for each in known if _last_part(each).startswith(f"{_last_part(name)}_")]
    if longer:
        return f"did you mean {min(longer, key=len)}?"
    ends = difflib.get_close_matches(
        _last_part(name), map(_last_part, known), n=len(known), cutoff=_SIMILAR_ENDS
    )
    similar = {each.removeprefix(PREFIX): each for each in known if _last_part(each) in ends}
    nearest = [
        similar[each] for each in difflib.get_close_matches(name.removeprefix(PREFIX), similar, n=1)
    ]
    if nearest:
        return f"did you mean {nearest[0]}?"
    return otherwise or f"known are {', '.join(listed or known)}"
