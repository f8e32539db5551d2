"""Rendering of prompts for the adapters, from a context or from a request without tools."""

import hashlib
from typing import assert_never

from remanence.catalog import look_up
from remanence.protocols import LivePrompt, ModelRequest
from remanence.providers.requests import Form
from remanence.providers.spec import ModelSpec
from remanence.types import ConversationRef
from remanence.wire.json_value import JsonObject
from remanence.wire.turns import CACHE_CONTROL, OPENAI_BREAKPOINT


def render_context(context: LivePrompt, form: Form, spec: ModelSpec) -> JsonObject:
    """Render a context for a chat model."""
    if form == "anthropic":
        return context.to_anthropic()
    return context.to_openai(cache_breakpoints=takes_breakpoints(spec))


def render_question(request: ModelRequest, form: Form, spec: ModelSpec) -> JsonObject:
    """Render a request without tools; with `live`, as one more message after that prompt."""
    if request.live is not None:
        prompt = render_context(request.live, form, spec)
        return _append(prompt, f"{request.stable}\n\n{request.prompt}", form)
    match form:
        case "text":
            return {"system": request.stable, "prompt": request.prompt}
        case "anthropic":
            text = {"type": "text", "text": request.stable, "cache_control": CACHE_CONTROL}
            prompt = {"system": [text], "messages": []} if request.stable else {"messages": []}
        case "openai":
            content: str | list[JsonObject] = request.stable
            if takes_breakpoints(spec):
                mark = {"prompt_cache_breakpoint": OPENAI_BREAKPOINT}
                content = [{"type": "text", "text": request.stable, **mark}]
            system = [{"role": "system", "content": content}] if request.stable else []
            prompt = {"messages": system}
        case _:
            assert_never(form)
    return _append(prompt, request.prompt, form)


def cache_key(ref: ConversationRef) -> str:
    """Return a key that routes a conversation to one cache, without revealing its name."""
    return hashlib.sha256("\0".join(ref).encode()).hexdigest()[:32]


def takes_breakpoints(spec: ModelSpec) -> bool:
    """Return whether a model supports explicit cache breakpoints, as some of OpenAI's do."""
    return spec.provider == "openai" and look_up(spec.model).takes_breakpoints


def _append(prompt: JsonObject, question: str, form: Form) -> JsonObject:
    """Append a user question.

    Anthropic's turns must alternate, so the question is added to a user turn at the end.
    """
    messages = prompt["messages"]
    if form == "openai":
        return {**prompt, "messages": [*messages, {"role": "user", "content": question}]}
    blocks = [{"type": "text", "text": question}]
    if messages and messages[-1]["role"] == "user":
        last = messages[-1]
        messages, blocks = messages[:-1], [*last["content"], *blocks]
    return {**prompt, "messages": [*messages, {"role": "user", "content": blocks}]}
