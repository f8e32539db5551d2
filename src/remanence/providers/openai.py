"""OpenAI's Chat Completions, through the official client; also for compatible servers."""

import os
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

import httpx2
import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDeltaToolCall

from remanence.errors import InvalidMessage, ModelError
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
from remanence.types import Part
from remanence.wire.content import present
from remanence.wire.json_value import JsonObject
from remanence.wire.openai import parse

OLLAMA_URL: Final = "http://localhost:11434/v1"
NO_KEY: Final = "no-key-needed"
"""A placeholder key: the client requires one even for a local server."""

_OPENAI_MODEL: Final = re.compile(r"(?:.*/)?(?:gpt|chatgpt|o\d)-")
"""Models that accept only `max_completion_tokens`, even behind other servers; others may ignore it."""

_ENDINGS: Final[dict[str | None, Ending]] = {
    None: "broken_off",
    "content_filter": "refused",
    "length": "cut_off",
}


class ReportedError(openai.OpenAIError):
    """An error with the status 200, as OpenRouter reports those of a model's provider."""

    def __init__(self, body: object) -> None:
        super().__init__("the answer is an error")
        self.body = body


class OpenAI:
    """Sends the context as messages."""

    form: Final[Form] = "openai"
    reasons: Final[tuple[tuple[type[Exception], str | None], ...]] = (
        (openai.APITimeoutError, "timeout"),
        (openai.APIConnectionError, "connection"),
        (openai.APIResponseValidationError, "bad_answer"),
        (openai.APIError, None),
        (ReportedError, None),
        (openai.OpenAIError, "bad_answer"),
    )

    def __init__(self, spec: ModelSpec, options: ModelOptions) -> None:
        self._spec = spec
        self._options = options

    def check(self) -> None:
        _address(self._spec)

    async def complete(self, request: ProviderRequest) -> ProviderResponse:
        async with call_client(self._options) as http:
            client = self._client(http)
            arguments = self._arguments(request)
            completion: object = await client.chat.completions.create(**arguments)
        with _reading():
            return _parse_response(completion)

    async def stream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        parts = ResponseParts()
        arguments = self._arguments(request)
        arguments["stream_options"] = {"include_usage": True}
        async with call_client(self._options) as http:
            client = self._client(http)
            chunks = await client.chat.completions.create(**arguments, stream=True)
            async with chunks:
                async for chunk in chunks:
                    with _reading():
                        text = parts.add(chunk)
                    if text:
                        yield text
        with _reading():
            response = parts.response()
        yield response

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        async with call_client(self._options) as http:
            client = self._client(http)
            vectors = await client.embeddings.create(
                model=self._spec.model, input=list(texts), encoding_format="float"
            )
        with _reading():
            return [item.embedding for item in sorted(vectors.data, key=lambda item: item.index)]

    def _client(self, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
        base_url, key = _address(self._spec)
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=base_url,
            http_client=http,
            max_retries=0,  # we retry ourselves, so that each attempt is in the ledger
            timeout=self._options.call_seconds,
        )

    def _arguments(self, request: ProviderRequest) -> JsonObject:
        arguments: JsonObject = {
            **request.prompt,
            "model": self._spec.model,
            "extra_body": request.settings,
        }
        is_own = self._spec.provider == "openai" and self._spec.base_url is None
        if is_own:
            arguments["prompt_cache_key"] = request.cache_key
        if request.max_output_tokens is not None:
            is_own = is_own or bool(_OPENAI_MODEL.match(self._spec.model))
            limit = "max_completion_tokens" if is_own else "max_tokens"
            arguments[limit] = request.max_output_tokens
        if request.tools:
            arguments["tools"] = [tool.to_openai() for tool in request.tools]
            if request.conclude:
                arguments["tool_choice"] = "none"
        return arguments


