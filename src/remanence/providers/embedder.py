"""A provider's embedding model behind its adapter."""

from collections.abc import Sequence

from remanence.providers.failures import TRANSPORT, to_model_error
from remanence.providers.options import ModelOptions
from remanence.providers.requests import EmbeddingAdapter
from remanence.providers.spec import ModelSpec


class ProviderEmbedder:
    """Makes vectors by a provider's model; its name identifies them."""

    def __init__(
        self, adapter: EmbeddingAdapter, spec: ModelSpec, *, options: ModelOptions
    ) -> None:
        self._adapter = adapter
        self._spec = spec
        self._timeout_seconds = options.call_seconds
        self._reasons = (*adapter.reasons, *TRANSPORT)
        adapter.check()

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def dimensions(self) -> int | None:
        return None

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            return await self._adapter.embed(texts)
        except tuple(kind for kind, _ in self._reasons) as error:
            seconds = self._timeout_seconds
            failure = to_model_error(error, self._spec, self._reasons, timeout_seconds=seconds)
        # Outside of the handler: the provider's own error may contain a key and must not be chained.
        raise failure
