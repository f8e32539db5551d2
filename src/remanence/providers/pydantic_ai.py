"""Models of all other providers, through pydantic-ai: text only, without tools."""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from difflib import get_close_matches
from typing import Final

import httpx2
from pydantic_ai import exceptions as wire
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.embeddings import EmbeddingModel, infer_embedding_model
from pydantic_ai.messages import ModelRequest as WireRequest, ModelResponse, TextPart as WireText
from pydantic_ai.models import Model as WireModel, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from remanence.errors import ModelError
from remanence.providers.clients import BoundedClient, call_client
from remanence.providers.failures import without_secrets
from remanence.providers.options import ModelOptions
from remanence.providers.requests import Ending, Form, ProviderRequest, ProviderResponse, Tokens
from remanence.providers.spec import ModelSpec, own_key
from remanence.types import TextPart

_COMMON: Final = ("anthropic", "google", "ollama", "openai")
_GROUP: Final = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")
_KEY_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")

_ENDINGS: Final[dict[str | None, Ending]] = {
    None: "complete",
    "stop": "complete",
    "content_filter": "refused",
    "error": "unreadable",
}


class _Access(ABC):
    """Access to a provider through pydantic-ai, with a new client for each call."""

    reasons: Final[tuple[tuple[type[Exception], str | None], ...]] = (
        (wire.ModelAuthenticationError, "auth"),
        (wire.ModelNotFoundError, "unknown_model"),
        (wire.ModelContextWindowExceededError, "too_long"),
        (wire.ModelQuotaExceededError, "quota"),
        (wire.ModelRateLimitError, "rate_limit"),
        (wire.ModelOverloadedError, "overloaded"),
        (wire.ModelHTTPError, None),
        (wire.ModelTimeoutError, "timeout"),
        (wire.ModelConnectionError, "connection"),
        (wire.ContentFilterError, "refused"),
        (wire.AgentRunError, "bad_answer"),
        (AssertionError, "bad_answer"),  # it asserts that the events of a stream are in order
        (AttributeError, "bad_answer"),  # it expects each of them to be an object
    )

    def __init__(self, spec: ModelSpec, options: ModelOptions) -> None:
        self._spec = spec
        self._options = options

    def check(self) -> None:
        spec = self._spec
        try:
            self._model(BoundedClient(self._options.call_seconds))
        except (wire.UserError, ValueError) as error:
            if variable := _KEY_VARIABLE.search(str(error)):
                failure = ModelError("auth", f"{spec.name} needs a key: set {variable[0]}")
            else:
                text = without_secrets(str(error), spec)
                similar = get_close_matches(spec.provider, _COMMON, n=1)
                if similar and text.startswith("Unknown provider"):
                    text += f": did you mean {similar[0]}:{spec.model}?"
                failure = ModelError("unknown_model", f"{spec.name}: {text}")
        except ImportError as error:
            group = _GROUP.search(str(error))
            failure = ModelError(
                "missing_package",
                f"model {spec.name!r} needs the package of its provider: pip install "
                f"'pydantic-ai-slim[{group[1] if group else spec.provider}]'",
            )
        else:
            return
        raise failure

    @abstractmethod
    def _model(self, client: httpx2.AsyncClient) -> object: ...

    def _provider(self, name: str, client: httpx2.AsyncClient) -> Provider[object]:
        """Return pydantic-ai's access to a provider, with our client, address and key."""
        spec, kind = self._spec, infer_provider_class(name)
        parameters = inspect.signature(kind).parameters
        arguments: dict[str, object] = (
            {"http_client": client} if "http_client" in parameters else {}
        )
        if spec.base_url:
            arguments["base_url"] = spec.base_url
        if key := own_key(spec):
            arguments["api_key"] = key
            if "api_key" not in parameters:
                raise ModelError(
                    "auth",
                    f"{spec.name} accepts no key from {spec.key_variable}: leave it out of the "
                    "settings, and set the provider's own variables",
                )
        return kind(**arguments)


class PydanticAI(_Access):
    """Calls a model with settings for short, repeatable answers, without pydantic-ai's retries."""

    form: Final[Form] = "text"

    async def complete(self, request: ProviderRequest) -> ProviderResponse:
        async with call_client(self._options) as client:
            model = self._model(client)
            response = await model_request(
                model, [_messages(request)], model_settings=_settings(model, request)
            )
        return parse_response(response)

    async def stream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        async with call_client(self._options) as client:
            model = self._model(client)
            async with model_request_stream(
                model, [_messages(request)], model_settings=_settings(model, request)
            ) as stream:
                async for _ in stream:
                    pass  # only the whole answer is asked for
        yield parse_response(stream.get(), streamed=True)

    def _model(self, client: httpx2.AsyncClient) -> WireModel:
        return infer_model(self._spec.name, lambda name: self._provider(name, client))


class PydanticAIEmbeddings(_Access):
    """Makes vectors of texts."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        async with call_client(self._options) as client:
            result = await self._model(client).embed(list(texts), input_type="document")
        return result.embeddings

    def _model(self, client: httpx2.AsyncClient) -> EmbeddingModel:
        return infer_embedding_model(
            self._spec.name, provider_factory=lambda name: self._provider(name, client)
        )


def parse_response(response: ModelResponse, *, streamed: bool = False) -> ProviderResponse:
    """Read the text blocks of a response; a stream without a finish reason is broken off."""
    ending = _ENDINGS.get(response.finish_reason, "cut_off")
    if streamed and "finish_reason" not in (response.provider_details or {}):
        ending = "broken_off"
    elif ending == "complete" and response.state != "complete":
        ending = "cut_off"
    usage = response.usage
    return ProviderResponse(
        content=tuple(
            TextPart(text=part.content)
            for part in response.parts
            if isinstance(part, WireText) and part.content
        ),
        ending=ending,
        tokens=Tokens(
            input_tokens=usage.input_tokens,  # with cache reads and writes
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cost_usd=None if usage.cost is None else float(usage.cost),
        ),
    )


def _messages(request: ProviderRequest) -> WireRequest:
    system = request.prompt["system"]
    return WireRequest.user_text_prompt(request.prompt["prompt"], instructions=system or None)


def _settings(model: WireModel, request: ProviderRequest) -> ModelSettings:
    settings = ModelSettings(max_retries=0, thinking=False, cache={"messages": False})
    if request.max_output_tokens is not None:
        settings["max_tokens"] = request.max_output_tokens
    # OpenAI's reasoning models reject a temperature; pydantic-ai handles others that do.
    if not model.profile.get("openai_supports_reasoning", False):
        settings["temperature"] = 0.0
    return settings


open_adapter: Final = PydanticAI
open_embeddings: Final = PydanticAIEmbeddings
