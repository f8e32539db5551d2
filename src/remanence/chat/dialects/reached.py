"""A model behind a dialect: errors in our words, usage in our counting."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import genai_prices
import httpx2
from pydantic import ValidationError

from remanence.chat.dialects.failures import to_model_error
from remanence.chat.dialects.spoken import Dialect, Spoken, Tokens
from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.models.spec import ModelSpec
from remanence.models.wording import described
from remanence.tokens import count_tokens
from remanence.types import Message, Usage

_TRANSPORT: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, "timeout"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection"),
    (json.JSONDecodeError, "bad_answer"),
    (ValidationError, "bad_answer"),
)


class ReachedModel:
    """A model of a provider, called through its own protocol."""

    def __init__(self, dialect: Dialect, spec: ModelSpec, *, clock: Clock) -> None:
        self._dialect = dialect
        self._spec = spec
        self._clock = clock
        self._reasons = (*dialect.reasons, *_TRANSPORT)
        self._failures = tuple(kind for kind, _ in self._reasons)

    @property
    def name(self) -> str:
        return self._spec.name

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        started = asyncio.get_running_loop().time()
        try:
            spoken = await self._dialect.complete(request)
        except self._failures as error:
            failure = to_model_error(error, self._spec, self._reasons)
        else:
            return self._answer(spoken, request, started)
        # Raised here and not in the handler, so that no traceback shows the provider's own error:
        # its text may repeat the key and the conversation.
        raise failure

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        started = asyncio.get_running_loop().time()
        failure: ModelError | None = None
        try:
            async with aclosing(self._dialect.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        yield piece
                    else:
                        yield self._answer(piece, request, started)
        except self._failures as error:
            failure = to_model_error(error, self._spec, self._reasons)
        if failure is not None:
            raise failure

    def _answer(self, spoken: Spoken, request: ChatRequest, started: float) -> ChatAnswer:
        """The answer with its usage.

        Raises:
            ModelError: `refused`, `connection` or `empty`.
        """
        if spoken.ending == "refused":
            raise described("refused", self._spec)
        if spoken.ending == "broken_off":
            raise described("connection", self._spec)
        if not any(spoken.content):
            raise ModelError("empty", f"{self.name} returned nothing: send again")
        tokens = spoken.tokens or _estimated(spoken, request)
        complete = spoken.ending == "complete"
        usage = Usage(
            conversation=request.conversation,
            user=request.user,
            purpose="chat",
            model=self.name,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cache_read_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
            cost_usd=_cost_usd(self._spec, tokens),
            duration_seconds=asyncio.get_running_loop().time() - started,
            outcome="ok" if complete else "cut_off",
            at=self._clock.now(),
        )
        return ChatAnswer(content=spoken.content, complete=complete, usage=usage)


def _estimated(spoken: Spoken, request: ChatRequest) -> Tokens:
    answer = Message(role="assistant", content=spoken.content)
    return Tokens(input=request.context.stats.context_tokens, output=count_tokens(answer))


def _cost_usd(spec: ModelSpec, tokens: Tokens) -> float | None:
    """The list price; None for a model that the table does not hold."""
    usage = genai_prices.Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
    )
    try:
        price = genai_prices.calc_price(usage, spec.model, provider_id=spec.provider)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
