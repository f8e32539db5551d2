"""The policy of a memory: thresholds, budgets and presets."""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from remanence.arguments import bad_character
from remanence.catalog import CounterName, chain_links, look_up
from remanence.errors import InvalidArgument, InvalidSetting
from remanence.policy.presets import (
    PRESETS,
    SCALED,
    SMALL_WINDOW,
    SMALL_WINDOW_SHARE,
    SMALL_WINDOW_SHARES,
    Preset,
)
from remanence.types import NoteFormat
from remanence.validation import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Range,
    Share,
    check_fields,
)

MAX_LANGUAGE_LENGTH: Final = 60
"""Maximum number of characters of a language name."""

_Language: TypeAlias = Annotated[
    str,
    Range(
        lambda name: (
            0 < len(name.strip()) <= len(name) <= MAX_LANGUAGE_LENGTH and name.isprintable()
        ),
        "use the name of a language, such as 'German'",
    ),
]
_Line: TypeAlias = Annotated[
    str,
    Range(
        lambda line: bad_character(line) is None,
        "leave out NUL characters and lone surrogates",
    ),
]
_Budget: TypeAlias = Annotated[int, Range(lambda tokens: tokens > 0, "use positive budgets")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Settings for observation, activation and reflection, and for the content of a context.

    Tokens are counted by `token_counter` (by default the family of `model`).

    Attributes:
        enabled: whether memory is on; if not, a context is the plain system prompt and messages.
        disabled_messages: the maximum number of newest messages in a context while memory is off;
            None: all.
        model: the model whose tokenizer and window apply, such as `claude-sonnet-5-5`; one of unknown
            name has a window of 128,000 tokens.
        token_counter: a counter by name (`flat`, `cjk`, `split`, or a family) instead of `model`'s.
        observe_tokens: an observation is due when the tokens that `observe_gauge` counts exceed this.
        observe_gauge: count all messages without an observation (`unobserved`), or the raw messages
            of a context that no finished observation will replace (`working_window`).
        observe_compare: whether the count must exceed (`gt`) or reach (`gte`) `observe_tokens`.
        observe_slice: observe up to `observe_tokens` (`budget`), the `oldest_n` messages, or `all`.
        observe_slice_messages: the n of `oldest_n`.
        observe_max_tokens: the most tokens that one observation reads; longer backlogs are split.
            None: as many as fit one request and its answer (`slice_tokens`).
        observe_timeout_seconds: the time limit of an observer or reflector.
        observer_mode: observe by `separate` requests, or by a `continuation` of the newest prompt,
            which must be for the same model and is read from its prompt cache.
        precompute_at: the share of `observe_tokens` at which observations are made in advance.
        note_ratio: the most tokens of an observation per token of its source, but at least min(64,
            source + 20), for day and speaker: a source below 45 tokens may be noted in full.
        min_note_tokens: the tokens that notes may have regardless of `note_ratio`, up to half of
            their source, and up to the limit for a source of `observe_tokens`. Once `note_ratio`
            allows twice as many for the earlier messages, it alone counts.
        note_format: the format of notes.
        note_language: the language in which a model writes notes and facts, such as `German`;
            `conversation` for that of the messages.
        max_output_tokens: the most tokens that an observer or reflector can write in one answer.
        activate: use observations when the tail is over its budget, or as soon as they are made.
        tail_tokens: the budget of the raw tail; above it, activation is due. For a shorter tail, lower
            `observe_tokens` as well, as messages stay raw until they are observed. While a turn is
            open, observations wait until more than `observe_tokens` and a quarter can leave the
            tail, and three times as much as stays, or the tail takes a quarter of the context.
        tail_keep_tokens: the minimum number of tokens that an activation leaves raw.
        keep_last: the number of newest messages that always stay raw, as excerpts if they are too
            long, and as far as a context has room.
        keep_last_tool_results: the number of newest tool results, among those that notes already
            cover, that stay whole in the raw tail; older ones are abridged. None: all stay whole.
        cache_ttl_seconds: the idle time after which a prompt cache is cold and activation is free;
            by default the lifetime published by the vendor of `model`.
        reflect_tokens: the budget of each generation's live segments, observations first; the last
            one is the top generation, which condenses into itself. One alone needs the
            `reflect_scope` `all`. Empty: never reflect.
        reflect_scope: condense one generation at a time (`generation`), observations and
            reflections each by their own budget (`kind`), or all segments together (`all`).
        reflect_ratio: the most tokens of a reflection per token of its sources; the top generation
            is condensed to three quarters of its budget instead.
        reflect_min_interval_seconds: the minimum time between two reflections.
        reflect_at_end: whether all notes of a conversation are condensed when it ends, even within
            budget.
        superseded: whether segments replaced by a reflection are kept or deleted.
        extract_facts: whether facts about the user are kept beyond a conversation.
        facts_idle_seconds: the idle time after which facts are extracted from all messages;
            0: only with a reflection and at the end.
        facts_tokens: the most tokens of facts in a context, up to a tenth of it; 0: none.
        facts_place: show a selection of facts before the notes (`prefix`), or those that match the
            newest user message after the last cache breakpoint (`volatile`).
        recall_each_turn: whether a chat searches earlier messages for each new user message.
        recall_tokens: the most tokens of recalled passages in a context, up to an eighth of it;
            0: none.
        recall_timeout_seconds: how long a query waits for its vector before it matches only words.
        max_context_tokens: the most tokens of a context; by default nine tenths of the window
            of the model that is called, if its name is known, otherwise of `model`. Where the budgets
            of a preset do not fit, `observe_tokens`, `tail_tokens`, `tail_keep_tokens` and
            `reflect_tokens` are lowered with it; below 1,000, they must be named.
        block_after: the multiple of `tail_tokens` above which `context` waits for observations;
            None: never.
        sync_timeout_seconds: the longest such wait.
        render_order: `oldest_first`, or reflections followed by the newest observations first
            (`newest_first`).
        heading: the line above the notes; empty for none.
        separator: the line above the notes of each segment but the first; empty for none.
        show_clock: whether the volatile block shows the time and the gaps between messages.
        retry_seconds: the wait after a first failure, ten times as long if the answer was cut off;
            doubled with each further failure.
        retry_max_seconds: the longest such wait; up to a quarter is added at random, and a
            provider may ask for up to a day.
        max_failures: after this many failures in a row, only new messages allow another attempt; a
            single message that fails more often is left without notes, or without facts.
        fallback_after_failures: after this many failures in a row, the embedded observer stands in
            until the configured one works again and replaces its notes; by default messages stay
            raw.
        max_message_bytes: the maximum size of a message; larger ones are rejected.
    """

    enabled: bool = True
    disabled_messages: PositiveInt | None = None
    model: str = "claude-sonnet-5-5"
    token_counter: CounterName | None = None
    observe_tokens: PositiveInt = 8_000
    observe_compare: Literal["gt", "gte"] = "gt"
    observe_gauge: Literal["unobserved", "working_window"] = "unobserved"
    observe_slice: Literal["budget", "oldest_n", "all"] = "budget"
    observe_slice_messages: PositiveInt = 20
    observe_max_tokens: PositiveInt | None = 8_000
    observe_timeout_seconds: PositiveFloat = 120.0
    observer_mode: Literal["separate", "continuation"] = "separate"
    precompute_at: Share | None = None
    note_ratio: Share = 0.2
    min_note_tokens: NonNegativeInt = 1_600
    note_format: NoteFormat = "compact"
    note_language: _Language = "conversation"
    max_output_tokens: PositiveInt = 16_000
    activate: Literal["over_budget", "when_observed"] = "over_budget"
    tail_tokens: PositiveInt = 8_000
    tail_keep_tokens: NonNegativeInt = 1_500
    keep_last: NonNegativeInt = 4
    keep_last_tool_results: NonNegativeInt | None = None
    cache_ttl_seconds: NonNegativeFloat | None = None
    reflect_tokens: tuple[_Budget, ...] = (5_000, 24_000)
    reflect_scope: Literal["generation", "kind", "all"] = "generation"
    reflect_ratio: Share = 0.17
    reflect_min_interval_seconds: NonNegativeFloat = 0.0
    reflect_at_end: bool = False
    superseded: Literal["keep", "purge"] = "keep"
    extract_facts: bool = True
    facts_idle_seconds: NonNegativeFloat = 300.0
    facts_tokens: NonNegativeInt = 1_500
    facts_place: Literal["prefix", "volatile"] = "prefix"
    recall_each_turn: bool = True
    recall_tokens: NonNegativeInt = 400
    recall_timeout_seconds: NonNegativeFloat = 2.0
    max_context_tokens: PositiveInt | None = None
    block_after: (
        Annotated[float, Range(lambda multiple: multiple >= 1, "use 1.0 or more")] | None
    ) = None
    sync_timeout_seconds: NonNegativeFloat = 10.0
    render_order: Literal["oldest_first", "newest_first"] = "oldest_first"
    heading: _Line = "## Conversation Memory"
    separator: _Line = ""
    show_clock: bool = True
    retry_seconds: PositiveFloat = 60.0
    retry_max_seconds: PositiveFloat = 3_600.0
    max_failures: PositiveInt = 6
    fallback_after_failures: PositiveInt | None = None
    max_message_bytes: PositiveInt = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        check_fields(self)
        _check_generations(self)
        _check_budgets(self)

    @classmethod
    def default(cls, **changes: Any) -> Self:  # the fields' own types
        """The default, optimized for cost: early observations, late activation, small tail.

        Like those of other presets, its budgets are smaller where `max_context_tokens` leaves no room
        for them: shares of that.
        """
        return cls.from_preset("default", changes)

    @classmethod
    def lango(cls, **changes: Any) -> Self:  # the fields' own types
        """The lango design: prose notes of all unobserved messages; off until `enabled=True`."""
        return cls.from_preset("lango", changes)

    @classmethod
    def zora(cls, **changes: Any) -> Self:  # the fields' own types
        """The zora design: a working tier of 30,000 tokens, the oldest 20 messages compressed."""
        return cls.from_preset("zora", changes)

    @classmethod
    def brain(cls, **changes: Any) -> Self:  # the fields' own types
        """The brain design: a tagged log of all unobserved messages, twelve messages raw."""
        return cls.from_preset("brain", changes)

    @classmethod
    def from_preset(cls, preset: Preset, changes: Mapping[str, Any]) -> Self:  # as above
        """Return the policy of a preset, with changes, and smaller budgets for a small context."""
        _check_names(cls, changes)
        small = _small_window(preset, changes.get("max_context_tokens"))
        return cls(**{**PRESETS[preset], **small, **changes})

    def replace(self, **changes: Any) -> Self:  # the fields' own types
        """Return a copy with some fields changed, validated like a new policy."""
        _check_names(type(self), changes)
        return dataclasses.replace(self, **changes)

    @property
    def cache_lifetime_seconds(self) -> float:
        """Seconds that a prompt cache survives after its last use, for this policy's model."""
        ttl = self.cache_ttl_seconds
        return look_up(self.model).cache_lifetime_seconds if ttl is None else ttl

    @property
    def context_tokens(self) -> int:
        """The most tokens that a context may have."""
        return self.max_context_tokens or _context_share(look_up(self.model).window_tokens)

    def context_tokens_for(self, model: str | None) -> int:
        """Return the most tokens of a context for *model*: by its window, or `max_context_tokens`.

        In a chain of models, the smallest window decides. Unknown models count as the policy's own.
        """
        if self.max_context_tokens or not model:
            return self.context_tokens
        entries = map(look_up, chain_links(model))
        return min(
            _context_share(entry.window_tokens) if entry.is_listed else self.context_tokens
            for entry in entries
        )

    @property
    def slice_tokens(self) -> int:
        """The most tokens that one observation reads.

        Without `observe_max_tokens`, as many as fit in one request to `model`, and whose notes at
        `note_ratio` fit in one answer.
        """
        if self.observe_max_tokens is not None:
            return self.observe_max_tokens
        return min(request_tokens(self.model), int(self.max_output_tokens / self.note_ratio))

    @property
    def facts_budget(self) -> int:
        """The most tokens of facts that a context shows."""
        return min(self.facts_tokens, self.context_tokens // 10)


def _small_window(preset: Preset, window: object) -> Mapping[str, Any]:  # as above
    """Return settings for a context into which the budgets of a preset do not fit; else nothing."""
    if not isinstance(window, int) or window < MIN_CONTEXT_TOKENS:
        return {}
    whole = dataclasses.asdict(Policy.from_preset(preset, {}))
    room = whole["tail_tokens"] + sum(whole["reflect_tokens"])
    if window >= room:
        return {}
    if preset == "default":
        return {**SMALL_WINDOW, **_scale(SMALL_WINDOW_SHARES, window, most=whole)}
    budgets = {name: whole[name] for name in SCALED}
    return _scale(budgets, SMALL_WINDOW_SHARE * window / room, most=whole)


def _scale(
    budgets: Mapping[str, Any], factor: float, *, most: Mapping[str, Any]
) -> Mapping[str, Any]:  # as above
    """Return the budgets times *factor*, each at most that of the same name in *most*."""
    return {
        name: tuple(
            min(int(part * factor), limit) for part, limit in zip(budget, most[name], strict=True)
        )
        if isinstance(budget, tuple)
        else min(int(budget * factor), most[name])
        for name, budget in budgets.items()
    }


def _context_share(window_tokens: int) -> int:
    return window_tokens * 9 // 10


MIN_CONTEXT_TOKENS = 1_000
"""The smallest context for which presets have budgets, and errors suggest some that fit."""
REQUEST_SHARE = 3
"""Eighths of a window that a request may fill: token counts are estimates, and models read long
inputs less carefully."""


def request_tokens(model: str) -> int:
    """Return the most tokens of a request to *model*; in a chain, the smallest window decides."""
    return min(look_up(link).window_tokens for link in chain_links(model)) * REQUEST_SHARE // 8


def _check_names(kind: type, changes: Mapping[str, object]) -> None:
    """Raise `InvalidArgument` for the first unknown setting, suggesting similar names."""
    known = [field.name for field in dataclasses.fields(kind)]
    for name in changes:
        if name not in known:
            near = " or ".join(difflib.get_close_matches(name, known)) or ", ".join(known)
            raise InvalidArgument(
                f"a policy has no setting {name}={changes[name]!r:.80}: use {near}"
            )


def _check_generations(policy: Policy) -> None:
    count, scope = len(policy.reflect_tokens), policy.reflect_scope
    if scope == "kind" and count not in (0, 2):
        remedy = "with reflect_scope='kind' name two, of observations and of reflections"
        raise _impossible(policy, "reflect_tokens", remedy)
    if scope == "generation" and count == 1:
        remedy = "name two or more, of observations and of each generation of reflections"
        raise _impossible(policy, "reflect_tokens", f"{remedy}, or set reflect_scope='all'")


def _check_window(policy: Policy) -> None:
    """Require that tail and notes fit a context; the error suggests values that do."""
    window, tail, notes = policy.context_tokens, policy.tail_tokens, policy.reflect_tokens
    total, room = tail + sum(notes), window - tail
    if total <= window:
        return
    if window < MIN_CONTEXT_TOKENS:
        remedy = (
            f"the budgets of a preset such as Policy.default fit in {MIN_CONTEXT_TOKENS:,} tokens and "
            "more: raise it"
        )
        raise _impossible(policy, "max_context_tokens", remedy)
    what = (
        f"with tail_tokens={tail:,} and reflect_tokens={notes!r}, messages and notes take "
        f"{total:,} of the {window:,} tokens of a context: raise max_context_tokens to {total:,}"
    )
    what = f"{what}, take a preset such as Policy.default, whose budgets then fit, or lower"
    if room > sum(notes) // 8:
        fitting = tuple(budget * room // sum(notes) for budget in notes)
        raise _impossible(policy, "reflect_tokens", f"{what} it, such as to {fitting}")
    fitting = tuple(budget * window // total for budget in notes)
    shorter = tail * window // total
    both, tails = "both", f"tail_tokens={shorter}"
    if policy.tail_keep_tokens >= shorter:
        both = "them with tail_keep_tokens"
        tails += f", tail_keep_tokens={policy.tail_keep_tokens * window // total}"
    remedy = f"{what} {both}, such as to {tails} and reflect_tokens={fitting}"
    raise _impossible(policy, "tail_tokens", remedy)


def _check_budgets(policy: Policy) -> None:
    _check_window(policy)
    if policy.tail_keep_tokens >= policy.tail_tokens:
        tail = policy.tail_tokens
        remedy = (
            f"it must be below tail_tokens={tail:,}, or activation frees nothing: lower it, such as "
            f"to {tail * 2 // 3}"
        )
        raise _impossible(policy, "tail_keep_tokens", remedy)
    longest = f"max_output_tokens={policy.max_output_tokens:,} and be cut off"
    most = int(policy.slice_tokens * policy.note_ratio)
    if most > policy.max_output_tokens:
        what = f"notes of {most:,} tokens would exceed {longest}"
        raise _impossible(policy, "note_ratio", f"{what}: lower note_ratio or observe_max_tokens")
    target = int(max(policy.reflect_tokens, default=0) * policy.reflect_ratio)
    if target > policy.max_output_tokens:
        what = f"a reflection of {target:,} tokens would exceed {longest}"
        raise _impossible(policy, "reflect_ratio", f"{what}: lower reflect_ratio or reflect_tokens")


def _impossible(policy: Policy, name: str, remedy: str) -> InvalidSetting:
    return InvalidSetting(name, getattr(policy, name), remedy)
