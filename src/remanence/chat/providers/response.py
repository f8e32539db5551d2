"""The response of a dialect: a provider's answer before it is checked."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from remanence.chat.requests import ChatRequest
from remanence.types import Part

Ending: TypeAlias = Literal["complete", "cut_off", "refused", "broken_off", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of a call; `input` includes those read from and written to the cache."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """An answer; `tokens` is None if the provider did not report them.

    It is `broken_off` if its end is missing, and `unreadable` if none of it fits the protocol.
    """

    content: tuple[Part, ...]
    ending: Ending
    tokens: Tokens | None


class Dialect(Protocol):
    """Speaks one protocol, and lets the errors of its client through.

    `reasons` maps those errors to codes of `ModelError`, specific ones first.
    """

    @property
    def reasons(self) -> Sequence[tuple[type[Exception], str]]: ...

    async def complete(self, request: ChatRequest) -> ProviderResponse: ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        """Yield pieces of text, the tokens so far if the provider reports them, then the answer."""
        ...
