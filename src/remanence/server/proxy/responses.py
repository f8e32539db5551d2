"""OpenAI's Responses API, with the whole conversation in each request.

Events: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Sequence

from remanence.errors import InvalidMessage
from remanence.server.proxy.api import is_reference, list_of_objects
from remanence.server.proxy.openai import OpenAIAPI
from remanence.types import Message
from remanence.wire import responses
from remanence.wire.json_value import JsonObject


class ResponsesAnswer:
    """The items of a response."""

    def __init__(self) -> None:
        self._items: list[JsonObject] = []
        self.objects: list[JsonObject] = []

    def take(self, response: JsonObject) -> None:
        if response.get("status") == "completed":
            self.objects = list_of_objects(response.get("output"))

    def feed(self, event: JsonObject) -> None:
        match event:
            case {"type": "response.output_item.done", "item": dict(item)}:
                self._items.append(item)
            case {"type": "response.completed"}:
                self.objects = self._items


class OpenAIResponses(OpenAIAPI):
    """`POST /v1/responses`."""

    field = "input"
    text_type = "input_text"
    answer = ResponsesAnswer

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        if body.get("previous_response_id") or body.get("conversation"):
            raise InvalidMessage("the provider stores the beginning of the conversation")
        value = body.get("input")
        if isinstance(value, str):
            body = {"input": [{"role": "user", "content": value}]}
        return super().split(body)

    def read(self, one: JsonObject) -> Message:
        if is_reference(one):
            raise InvalidMessage("the provider stores an item of the conversation")
        (message,) = Message.from_openai_responses([one])
        return message

    def render(self, message: Message) -> list[JsonObject]:
        return responses.render(message.role, message.content, message.name)
