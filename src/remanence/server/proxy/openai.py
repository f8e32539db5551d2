"""OpenAI's Chat Completions.

Events: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Sequence
from typing import Final

from remanence.server.proxy.api import JsonObject
from remanence.types import Message
from remanence.wire import openai

_PROMPTS: Final = ("system", "developer")


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    provider = "openai"

    def leading(self, messages: Sequence[JsonObject]) -> int:
        others = (at for at, message in enumerate(messages) if message.get("role") not in _PROMPTS)
        return next(others, len(messages))

    def read(self, message: JsonObject) -> Message:
        return Message.from_openai(message)

    def render(self, message: Message) -> list[JsonObject]:
        return openai.render(message.role, message.content, message.name)

    def rewrite(self, body: JsonObject, notes: str, tail: Sequence[JsonObject]) -> JsonObject:
        prompts = body["messages"][: self.leading(body["messages"])]
        role = prompts[-1]["role"] if prompts else "system"
        told = [{"role": role, "content": notes}] if notes else []
        return {**body, "messages": [*prompts, *told, *tail]}

    def answer(self) -> "OpenAIAnswer":
        return OpenAIAnswer()


class OpenAIAnswer:
    """The message of the first choice."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, JsonObject] = {}
        self.message: JsonObject | None = None

    def take(self, response: JsonObject) -> None:
        match response.get("choices"):
            case [{"message": dict(message)}]:
                self.message = message

    def feed(self, event: JsonObject) -> None:
        match event.get("choices"):
            case [{"index": 0, "delta": dict(delta), **choice}]:
                self._add(delta)
                if choice.get("finish_reason"):
                    self.message = self._whole()

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
