"""Presets, as changes to the default policy."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Preset: TypeAlias = Literal["default", "lango", "zora", "brain"]
PolicyValue: TypeAlias = bool | int | float | str | tuple[int, ...] | None

PRESETS: Final[Mapping[Preset, Mapping[str, PolicyValue]]] = {
    "default": {},
    "lango": {
        "enabled": False,
        "disabled_messages": 100,
        "token_counter": "cjk",
        "note_ratio": 0.2,
        "min_note_tokens": 0,
        "observe_tokens": 1_000,
        "observe_slice": "all",
        "observe_max_tokens": None,
        "note_format": "prose",
        "activate": "when_observed",
        "tail_tokens": 8_000,
        "tail_keep_tokens": 7_000,
        "keep_last": 0,
        "reflect_tokens": (2_000, 2_000),
        "reflect_ratio": 0.25,
        "reflect_scope": "kind",
        "superseded": "purge",
        "extract_facts": False,
        "facts_tokens": 0,
        "render_order": "newest_first",
        "recall_each_turn": False,
        "show_clock": False,
    },
    "zora": {
        "token_counter": "split",
        "note_ratio": 0.2,
        "min_note_tokens": 0,
        "observe_tokens": 30_000,
        "observe_gauge": "working_window",
        "observe_slice": "oldest_n",
        "observe_max_tokens": None,
        "precompute_at": 0.7,
        "note_format": "dated_priority",
        "tail_tokens": 30_000,
        "tail_keep_tokens": 20_000,
        "keep_last": 0,
        "reflect_tokens": (10_000,),
        "reflect_ratio": 0.55,
        "reflect_scope": "all",
        "reflect_at_end": True,
        "facts_idle_seconds": 0.0,
        "facts_tokens": 5_000,
        "recall_each_turn": False,
        "block_after": 2.0,
        "heading": "## Earlier in This Session",
    },
    "brain": {
        "token_counter": "flat",
        "note_ratio": 0.2,
        "min_note_tokens": 0,
        "observe_tokens": 30_000,
        "observe_slice": "all",
        "observe_max_tokens": None,
        "note_format": "tagged",
        "activate": "when_observed",
        "tail_tokens": 30_000,
        "tail_keep_tokens": 0,
        "keep_last": 12,
        "keep_last_tool_results": 6,
        "reflect_tokens": (40_000,),
        "facts_idle_seconds": 0.0,
        "facts_tokens": 2_000,
        "reflect_scope": "all",
        "reflect_ratio": 0.6,
        "reflect_min_interval_seconds": 3_600.0,
        "max_output_tokens": 32_000,
        "facts_place": "volatile",
        "recall_each_turn": False,
        "heading": "## Conversation Context (Observations)",
        "separator": "---",
    },
}
SMALL_WINDOW: Final[Mapping[str, PolicyValue]] = {
    "note_ratio": 0.35,
    "reflect_ratio": 0.5,
}
"""Settings of the default policy for a context into which its budgets do not fit."""
SMALL_WINDOW_SHARES: Final[Mapping[str, float | tuple[float, ...]]] = {
    "observe_tokens": 0.12,
    "observe_max_tokens": 0.12,
    "tail_tokens": 0.28,
    "tail_keep_tokens": 0.14,
    "reflect_tokens": (0.2, 0.27),
}
"""Budgets for it, as shares of that context. The rest is for the system prompt, facts and passages."""
SCALED: Final = ("observe_tokens", "tail_tokens", "tail_keep_tokens", "reflect_tokens")
"""Budgets of the other presets that are smaller for such a context, in proportion."""
SMALL_WINDOW_SHARE: Final = 0.75
"""The share of it that tail and notes then take."""
