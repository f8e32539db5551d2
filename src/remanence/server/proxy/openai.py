"""OpenAI's Chat Completions.

Events: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Sequence

from remanence.server.proxy.api import (
    JsonObject,
    Unit,
    list_of_objects,
    notes_like,
    with_part,
    without_prompts,
)
from remanence.types import Message
from remanence.wire import openai


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    provider = "openai"

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        return without_prompts(list_of_objects(body.get("messages")))

    def read(self, objects: Sequence[JsonObject]) -> list[Unit]:
        return [Unit(Message.from_openai(one), (one,)) for one in objects]

    def render(self, message: Message) -> list[JsonObject]:
        return openai.render(message.role, message.content, message.name)

    def with_text(self, message: JsonObject, text: str) -> JsonObject:
        return with_part(message, text, "text")

    def rewrite(self, body: JsonObject, notes: str, tail: Sequence[JsonObject]) -> JsonObject:
        prompts, _ = self.split(body)
        return {**body, "messages": [*prompts, *notes_like(prompts, notes), *tail]}

    def answer(self) -> "OpenAIAnswer":
        return OpenAIAnswer()


class OpenAIAnswer:
    """The message of the first choice."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, JsonObject] = {}
        self.objects: list[JsonObject] = []

    def take(self, response: JsonObject) -> None:
        match response.get("choices"):
            case [{"message": dict(message)}]:
                self.objects = [message]

    def feed(self, event: JsonObject) -> None:
        match event.get("choices"):
            case [{"index": 0, "delta": dict(delta), **choice}]:
                self._add(delta)
                if choice.get("finish_reason"):
                    self.objects = [self._whole()]

    def _add(self, delta: JsonObject) -> None:
        self._text.append(delta.get("content") or "")
        for piece in delta.get("tool_calls") or ():
            call = self._calls.setdefault(
                piece["index"], {"type": "function", "function": {"name": "", "arguments": ""}}
            )
            if piece.get("id"):
                call["id"] = piece["id"]
            function = piece.get("function") or {}
            for key in ("name", "arguments"):
                call["function"][key] += function.get(key) or ""

    def _whole(self) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": "".join(self._text)}
        calls = [self._calls[index] for index in sorted(self._calls)]
        return {**message, "tool_calls": calls} if calls else message
