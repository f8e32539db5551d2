"""Models of the providers that pydantic-ai supports."""

import asyncio
import hashlib
import inspect
import json
import os
import re
from typing import cast

import httpx2
from pydantic import ValidationError
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import ModelRequest as WireRequest, ModelResponse
from pydantic_ai.models import Model as WireModel, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import LivePrompt, ModelAnswer, ModelRequest
from remanence.providers.answers import to_answer
from remanence.providers.clients import OLLAMA_URL, client_of_kind, http_client
from remanence.providers.continuation import ChangingClient, continue_live
from remanence.providers.pydantic_ai_errors import opening_failure, to_model_error
from remanence.providers.spec import ModelSpec, can_continue, own_key

_GROUP = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")
_FAILURES = (
    AgentRunError,
    AssertionError,  # pydantic-ai asserts that the events of a stream are in order
    httpx2.TransportError,
    json.JSONDecodeError,
    ValidationError,
)


class ProviderModel:
    """A provider's model, called without tools and without retries.

    Each call has its own connection: calls of a memory are minutes apart, longer than servers keep
    an idle one, and there is nothing to close.
    """

    def __init__(
        self, spec: ModelSpec, *, clock: Clock, timeout_seconds: float, stream: bool = False
    ) -> None:
        self._spec = spec
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._stream = stream
        self._check()

    @property
    def name(self) -> str:
        return self._spec.name

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if request.live is not None and not can_continue(self.name):
            raise ModelError(
                "bad_request",
                f"{self.name} cannot go on from a prompt: use observer_mode='separate'",
            )
        loop = asyncio.get_running_loop()
        started = loop.time()
        response = await self._call(request)
        return to_answer(
            response,
            request,
            name=self.name,
            streamed=self._stream,
            duration_seconds=loop.time() - started,
            at=self._clock.now(),
        )

    async def _call(self, request: ModelRequest) -> ModelResponse:
        try:
            client = self._client(request.live)
            async with asyncio.timeout(self._timeout_seconds), client:
                return await self._send(self._wire_model(client), request)
        except TimeoutError:
            message = f"{self.name} took longer than {self._timeout_seconds:g} s"
            failure = ModelError("timeout", message)
        except UserError as error:
            failure = opening_failure(error, self._spec)
        except _FAILURES as error:
            failure = to_model_error(error, self._spec)
        # Raised outside the handler, so that no traceback shows the provider's error: its text
        # may repeat the key and the conversation.
        raise failure

    async def _send(self, model: WireModel, request: ModelRequest) -> ModelResponse:
        messages = [_wire_request(request)]
        settings = _settings(model, request)
        if self._spec.provider == "openai" and self._spec.base_url is None:
            settings = _with_cache_key(settings, request)
        if not self._stream:
            return await model_request(model, messages, model_settings=settings)
        async with model_request_stream(model, messages, model_settings=settings) as stream:
            async for _ in stream:
                pass
        return stream.get()

    def _check(self) -> None:
        """Fail early if a key is missing or the provider is unknown."""
        try:
            self._wire_model(http_client(self._timeout_seconds))
        except (UserError, ValueError) as error:
            failure = opening_failure(error, self._spec)
        except ImportError as error:
            group = _GROUP.search(str(error))
            failure = ModelError(
                "missing_package",
                f"model {self._spec.name!r} needs the package of its provider: pip install "
                f"'pydantic-ai-slim[{group[1] if group else self._spec.provider}]'",
            )
        else:
            return
        raise failure

    def _client(self, live: LivePrompt | None) -> httpx2.AsyncClient:
        if live is None:
            return http_client(self._timeout_seconds)
        client = client_of_kind(ChangingClient, self._timeout_seconds)
        client.change = continue_live(self._spec.provider, live)
        return client

    def _wire_model(self, client: httpx2.AsyncClient) -> WireModel:
        # Every OpenAI-compatible server supports Chat Completions.
        provider = "openai-chat" if self._spec.provider == "openai" else self._spec.provider
        return infer_model(f"{provider}:{self._spec.model}", lambda name: self._reach(name, client))

    def _reach(self, provider: str, client: httpx2.AsyncClient) -> Provider[object]:
        arguments: dict[str, object] = {"http_client": client}
        if base_url := self._spec.base_url or _local_url(provider):
            arguments["base_url"] = base_url
        kind = infer_provider_class(provider)
        if key := own_key(self._spec):
            arguments["api_key"] = key
            if "api_key" not in inspect.signature(kind).parameters:
                raise ModelError(
                    "auth",
                    f"{self._spec.name} takes no key: leave {self._spec.key_variable} out of the "
                    "settings, and use the variables of its provider",
                )
        return kind(**arguments)


def _local_url(provider: str) -> str | None:
    """Return the default URL of a local server."""
    if provider == "ollama" and "OLLAMA_BASE_URL" not in os.environ:
        return OLLAMA_URL
    return None


def _with_cache_key(settings: ModelSettings, request: ModelRequest) -> ModelSettings:
    """Add a key that routes requests with the same prefix to the same cache; only for OpenAI."""
    digest = hashlib.sha256(request.stable.encode(errors="replace")).hexdigest()
    named = {**settings, "openai_prompt_cache_key": f"remanence-{digest[:16]}"}
    return cast("ModelSettings", named)  # the key belongs to a subclass, OpenAI's settings


def _wire_request(request: ModelRequest) -> WireRequest:
    if request.live is not None:
        return WireRequest.user_text_prompt(f"{request.stable}\n\n{request.prompt}")
    return WireRequest.user_text_prompt(request.prompt, instructions=request.stable or None)


def _settings(model: WireModel, request: ModelRequest) -> ModelSettings:
    """Settings for short, repeatable answers, cached instructions, and no retries but ours."""
    settings = ModelSettings(
        max_tokens=request.max_output_tokens,
        max_retries=0,
        thinking=False,
        cache={"messages": False},
    )
    # OpenAI's reasoning models reject a temperature; pydantic-ai handles others that do.
    if not model.profile.get("openai_supports_reasoning", False):
        settings["temperature"] = 0.0
    return settings
