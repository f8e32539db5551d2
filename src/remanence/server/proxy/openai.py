"""OpenAI's Chat Completions.

Events: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Sequence
from typing import ClassVar

from remanence.server.proxy.api import ProxiedAPI, list_of_objects
from remanence.types import Message
from remanence.wire import openai
from remanence.wire.json_value import JsonObject

_PROMPT_ROLES = ("system", "developer")


class OpenAIAPI(ProxiedAPI):
    """An API with the conversation as a list in one field, after the prompts."""

    provider = "openai"
    field: ClassVar[str]

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        messages = list_of_objects(body.get(self.field))
        roles = [message.get("role") in _PROMPT_ROLES for message in messages]
        first = roles.index(False) if False in roles else len(messages)
        return messages[:first], messages[first:]

    def rewrite(self, body: JsonObject, notes: str, tail: Sequence[JsonObject]) -> JsonObject:
        prompts, _ = self.split(body)
        role = prompts[-1]["role"] if prompts else "system"
        told = [{"role": role, "content": notes}] if notes else []
        return {**body, self.field: [*prompts, *told, *tail]}


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


class OpenAIChat(OpenAIAPI):
    """`POST /v1/chat/completions`."""

    field = "messages"
    text_type = "text"
    answer = OpenAIAnswer

    def read(self, one: JsonObject) -> Message:
        # Without an id and a time of the client's: a history is known by its content alone.
        return Message(**openai.parse(one)._asdict())

    def render(self, message: Message) -> list[JsonObject]:
        return openai.render(message.role, message.content, message.name)
