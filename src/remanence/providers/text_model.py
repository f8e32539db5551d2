"""A provider's model for observers, reflectors and extractors, which answers with a text."""

import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.providers import infer_provider_class

from remanence.errors import ModelError
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers.failures import unusable
from remanence.providers.layer import Layer, Pieces
from remanence.providers.meter import UnusableAnswer
from remanence.providers.prompts import cache_key, render_question, takes_breakpoints
from remanence.providers.provider_model import ProviderModel
from remanence.providers.requests import Form, ProviderAnswer, ProviderRequest
from remanence.providers.spec import ModelSpec, can_continue
from remanence.tokens import count_tokens
from remanence.types import TextPart, Usage
from remanence.wire.json_value import JsonObject

Profile = Mapping[str, Any]  # pydantic-ai's typed dicts, one for each provider

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class TextModel(Layer[ModelRequest, ModelAnswer]):
    """Calls a provider's model without tools, for short, repeatable answers."""

    def __init__(self, model: ProviderModel, *, stream: bool) -> None:
        self.name = model.name
        self._model = model
        self._stream = stream
        self._settings = repeatable_settings(model.spec, model.form)

    async def pieces(self, request: ModelRequest, *, streaming: bool) -> Pieces[ModelAnswer]:
        """Yield the answer; if `stream` is set, first the usage so far."""
        if request.live is not None and not can_continue(self.name):
            raise ModelError(
                "bad_request",
                f"{self.name} cannot continue a prompt: use observer_mode='separate'",
            )
        call = self._model.pieces(self._render(request), streaming=streaming or self._stream)
        async with aclosing(call) as pieces:
            async for piece in pieces:
                if isinstance(piece, ProviderAnswer):
                    yield self._read(piece)
                elif isinstance(piece, Usage):
                    yield piece

    def _read(self, answer: ProviderAnswer) -> ModelAnswer:
        texts = (part.text for part in answer.content if isinstance(part, TextPart))
        text = "\n".join(filter(None, texts))
        if not text.strip():
            usage = replace(answer.usage, outcome="empty")
            failure = unusable("empty", self._model.spec, cut_off=not answer.complete)
            raise UnusableAnswer(failure, usage)
        return ModelAnswer(text=text, complete=answer.complete, usage=answer.usage)

    def _render(self, request: ModelRequest) -> ProviderRequest:
        model = self._model
        return ProviderRequest(
            origin=request,
            prompt=render_question(request, model.form, model.spec),
            max_output_tokens=request.max_output_tokens,
            estimate=lambda: count_tokens(request.stable) + count_tokens(request.prompt),
            cache_key=_cache_key(request),
            settings=self._settings,
        )


def _cache_key(request: ModelRequest) -> str:
    """Return the chat's cache key if the request continues its prompt, else one for `stable`."""
    if request.live is not None and request.conversation is not None:
        return cache_key(request.conversation)
    digest = hashlib.sha256(request.stable.encode(errors="replace")).hexdigest()
    return f"remanence-{digest[:16]}"


def repeatable_settings(spec: ModelSpec, form: Form) -> JsonObject:
    """Return request fields for repeatable answers; empty for an adapter that sets them itself."""
    if form == "text":
        return {}
    profile: Profile = infer_provider_class(spec.provider).model_profile(spec.model) or {}
    return _anthropic(profile) if form == "anthropic" else _openai(profile, spec)


def _anthropic(profile: Profile) -> JsonObject:
    settings: JsonObject = {}
    if not profile.get("anthropic_disallows_sampling_settings", False):
        settings["temperature"] = 0.0
    if profile.get("thinking_always_enabled", False):
        if profile.get("anthropic_supports_effort", False):
            settings |= {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}
    elif profile.get("anthropic_disables_thinking_with_between_tools", False):
        settings["thinking"] = {"type": "between_tools"}
    elif profile.get("thinking_enabled_by_default", False):
        settings["thinking"] = {"type": "disabled"}
    return settings


def _openai(profile: Profile, spec: ModelSpec) -> JsonObject:
    settings: JsonObject = {}
    if not profile.get("openai_supports_reasoning", False):
        settings["temperature"] = 0.0  # reasoning models reject it
    elif efforts := profile.get("openai_reasoning_efforts"):
        settings["reasoning_effort"] = min(efforts, key=_EFFORTS.index)
    elif not profile.get("thinking_always_enabled", False):
        settings["reasoning_effort"] = "none"
    if takes_breakpoints(spec):
        settings["prompt_cache_options"] = {"mode": "explicit", "ttl": "30m"}
    return settings
