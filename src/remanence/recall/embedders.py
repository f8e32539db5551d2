"""Embedders from a name or an async function."""

import importlib
import importlib.util
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeGuard

from remanence.arguments import require_async
from remanence.errors import MissingExtra, ModelError
from remanence.protocols import Embedder
from remanence.providers.spec import parse_spec

EmbedFunction: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
EmbedderSource: TypeAlias = "str | Embedder | EmbedFunction"


class FunctionEmbedder:
    """Calls a function from texts to vectors; its name identifies its vectors."""

    def __init__(self, function: EmbedFunction) -> None:
        self._function = function

    @property
    def name(self) -> str:
        function = self._function
        return f"function:{getattr(function, '__qualname__', type(function).__name__)}"

    @property
    def dimensions(self) -> int | None:
        return None

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self._function(texts)


def open_embedder(source: EmbedderSource) -> Embedder:
    """Make an embedder of `provider:model`, an async function, or an `Embedder`.

    Raises:
        MissingExtra: vectors need `remanence[vectors]`, a named embedder `remanence[models]` too.
        ModelError: `unknown_model` or `auth`; the message names the remedy.
    """
    if importlib.util.find_spec("numpy") is None:
        raise MissingExtra("vectors", "numpy")
    if isinstance(source, str):
        try:
            providers = importlib.import_module("remanence.recall.embedding_providers")
        except ModuleNotFoundError as error:
            raise MissingExtra("models", error.name or "pydantic-ai-slim") from error
        embedder: Embedder = providers.ProviderEmbedder(parse_spec(source))
        return embedder
    if _is_embedder(source):
        return source
    if _is_function(source):
        require_async(embedder=source)
        return FunctionEmbedder(source)
    raise ModelError(
        "unknown_model",
        f"a {type(source).__name__} is not an embedder: pass a name, an async function or an Embedder",
    )


def _is_embedder(source: object) -> TypeGuard[Embedder]:
    return hasattr(source, "embed")


def _is_function(source: object) -> TypeGuard[EmbedFunction]:
    return callable(source)
