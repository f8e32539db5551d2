"""Anthropic's Messages API, through the official client."""

import os
from collections.abc import AsyncGenerator
from typing import Final

import anthropic
import httpx2
from anthropic.lib.streaming import AsyncMessageStream, ParsedMessageStreamEvent
from anthropic.types import Message as WireMessage

from remanence.errors import ModelError
from remanence.providers.clients import call_client
from remanence.providers.options import ModelOptions
from remanence.providers.requests import (
    Ending,
    Form,
    ProviderRequest,
    ProviderResponse,
    Tokens,
    tokens_of,
)
from remanence.providers.spec import ModelSpec, own_key
from remanence.wire.anthropic import parse
from remanence.wire.json_value import JsonObject

OUTPUT_TOKENS: Final = 8_192
KEY_VARIABLES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")

_ENDINGS: Final[dict[str | None, Ending]] = {
    None: "broken_off",
    "max_tokens": "cut_off",
    "model_context_window_exceeded": "cut_off",
    "pause_turn": "paused",
    "refusal": "refused",
}


class Anthropic:
    """Sends the context with its breakpoints."""

    form: Final[Form] = "anthropic"
    reasons: Final[tuple[tuple[type[Exception], str | None], ...]] = (
        (anthropic.APITimeoutError, "timeout"),
        (anthropic.APIConnectionError, "connection"),
        (anthropic.APIResponseValidationError, "bad_answer"),
        (anthropic.APIError, None),
        (anthropic.AnthropicError, "bad_answer"),
    )

    def __init__(self, spec: ModelSpec, options: ModelOptions) -> None:
        self._spec = spec
        self._options = options

    def check(self) -> None:
        if own_key(self._spec) is None and not any(os.environ.get(name) for name in KEY_VARIABLES):
            raise ModelError("auth", f"{self._spec.name} needs a key: set {KEY_VARIABLES[0]}")

    async def complete(self, request: ProviderRequest) -> ProviderResponse:
        async with call_client(self._options) as http:
            client = self._client(http)
            message: object = await client.messages.create(**self._arguments(request))
        return _parse_response(message)

    async def stream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        message: object = None
        ending: Ending = "unreadable"
        async with (
            call_client(self._options) as http,
            self._client(http).messages.stream(**self._arguments(request)) as events,
        ):
            while (event := await _next_event(events)) is not None:
                if event.type == "message_start":
                    ending = "broken_off"
                    if begun := tokens_of(event.message.usage):
                        yield begun
                elif ending == "unreadable":
                    raise anthropic.AnthropicError(f"{event.type} came before message_start")
                elif event.type == "text":
                    yield event.text
                elif event.type == "message_stop":
                    message = event.message
        yield (
            _parse_response(message)
            if message
            else ProviderResponse(content=(), ending=ending, tokens=None)
        )

    def _client(self, http: httpx2.AsyncClient) -> anthropic.AsyncAnthropic:
        self.check()
        return anthropic.AsyncAnthropic(
            api_key=own_key(self._spec),
            base_url=self._spec.base_url,
            http_client=http,
            max_retries=0,  # we retry ourselves, so that each attempt is in the ledger
            timeout=self._options.call_seconds,
        )

    def _arguments(self, request: ProviderRequest) -> JsonObject:
        arguments: JsonObject = {
            **request.prompt,
            "model": self._spec.model,
            "max_tokens": request.max_output_tokens or OUTPUT_TOKENS,
            "extra_body": request.settings,
        }
        if request.tools:
            arguments["tools"] = [tool.to_anthropic() for tool in request.tools]
            if request.conclude:
                arguments["tool_choice"] = {"type": "none"}
        return arguments


async def _next_event(events: AsyncMessageStream) -> ParsedMessageStreamEvent | None:
    """Return the next event of a stream, None at its end; the client raises built-in errors."""
    try:
        return await anext(events, None)
    except (AttributeError, LookupError, RuntimeError, TypeError) as error:
        raise anthropic.AnthropicError("the events of the stream are out of order") from error


def _parse_response(message: object) -> ProviderResponse:
    if not isinstance(message, WireMessage) or not isinstance(message.content, list):
        raise anthropic.AnthropicError("the answer is not a message")
    blocks = [block.to_dict(mode="json", exclude_none=True) for block in message.content]
    return ProviderResponse(
        content=parse({"role": "assistant", "content": blocks}).content,
        ending=_ENDINGS.get(message.stop_reason, "complete"),
        tokens=tokens_of(message.usage),
    )


open_adapter: Final = Anthropic