class ResponseParts:
    """Assembles the pieces of a streamed answer."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: list[_Call] = []
        self._places: dict[int | None, int] = {}
        self._more: JsonObject = {}
        self._ending: Ending = "unreadable"
        self._usage: CompletionUsage | None = None

    def add(self, chunk: ChatCompletionChunk) -> str:
        """Add a chunk and return its text."""
        self._usage = chunk.usage or self._usage
        if not isinstance(chunk.choices, list):
            return ""
        if self._ending == "unreadable":
            self._ending = "broken_off"
        text = "".join(self._add_choice(choice) for choice in chunk.choices)
        self._texts.append(text)
        return text

    def response(self) -> ProviderResponse:
        """The whole answer."""
        content = _content("".join(self._texts), self._calls, self._more)
        return ProviderResponse(content=content, ending=self._ending, tokens=tokens_of(self._usage))

    def _add_choice(self, choice: Choice) -> str:
        if choice.finish_reason is not None:
            ended = _ENDINGS.get(choice.finish_reason, "complete")
            self._ending = "refused" if self._ending == "refused" else ended
        if choice.delta is None:  # some servers send none at the end
            return ""
        if choice.delta.refusal:
            self._ending = "refused"
        for call in choice.delta.tool_calls or ():
            self._add_call(call)
        for name, value in present(choice.delta.model_extra or {}).items():  # null adds nothing
            before = self._more.get(name)
            joins = type(before) is type(value) and isinstance(value, str | list)
            self._more[name] = before + value if joins else value
        return choice.delta.content or ""

    def _add_call(self, piece: ChoiceDeltaToolCall) -> None:
        """Add a piece of a call; some servers give all calls the same index, or none."""
        place = self._places.get(piece.index)
        if place is None or (piece.id and self._calls[place].id not in ("", piece.id)):
            place = self._places[piece.index] = len(self._calls)
            self._calls.append(_Call())
        call = self._calls[place]
        call.id = piece.id or call.id
        if piece.function:
            call.name += piece.function.name or ""
            call.arguments += piece.function.arguments or ""
        call.more |= present(piece.model_extra or {})


@dataclass(slots=True, kw_only=True)
class _Call:
    """A tool call as read so far, with fields that the client does not know."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    more: JsonObject = field(default_factory=dict)


@contextmanager
def _reading() -> Iterator[None]:
    """Raise `OpenAIError` if an answer violates the protocol, as the client accepts any JSON."""
    try:
        yield
    except (AttributeError, InvalidMessage, LookupError, TypeError) as error:
        raise openai.OpenAIError("the answer violates the protocol") from error


def _address(spec: ModelSpec) -> tuple[str | None, str]:
    """Return the base URL (None: the client's default) and the key, which only OpenAI needs."""
    if spec.provider == "ollama":
        url = spec.base_url or os.environ.get("OLLAMA_BASE_URL") or OLLAMA_URL
        return url, own_key(spec) or os.environ.get("OLLAMA_API_KEY") or NO_KEY
    key = own_key(spec) or os.environ.get("OPENAI_API_KEY")
    if not key and not (spec.base_url or os.environ.get("OPENAI_BASE_URL")):
        raise ModelError("auth", f"{spec.name} needs a key: set OPENAI_API_KEY")
    return spec.base_url, key or NO_KEY


def _parse_response(completion: object) -> ProviderResponse:
    if isinstance(completion, ChatCompletion) and (
        error := (completion.model_extra or {}).get("error")
    ):
        raise ReportedError(error)
    if not isinstance(completion, ChatCompletion) or not completion.choices:
        raise openai.OpenAIError("the answer is not a completion")
    choice = completion.choices[0]
    message = choice.message
    calls = [
        _Call(
            id=call.id or "",
            name=call.function.name,
            arguments=call.function.arguments or "",
            more=call.model_extra or {},
        )
        for call in message.tool_calls or ()
        if call.type != "custom"
    ]
    return ProviderResponse(
        content=_content(message.content or "", calls, message.model_extra or {}),
        ending="refused" if message.refusal else _ENDINGS.get(choice.finish_reason, "complete"),
        tokens=tokens_of(completion.usage),
    )


def _content(text: str, calls: Sequence[_Call], more: JsonObject) -> tuple[Part, ...]:
    """Return the content of an answer; calls with a missing or duplicate id get a new one."""
    message: JsonObject = {**more, "role": "assistant", "content": text if text.strip() else None}
    given: list[JsonObject] = []
    for call in calls:
        is_taken = any(call.id == other["id"] for other in given)
        id_ = call.id if call.id and not is_taken else f"call_{uuid4().hex}"
        function = {"name": call.name, "arguments": call.arguments}
        given.append({**call.more, "id": id_, "type": "function", "function": function})
    return parse({**message, "tool_calls": given}).content


open_adapter: Final = OpenAI
open_embeddings: Final = OpenAI
