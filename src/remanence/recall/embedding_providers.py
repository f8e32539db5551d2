"""Embedders of the providers that pydantic-ai reaches."""

from collections.abc import Sequence

import httpx2
from pydantic_ai.embeddings import EmbeddingModel, infer_embedding_model
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.providers import Provider, infer_provider_class

from remanence.errors import ModelError
from remanence.providers.pydantic_ai_errors import opening_failure, to_model_error
from remanence.providers.spec import ModelSpec

_TIMEOUT_SECONDS = 60.0
_OWN_CLIENT = frozenset({"openai", "google", "ollama"})
"""Providers whose connection is opened and closed with each call."""


class ProviderEmbedder:
    """A provider's embedding model; a connection lives as long as its call."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._check()

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def dimensions(self) -> int | None:
        return None

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            async with self._client() as client:
                result = await self._model(client).embed(list(texts), input_type="document")
        except UserError as error:
            failure = opening_failure(error, self._spec)
        except (AgentRunError, httpx2.TransportError) as error:
            failure = to_model_error(error, self._spec)
        else:
            return result.embeddings
        # Outside of the handler: the provider's own error may contain a key and must not be chained.
        raise failure

    def _check(self) -> None:
        """Raise now if a call would fail because the key or the provider is missing."""
        failure: ModelError
        try:
            self._model(self._client())
        except (UserError, ValueError) as error:
            failure = opening_failure(error, self._spec)
        else:
            return
        raise failure

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS)

    def _model(self, client: httpx2.AsyncClient) -> EmbeddingModel:
        spec = self._spec
        return infer_embedding_model(
            f"{spec.provider}:{spec.model}",
            provider_factory=lambda name: self._provider(name, client),
        )

    def _provider(self, name: str, client: httpx2.AsyncClient) -> Provider[object]:
        arguments: dict[str, object] = {"http_client": client} if name in _OWN_CLIENT else {}
        if self._spec.base_url:
            arguments["base_url"] = self._spec.base_url
        return infer_provider_class(name)(**arguments)
