"""Requests that continue a sent prompt, byte for byte, so that they hit its cache."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2

from remanence.protocols import LivePrompt
from remanence.providers.bounded_client import BoundedClient

Body: TypeAlias = dict[str, Any]  # the provider defines its shape

PATHS = ("/messages", "/chat/completions")


def continue_live(provider: str, live: LivePrompt) -> Callable[[Body], Body]:
    """Return a function that appends a request's last message to the live prompt."""

    def change(body: Body) -> Body:
        question = body["messages"][-1]
        if provider == "anthropic":
            prompt = live.to_anthropic()
            messages = _behind(prompt["messages"], question)
        else:
            prompt = live.to_openai()
            messages = [*prompt["messages"], question]
        kept = {name: value for name, value in body.items() if name != "system"}
        return {**kept, **prompt, "messages": messages}

    return change


def _behind(messages: list[Body], question: Body) -> list[Body]:
    """Append a question, to the last turn if that is the user's, as turns must alternate."""
    if not messages or messages[-1]["role"] != "user":
        return [*messages, question]
    last = messages[-1]
    return [*messages[:-1], {**last, "content": [*last["content"], *question["content"]]}]


class ChangingClient(BoundedClient):
    """An HTTP client that changes the JSON body of requests to a model."""

    change: Callable[[Body], Body]

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # as httpx2
        if not request.url.path.endswith(PATHS):
            return await super().send(request, **options)
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("content-length", "transfer-encoding")
        }
        changed = httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=json.dumps(self.change(json.loads(request.content))).encode(),
            extensions=request.extensions,
        )
        return await super().send(changed, **options)
