"""What a dialect gives: an answer as the provider sent it, in our words."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from remanence.chat.requests import ChatRequest
from remanence.types import Part

Ending: TypeAlias = Literal["complete", "cut_off", "refused", "broken_off", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a call took; `input` is all input, also what was read from or written to the cache."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """An answer; `tokens` is None where the provider did not tell.

    It was `broken_off` where its end is missing, and `unreadable` where nothing of it was of the
    protocol.
    """

    content: tuple[Part, ...]
    ending: Ending
    tokens: Tokens | None


class Dialect(Protocol):
    """Speaks one protocol: naive, it raises what its client raises.

    `reasons` are the errors that it may raise, the narrower before the wider, with our codes.
    """

    @property
    def reasons(self) -> Sequence[tuple[type[Exception], str]]: ...

    async def complete(self, request: ChatRequest) -> ProviderResponse: ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        """Pieces of text, the tokens known so far where the provider tells them, and the answer."""
        ...
