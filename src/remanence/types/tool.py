"""A function that a model may call."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from remanence.arguments import require_async, require_one_of, require_text
from remanence.errors import InvalidArgument
from remanence.wire.json_value import JsonObject

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names that OpenAI and Anthropic accept."""


class ErrorText(str):
    """A text for the model that says why a tool failed: a chat reports it as an error result."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may call.

    `parameters` is a JSON schema of an object; `handler` gets such an object and returns the text
    for the model; those of `memory_tools` take its JSON text, too. An exception is reported to the
    model as an error result, and the turn continues.

    Raises:
        InvalidArgument: a field has the wrong type, providers do not accept the name, or the handler
            is not async.
    """

    name: str
    description: str
    parameters: JsonObject
    handler: Callable[[Any], Awaitable[str]]  # the caller's kind of object, or JSON text

    def __post_init__(self) -> None:
        require_text(name=self.name, description=self.description)
        if not _NAME.fullmatch(self.name):
            raise InvalidArgument(
                f"name={self.name!r:.80} is not a tool name that providers accept: use 1 to 64 "
                "letters, digits, _ and -, without spaces"
            )
        require_one_of(dict, parameters=self.parameters)
        require_async(handler=self.handler)

    def to_openai(self) -> JsonObject:
        """Return the definition in the format of OpenAI's Chat Completions."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    def to_anthropic(self) -> JsonObject:
        """Return the definition in the format of Anthropic's Messages API."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.parameters,
        }
