"""A provider's model behind its adapter: errors become `ModelError`, and tokens `Usage`."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from remanence.clock import Clock
from remanence.costs.prices import price
from remanence.errors import ModelError
from remanence.providers.failures import TRANSPORT, to_model_error, unusable
from remanence.providers.layer import Pieces
from remanence.providers.meter import UnusableAnswer
from remanence.providers.options import ModelOptions
from remanence.providers.requests import (
    Adapter,
    Ending,
    Form,
    ProviderAnswer,
    ProviderRequest,
    ProviderResponse,
    Tokens,
)
from remanence.providers.spec import ModelSpec
from remanence.tokens import count_tokens
from remanence.types import Message, Usage

NOTHING: Final = Tokens(input=0, output=0)

_PROBLEMS: Final[dict[Ending, str]] = {
    "refused": "refused",
    "broken_off": "connection",
    "unreadable": "bad_answer",
}


class ProviderModel:
    """Calls a model of a provider once, whole or streamed."""

    def __init__(
        self, adapter: Adapter, spec: ModelSpec, *, clock: Clock, options: ModelOptions
    ) -> None:
        self.spec = spec
        self._adapter = adapter
        self._clock = clock
        self._timeout_seconds = options.call_seconds
        self._reasons = (*adapter.reasons, *TRANSPORT)
        self._failures = tuple(kind for kind, _ in self._reasons)
        adapter.check()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def form(self) -> Form:
        """The form of the prompts that it takes."""
        return self._adapter.form

    async def complete(self, request: ProviderRequest) -> ProviderAnswer:
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await self._adapter.complete(request)
        except self._failures as error:
            failure = self._failure(error)
        else:
            return self._answer(response, request, started)
        # Raised outside the handler, so that no traceback shows the provider's error: its text
        # may repeat the key and the conversation.
        raise failure

    async def stream(self, request: ProviderRequest) -> Pieces[ProviderAnswer]:
        started = asyncio.get_running_loop().time()
        failure: ModelError | None = None
        known = NOTHING
        try:
            async with aclosing(self._adapter.stream(request)) as pieces:
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
            failure = self._failure(error)
        if failure is not None:
            raise _with_usage(failure, self._usage(known, request, started, failure.reason))

    def _failure(self, error: Exception) -> ModelError:
        return to_model_error(
            error, self.spec, self._reasons, timeout_seconds=self._timeout_seconds
        )

    def _answer(
        self,
        response: ProviderResponse,
        request: ProviderRequest,
        started: float,
        *,
        known: Tokens = NOTHING,
    ) -> ProviderAnswer:
        """Return the answer with its usage.

        Raises:
            UnusableAnswer: `refused`, `connection`, `bad_answer` or `empty`.
        """
        reason = _PROBLEMS.get(response.ending)
        if reason is None and not response.content:
            reason = "empty"
        if reason is not None:
            usage = self._usage(response.tokens or known, request, started, reason)
            raise _with_usage(unusable(reason, self.spec), usage)
        complete = response.ending == "complete"
        tokens = response.tokens or _estimate(response, request)
        usage = self._usage(tokens, request, started, "ok" if complete else "cut_off")
        usage = replace(usage, estimated=response.tokens is None)
        return ProviderAnswer(content=response.content, complete=complete, usage=usage)

    def _usage(
        self, tokens: Tokens, request: ProviderRequest, started: float, outcome: str
    ) -> Usage:
        usage = Usage(
            conversation=request.conversation,
            user=request.user,
            purpose=request.purpose,
            model=self.name,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cache_read_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
            cost_usd=tokens.cost_usd,
            duration_seconds=asyncio.get_running_loop().time() - started,
            outcome=outcome,
            at=self._clock.now(),
        )
        if usage.cost_usd is not None:
            return usage
        return replace(usage, cost_usd=price(self.name, usage))


def _with_usage(failure: ModelError, usage: Usage) -> UnusableAnswer:
    return UnusableAnswer(
        failure.reason,
        str(failure),
        usage=usage,
        retry_after_seconds=failure.retry_after_seconds,
    )


def _estimate(response: ProviderResponse, request: ProviderRequest) -> Tokens:
    answer = Message(role="assistant", content=response.content)
    return Tokens(input=request.estimate(), output=count_tokens(answer))
