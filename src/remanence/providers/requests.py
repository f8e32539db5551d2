"""A provider call as plain values, and the protocols of adapters."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel

from remanence.arguments import MAX_COUNT
from remanence.providers.layer import Request
from remanence.types import Part, Tool, Usage
from remanence.wire.json_value import JsonObject

Form: TypeAlias = Literal["anthropic", "openai", "text"]
Ending: TypeAlias = Literal["complete", "cut_off", "paused", "refused", "broken_off", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """A request for an adapter: `origin` with its prompt rendered in the adapter's form.

    With `conclude` the model may not call its tools. `cache_key` routes requests with the same
    prefix to the same cache, and `settings` are further fields of the body. `estimate` counts the
    input tokens if the provider does not report them.
    """

    origin: Request
    prompt: JsonObject
    max_output_tokens: int | None
    estimate: Callable[[], int]
    cache_key: str
    tools: tuple[Tool, ...] = ()
    conclude: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """A model's answer; `complete` is false if it was cut off at the output limit, or paused."""

    content: tuple[Part, ...]
    complete: bool
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of a call, as in `Usage`; `cost_usd` is the cost if the provider reports it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


def tokens_of(usage: Any) -> Tokens | None:  # any JSON, as the clients do not check it
    """Return the tokens of a usage of OpenAI or Anthropic, None unless all of them are counts."""
    if isinstance(usage, BaseModel):
        usage = usage.model_dump(warnings=False)
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    read, written = map(usage.get, ("cache_read_input_tokens", "cache_creation_input_tokens"))
    counts: dict[str, Any] = {
        "input_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "output_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
        "cache_read_tokens": read or details.get("cached_tokens") or 0,
        "cache_write_tokens": written or details.get("cache_write_tokens") or 0,
    }
    if not all(isinstance(count, int) and 0 <= count <= MAX_COUNT for count in counts.values()):
        return None
    cached = counts["cache_read_tokens"] + counts["cache_write_tokens"]
    if not details and "prompt_tokens" not in usage:  # Anthropic counts cached input separately
        counts["input_tokens"] += cached
    counts["input_tokens"] = max(counts["input_tokens"], cached)  # which some servers leave out
    cost = usage.get("cost")  # in US dollars, from OpenRouter, LiteLLM and others
    if isinstance(cost, int | float) and 0 <= cost <= MAX_COUNT:
        counts["cost_usd"] = float(cost)
    return Tokens(**counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """An answer before it is checked; `tokens` is None if the provider did not report them.

    `ending` is `broken_off` if its end is missing, and `unreadable` if it does not fit the protocol.
    """

    content: tuple[Part, ...]
    ending: Ending
    tokens: Tokens | None


class Access(Protocol):
    """Access to a provider, which raises the errors of its client unchanged.

    `reasons` maps those errors to codes of `ModelError`, specific ones first; None means the reason
    for the HTTP status.
    """

    @property
    def reasons(self) -> Sequence[tuple[type[Exception], str | None]]: ...

    def check(self) -> None:
        """Raise `ModelError` if a call would fail because the key or the model is missing."""
        ...


class Adapter(Access, Protocol):
    """Calls the language models of one provider; `form` is the form of its prompts."""

    @property
    def form(self) -> Form: ...

    async def complete(self, request: ProviderRequest) -> ProviderResponse: ...

    def stream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        """Yield pieces of text, the tokens so far if the provider reports them, then the answer."""
        ...


class EmbeddingAdapter(Access, Protocol):
    """Calls the embedding models of one provider."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...
