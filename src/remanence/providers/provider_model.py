"""A provider's models behind its adapter: errors become `ModelError`, and tokens `Usage`."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import Final

from remanence.clock import Clock
from remanence.costs.prices import price
from remanence.errors import ModelError
from remanence.providers.failures import TRANSPORT, to_model_error, unusable
from remanence.providers.layer import Pieces
from remanence.providers.meter import Call, UnusableAnswer
from remanence.providers.options import ModelOptions
from remanence.providers.requests import (
    Adapter,
    EmbeddingAdapter,
    Ending,
    ProviderAnswer,
    ProviderRequest,
    ProviderResponse,
    Tokens,
)
from remanence.providers.spec import ModelSpec
from remanence.tokens import count_tokens
from remanence.types import Message, Usage

_PROBLEMS: Final[dict[Ending, str]] = {
    "refused": "refused",
    "broken_off": "connection",
    "unreadable": "bad_answer",
}


class ProviderModel:
    """Calls a provider's model once, whole or streamed."""

    def __init__(
        self, adapter: Adapter, spec: ModelSpec, *, clock: Clock, options: ModelOptions
    ) -> None:
        self.name = spec.name
        self.spec = spec
        self.form = adapter.form
        self._adapter = adapter
        self._clock = clock
        self._timeout_seconds = options.call_seconds
        self._reasons = (*adapter.reasons, *TRANSPORT)
        self._failures = tuple(kind for kind, _ in self._reasons)
        adapter.check()

    async def pieces(self, request: ProviderRequest, *, streaming: bool) -> Pieces[ProviderAnswer]:
        call, known, failure = Call(self.name, request.origin, self._clock), Tokens(), None
        source = self._adapter.stream(request) if streaming else self._whole(request)
        try:
            async with aclosing(source) as pieces:
                async for piece in pieces:
                    match piece:
                        case str():
                            yield piece
                        case Tokens():
                            known = piece
                            yield self._usage(call, "cancelled", known)
                        case ProviderResponse():
                            yield self._answer(piece, request, call, known)
        except self._failures as error:
            seconds = self._timeout_seconds
            failure = to_model_error(error, self.spec, self._reasons, timeout_seconds=seconds)
        # Raised outside the handler, so that no traceback shows the provider's error, whose text
        # may repeat the key or the conversation.
        if failure is not None and streaming:
            raise UnusableAnswer(failure, self._usage(call, failure.reason, known))
        if failure is not None:
            raise failure

    async def _whole(self, request: ProviderRequest) -> AsyncGenerator[ProviderResponse, None]:
        async with asyncio.timeout(self._timeout_seconds):
            response = await self._adapter.complete(request)
        yield response

    def _answer(
        self, response: ProviderResponse, request: ProviderRequest, call: Call, known: Tokens
    ) -> ProviderAnswer:
        """Return the answer with its usage.

        Raises:
            UnusableAnswer: `refused`, `connection`, `bad_answer` or `empty`.
        """
        message, tokens = Message(role="assistant", content=response.content), response.tokens
        reason = _PROBLEMS.get(response.ending) or ("empty" if message.is_empty else "")
        if reason:
            usage = self._usage(call, reason, tokens or known)
            cut_off = response.ending == "cut_off"
            raise UnusableAnswer(unusable(reason, self.spec, cut_off=cut_off), usage)
        if tokens is None:
            output = count_tokens(message)
            tokens = Tokens(input_tokens=request.estimate(), output_tokens=output)
        complete = response.ending == "complete"
        usage = self._usage(call, "ok" if complete else response.ending, tokens)
        usage = replace(usage, estimated=response.tokens is None)
        return ProviderAnswer(content=message.content, complete=complete, usage=usage)

    def _usage(self, call: Call, outcome: str, tokens: Tokens) -> Usage:
        usage = call.usage(outcome, tokens)
        if usage.cost_usd is not None:
            return usage
        return replace(usage, cost_usd=price(usage))


class ProviderEmbedder:
    """Makes vectors with a provider's model, whose name identifies them.

    While the provider asks for a pause, each call fails without a request.
    """

    dimensions = None

    def __init__(
        self, adapter: EmbeddingAdapter, spec: ModelSpec, *, clock: Clock, options: ModelOptions
    ) -> None:
        self.name = spec.name
        self._clock = clock
        self._pause_end = clock.now()
        self._adapter = adapter
        self._spec = spec
        self._timeout_seconds = options.call_seconds
        self._reasons = (*adapter.reasons, *TRANSPORT)
        adapter.check()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if (left := (self._pause_end - self._clock.now()).total_seconds()) > 0:
            text = f"{self.name} asked for a pause: try again in {left:,.0f} s"
            raise ModelError("cooling", text, retry_after_seconds=left, log_text=text)
        try:
            return await self._adapter.embed(texts)
        except tuple(kind for kind, _ in self._reasons) as error:
            seconds = self._timeout_seconds
            failure = to_model_error(error, self._spec, self._reasons, timeout_seconds=seconds)
        pause = timedelta(seconds=failure.retry_after_seconds or 0.0)
        self._pause_end = max(self._pause_end, self._clock.now() + pause)
        raise failure  # outside the handler, as above
