"""Model data published by vendors: windows, prompt caches and tokenizers.

A name may have a prefix (`anthropic:`, `openrouter/anthropic/`) and a date as suffix. Prices are
those of `genai-prices`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, get_args

Family: TypeAlias = Literal["o200k", "cl100k", "claude", "claude_3"]
CounterName: TypeAlias = Literal["flat", "cjk", "split", Family]
"""The token counters that a policy may name: a rule, or a tokenizer family."""
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)

_NEXT_LINK: Final = " > "

_PROVIDER_ALIASES: Final = {"gemini": "google"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """Data of a model; the defaults apply to models that are not listed.

    A prompt cache survives for at least `cache_lifetime_seconds` after its last use, as the vendor
    guarantees, and holds prompts from `min_cached_tokens` on. For vendors without a known
    tokenizer, `tokenizer` is the nearest known one.
    """

    is_listed: bool = False
    window_tokens: int = 128_000
    cache_lifetime_seconds: float = 300.0
    min_cached_tokens: int = 1_024
    takes_breakpoints: bool = False
    tokenizer: Family = "o200k"


# All rows whose pattern matches a model's name apply; later rows override earlier ones.
_ROWS: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (
    (r"gpt", {"cache_lifetime_seconds": 600.0}),
    (r"gpt-?3|gpt-?4(?![.o\d])|text-embedding|ada-002", {"tokenizer": "cl100k"}),
    (r"gpt-5", {"window_tokens": 272_000}),
    (r"gpt-4\.1|gemini", {"window_tokens": 1_000_000}),
    (
        r"claude",
        {"window_tokens": 200_000, "cache_lifetime_seconds": 300.0, "tokenizer": "claude"},
    ),
    (r"sonnet-4-6|haiku-3|3-5-haiku", {"min_cached_tokens": 2_048}),
    (r"opus-4-[56]|haiku-4-5", {"min_cached_tokens": 4_096}),
)

_CLAUDE_VERSION: Final = re.compile(r"(?<![\d.])(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_GPT_VERSION: Final = re.compile(r"gpt-(\d{1,3})(?:\.(\d{1,3}))?(?!\w)")
_FIRST_OF_NEW_CLAUDE: Final = (4, 7)
_FIRST_WITH_BREAKPOINTS: Final = (5, 6)


@lru_cache(maxsize=256)
def look_up(model: str) -> CatalogEntry:
    """Return the data of a model."""
    name = model.lower()
    facts: dict[str, Any] = {}  # fields of an entry
    for pattern, more in _ROWS:
        if re.search(pattern, name):
            facts |= {**more, "is_listed": True}
    claude = _version(_CLAUDE_VERSION, name.partition("claude")[2])
    if claude and claude < _FIRST_OF_NEW_CLAUDE:
        facts["tokenizer"] = "claude_3"
    gpt = _version(_GPT_VERSION, name)
    if gpt and gpt >= _FIRST_WITH_BREAKPOINTS:
        facts["takes_breakpoints"] = True
    return CatalogEntry(**facts)


def canonical_name(name: str) -> str:
    """Return `provider:model` with the provider in lower case and without an alias."""
    provider, colon, model = name.partition(":")
    known = provider.lower()
    return f"{_PROVIDER_ALIASES.get(known, known)}:{model}" if colon else name


def chain_name(models: Iterable[str]) -> str:
    """Return the name of a fallback chain of models, in the order in which they are tried."""
    return _NEXT_LINK.join(models)


def chain_links(name: str) -> list[str]:
    """Return the models of a chain from its name; a single model is a chain of one."""
    return name.split(_NEXT_LINK)


def _version(pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
    found = pattern.search(text)
    return (int(found[1]), int(found[2] or 0)) if found else None
