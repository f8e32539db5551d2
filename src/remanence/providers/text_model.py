"""A provider's model that answers with a text: of observers, reflectors and extractors."""

import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from remanence.errors import ModelError
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers.failures import unusable
from remanence.providers.layer import Layer, Pieces
from remanence.providers.meter import UnusableAnswer
from remanence.providers.prompts import cache_key, render_question
from remanence.providers.provider_model import ProviderModel
from remanence.providers.requests import ProviderAnswer, ProviderRequest
from remanence.providers.spec import can_continue
from remanence.tokens import text_tokens
from remanence.types import TextPart, Usage


class TextModel(Layer[ModelRequest, ModelAnswer]):
    """Calls a provider's model without tools; *settings* are further fields of its requests."""

    def __init__(self, model: ProviderModel, *, stream: bool, settings: Mapping[str, Any]) -> None:
        self._model = model
        self._stream = stream
        self._settings = settings

    @property
    def name(self) -> str:
        return self._model.name

    async def pieces(self, request: ModelRequest, *, streaming: bool) -> Pieces[ModelAnswer]:
        """Yield the answer; before it, if `stream` is set, the usage of the call so far."""
        if request.live is not None and not can_continue(self.name):
            raise ModelError(
                "bad_request",
                f"{self.name} cannot go on from a prompt: use observer_mode='separate'",
            )
        rendered = self._render(request)
        if not (streaming or self._stream):
            yield self._read(await self._model.complete(rendered))
            return
        async with aclosing(self._model.stream(rendered)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ProviderAnswer):
                    yield self._read(piece)
                elif isinstance(piece, Usage):
                    yield piece

    def _read(self, answer: ProviderAnswer) -> ModelAnswer:
        texts = (part.text for part in answer.content if isinstance(part, TextPart))
        text = "\n".join(filter(None, texts))
        if not text.strip():
            empty = unusable("empty", self._model.spec)
            usage = replace(answer.usage, outcome=empty.reason)
            raise UnusableAnswer(empty.reason, str(empty), usage=usage)
        return ModelAnswer(text=text, complete=answer.complete, usage=answer.usage)

    def _render(self, request: ModelRequest) -> ProviderRequest:
        model = self._model
        return ProviderRequest(
            prompt=render_question(request, model.form, model.spec),
            max_output_tokens=request.max_output_tokens,
            purpose=request.purpose,
            conversation=request.conversation,
            user=request.user,
            estimate=lambda: text_tokens(request.stable) + text_tokens(request.prompt),
            cache_key=self._cache_key(request),
            settings=self._settings,
        )

    def _cache_key(self, request: ModelRequest) -> str | None:
        """Return the key of a chat if the request goes on from its prompt, else of the stable text."""
        if request.live is not None and request.conversation is not None:
            return cache_key(request.conversation)
        if self._model.spec.base_url is not None:
            return None
        digest = hashlib.sha256(request.stable.encode(errors="replace")).hexdigest()
        return f"remanence-{digest[:16]}"
