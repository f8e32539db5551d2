"""OpenAI's Chat Completions.

Events: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

from remanence.server.proxy.api import ProxiedAPI, is_prompt, list_of_objects
from remanence.types import Message
from remanence.wire import openai
from remanence.wire.json_value import JsonObject

_KINDS_OF_CALLS: Final = {"function": "arguments", "custom": "input"}
"""The field with the text of each kind of call. The reference has pieces of functions only; those of
custom tools: https://github.com/openai/openai-openapi/issues/576
"""


class OpenAIAPI(ProxiedAPI):
    """An API with the conversation as a list in one field, after the prompts."""

    provider = "openai"
    field: ClassVar[str]

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        messages = list_of_objects(body.get(self.field))
        first = next((at for at, one in enumerate(messages) if not is_prompt(one)), len(messages))
        return messages[:first], messages[first:]

    def rewrite(
        self,
        body: JsonObject,
        notes: str,
        kept: Sequence[JsonObject],
        tail: Sequence[JsonObject],
    ) -> JsonObject:
        prompts, _ = self.split(body)
        role = prompts[-1]["role"] if prompts else "system"
        told = [{"role": role, "content": notes}] if notes else []
        return {**body, self.field: [*prompts, *told, *kept, *tail]}


class OpenAIAnswer:
    """The message of the only choice; of several, the next request shows which one was used."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"content": [], "refusal": []}
        self._audio: JsonObject = {}
        self._calls: dict[int, JsonObject] = {}
        self._has_choices = False
        self.objects: list[JsonObject] = []

    def take(self, response: JsonObject) -> None:
        match response.get("choices"):
            case [{"message": dict(message)}]:
                self.objects = [message]

    def feed(self, event: JsonObject) -> None:
        match event.get("choices"):
            case [{"index": 0, "delta": dict(delta), **choice}]:
                self._add(delta)
                if choice.get("finish_reason") and not self._has_choices:
                    self.objects = [self._whole()]
            case [{"index": int()}]:
                self._has_choices = True

    def _add(self, delta: JsonObject) -> None:
        for field, texts in self._texts.items():
            texts.append(delta.get(field) or "")
        if audio := delta.get("audio"):
            transcript = self._audio.get("transcript", "") + (audio.get("transcript") or "")
            self._audio |= {
                "id": audio.get("id") or self._audio.get("id"),
                "transcript": transcript,
            }
        for piece in delta.get("tool_calls") or ():
            self._add_call(self._calls.setdefault(piece["index"], {}), piece)

    def _add_call(self, call: JsonObject, piece: JsonObject) -> None:
        if piece.get("id"):
            call["id"] = piece["id"]
        for kind, text in _KINDS_OF_CALLS.items():
            if body := piece.get(kind):
                call["type"] = kind
                whole = call.setdefault(kind, {"name": "", text: ""})
                for key in whole:
                    whole[key] += body.get(key) or ""

    def _whole(self) -> JsonObject:
        texts = {field: "".join(pieces) for field, pieces in self._texts.items()}
        message: JsonObject = {"role": "assistant", **texts}
        if self._audio:
            message["audio"] = self._audio
        calls = [self._calls[index] for index in sorted(self._calls)]
        return {**message, "tool_calls": calls} if calls else message


class OpenAIChat(OpenAIAPI):
    """`POST /v1/chat/completions`."""

    field = "messages"
    text_type = "text"
    answer = OpenAIAnswer

    def read(self, one: JsonObject) -> Message:
        # Without the client's id and time: histories are recognised by content alone.
        return Message(**openai.parse(one)._asdict())

    def render(self, message: Message) -> list[JsonObject]:
        return openai.render(message.role, message.content, message.name)

    def rewrite(
        self,
        body: JsonObject,
        notes: str,
        kept: Sequence[JsonObject],
        tail: Sequence[JsonObject],
    ) -> JsonObject:
        own = {id(one) for one in body[self.field]}
        joined = list(_join_to_next([*kept, *tail[:1]], own))
        return super().rewrite(body, notes, joined, tail[1:])


def _join_to_next(messages: Iterable[JsonObject], own: Collection[int]) -> Iterator[JsonObject]:
    """Yield messages, with instructions taken from the user's joined to the user's next message.

    The client's *own* ones are left apart. Templates of many models demand that the user and the
    model take turns.
    """
    begun: JsonObject | None = None
    for one in messages:
        message = one
        if begun is not None and _speaker(begun) == _speaker(one):
            message = {**one, "content": [*_blocks(begun), *_blocks(one)]}
        elif begun is not None:
            yield begun
        begun = None if id(one) in own or one.get("role") != "user" else message
        if begun is None:
            yield message
    if begun is not None:
        yield begun


def _speaker(one: JsonObject) -> tuple[Any, Any]:  # JSON
    return one.get("role"), one.get("name")


def _blocks(one: JsonObject) -> list[Any]:  # JSON
    content = one.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []
