"""A model behind a dialect: maps errors to `ModelError`, and tokens to `Usage`."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

import httpx2
from pydantic import ValidationError

from remanence.chat.providers.errors import to_model_error
from remanence.chat.providers.response import Dialect, ProviderResponse, Tokens
from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.clock import Clock
from remanence.costs.prices import price
from remanence.errors import ModelError
from remanence.providers import UnusableAnswer
from remanence.providers.errors import describe_failure
from remanence.providers.spec import ModelSpec
from remanence.tokens import count_tokens
from remanence.types import Message, Usage

_TRANSPORT: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, "timeout"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection"),
    (json.JSONDecodeError, "bad_answer"),
    (ValidationError, "bad_answer"),
)

NOTHING: Final = Tokens(input=0, output=0)


class ProviderChatModel:
    """A model of a provider, called through its own protocol."""

    def __init__(self, dialect: Dialect, spec: ModelSpec, *, clock: Clock, attempts: int) -> None:
        self.attempts = attempts
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
        # Raised outside the handler, so that no traceback shows the provider's error: its text
        # may repeat the key and the conversation.
        raise failure

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | Usage | ChatAnswer, None]:
        started = asyncio.get_running_loop().time()
        failure: ModelError | None = None
        known = NOTHING
        try:
            async with aclosing(self._dialect.stream(request)) as pieces:
                async for piece in pieces:
                    match piece:
                        case str():
                            yield piece
                        case Tokens():
                            known = piece
                            yield self._usage(known, request, started, "cancelled")
                        case ProviderResponse():
                            yield self._answer(piece, request, started, known=known)
        except self._failures as error:
            failure = to_model_error(error, self._spec, self._reasons)
        if failure is not None:
            usage = self._usage(known, request, started, failure.reason)
            raise _with_usage(failure, usage)

    def _answer(
        self,
        spoken: ProviderResponse,
        request: ChatRequest,
        started: float,
        *,
        known: Tokens = NOTHING,
    ) -> ChatAnswer:
        """Return the answer with its usage.

        Raises:
            UnusableAnswer: `refused`, `connection`, `bad_answer` or `empty`.
        """
        if problem := self._problem(spoken):
            usage = self._usage(spoken.tokens or known, request, started, problem.reason)
            raise _with_usage(problem, usage)
        complete = spoken.ending == "complete"
        outcome = "ok" if complete else "cut_off"
        usage = self._usage(
            spoken.tokens or _estimate_usage(spoken, request), request, started, outcome
        )
        usage = replace(usage, estimated=spoken.tokens is None)
        return ChatAnswer(content=spoken.content, complete=complete, usage=usage)

    def _problem(self, spoken: ProviderResponse) -> ModelError | None:
        if spoken.ending == "refused":
            return describe_failure("refused", self._spec)
        if spoken.ending == "broken_off":
            return describe_failure("connection", self._spec)
        if spoken.ending == "unreadable":
            return describe_failure("bad_answer", self._spec)
        if not any(spoken.content):
            return ModelError("empty", f"{self.name} returned nothing: send again")
        return None

    def _usage(self, tokens: Tokens, request: ChatRequest, started: float, outcome: str) -> Usage:
        usage = Usage(
            conversation=request.conversation,
            user=request.user,
            purpose="chat",
            model=self.name,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cache_read_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
            cost_usd=None,
            duration_seconds=asyncio.get_running_loop().time() - started,
            outcome=outcome,
            at=self._clock.now(),
        )
        return replace(usage, cost_usd=price(self.name, usage))


def _with_usage(failure: ModelError, usage: Usage) -> UnusableAnswer:
    return UnusableAnswer(
        failure.reason,
        str(failure),
        usage=usage,
        retry_after_seconds=failure.retry_after_seconds,
    )


def _estimate_usage(spoken: ProviderResponse, request: ChatRequest) -> Tokens:
    answer = Message(role="assistant", content=spoken.content)
    return Tokens(input=request.context.stats.context_tokens, output=count_tokens(answer))
