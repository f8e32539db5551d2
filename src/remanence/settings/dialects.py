"""The settings of the source designs, as a table of keys for each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from remanence.policy.presets import PRESETS, Preset
from remanence.validation import NonNegativeInt as Count

Convert: TypeAlias = Callable[[Any, Mapping[str, Any]], Any]  # a value and all keys -> a setting


class Key(NamedTuple):
    """The type of a key's value, the policy fields derived from it, and other spellings of the key."""

    type: Any  # a type with its range
    fields: Mapping[str, Convert] = {}
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The settings format of a design.

    `path` is the path of its table in a file. A file without that table also belongs to this design
    if it has the design's name, or one of the tables in `hosts`; then the preset's defaults apply.
    `agent` is the table of the design's main agent.
    """

    preset: Preset
    path: tuple[str, ...]
    keys: Mapping[str, Key]
    hosts: tuple[str, ...] = ()
    agent: str = ""

    @property
    def name(self) -> str:
        """The dotted path of its table."""
        return ".".join(self.path)

    def key_path(self, name: str) -> str:
        """Return a key with its path."""
        return ".".join((*self.path, name))


def _same(value: object, _keys: Mapping[str, Any]) -> object:
    return value


LANGO = Dialect(
    preset="lango",
    path=("observationalMemory",),
    agent="agent",
    keys={
        "enabled": Key(bool, {"enabled": _same}),
        "provider": Key(str),
        "model": Key(str),
        "messageTokenThreshold": Key(Count, {"observe_tokens": _same}),
        "observationTokenThreshold": Key(
            Count, {"reflect_tokens": lambda tokens, _: (tokens, tokens)}
        ),
        "maxMessageTokenBudget": Key(
            Count, {"tail_tokens": _same, "tail_keep_tokens": lambda tokens, _: tokens * 7 // 8}
        ),
    },
)

_ZORA: Final = PRESETS["zora"]


def _zora_block_after(tokens: int, keys: Mapping[str, Any]) -> float:
    working: int = keys.get("working_tier_max_tokens", _ZORA["tail_tokens"])
    return tokens / max(1, working)


ZORA = Dialect(
    preset="zora",
    path=("memory", "compression"),
    hosts=("memory",),
    keys={
        "enabled": Key(bool, {"enabled": _same}),
        "working_tier_max_tokens": Key(
            Count,
            {
                "observe_tokens": _same,
                "tail_tokens": _same,
                "tail_keep_tokens": lambda tokens, _: tokens * 2 // 3,
            },
            ("workingTierMaxTokens",),
        ),
        "session_tier_max_tokens": Key(
            Count, {"reflect_tokens": lambda tokens, _: (tokens,)}, ("sessionTierMaxTokens",)
        ),
        "cross_session_tier_max_tokens": Key(
            Count, {"facts_tokens": _same}, ("crossSessionTierMaxTokens",)
        ),
        "chunk_size": Key(
            Count, {"observe_slice_messages": _same}, ("chunkSize", "compressionChunkSize")
        ),
        "model": Key(str, spellings=("compressionModel",)),
        "async_buffer": Key(
            bool,
            {"precompute_at": lambda is_on, _: _ZORA["precompute_at"] if is_on else None},
            ("asyncBuffer",),
        ),
        "block_after_tokens": Key(Count, {"block_after": _zora_block_after}, ("blockAfterTokens",)),
    },
)

_BRAIN_REFLECT_RATIO: Final = 0.6
_BRAIN_OUTPUT_TOKENS: Final = 32_000
MAX_OUTPUT_TOKENS: Final = 64_000
"""The output limit of current models."""


def _brain_output_tokens(threshold: int, _keys: Mapping[str, Any]) -> int:
    """Return the output limit, as a reflection must fit in one answer."""
    tokens = max(_BRAIN_OUTPUT_TOKENS, int(threshold * _BRAIN_REFLECT_RATIO))
    return min(tokens, MAX_OUTPUT_TOKENS)


BRAIN = Dialect(
    preset="brain",
    path=("MEMORY_CONFIG",),
    keys={
        "keepLastMessages": Key(Count, {"keep_last": _same}),
        "keepLastToolSummaries": Key(Count, {"keep_last_tool_results": _same}),
        "observeThresholdTokens": Key(Count, {"observe_tokens": _same, "tail_tokens": _same}),
        "reflectThresholdTokens": Key(
            Count,
            {
                "reflect_tokens": lambda tokens, _: (tokens,),
                "max_output_tokens": _brain_output_tokens,
            },
        ),
        "reflectMinIntervalMinutes": Key(
            Count, {"reflect_min_interval_seconds": lambda minutes, _: minutes * 60.0}
        ),
    },
)

DIALECTS = (LANGO, ZORA, BRAIN)
