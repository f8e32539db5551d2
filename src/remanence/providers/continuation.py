"""Requests that go on from a prompt as it was sent, byte for byte, so that its cache is read."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2

from remanence.protocols import LivePrompt
from remanence.providers.bounded_client import BoundedClient

Body: TypeAlias = dict[str, Any]  # a request: its shape is the provider's

PATHS = ("/messages", "/chat/completions")


def continue_live(provider: str, live: LivePrompt) -> Callable[[Body], Body]:
    """A function that puts a request's last message behind the live prompt."""

    def change(body: Body) -> Body:
        asked = body["messages"][-1]
        if provider == "anthropic":
            prompt = live.to_anthropic()
            messages = _behind(prompt["messages"], asked)
        else:
            prompt = live.to_openai()
            messages = [*prompt["messages"], asked]
        kept = {name: value for name, value in body.items() if name != "system"}
        return {**kept, **prompt, "messages": messages}

    return change


def _behind(messages: list[Body], asked: Body) -> list[Body]:
    """With the question in the last turn where that is the user's: turns alternate."""
    if not messages or messages[-1]["role"] != "user":
        return [*messages, asked]
    last = messages[-1]
    return [*messages[:-1], {**last, "content": [*last["content"], *asked["content"]]}]


class ChangingClient(BoundedClient):
    """An HTTP client that changes the JSON of what it sends to a model."""

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
