"""Embedders from a name or an async function."""

import importlib.util
from typing import TypeAlias

from remanence.arguments import require_async
from remanence.errors import MissingExtra, ModelError
from remanence.protocols import Embedder
from remanence.providers import open_provider_embedder
from remanence.providers.connections import Connections
from remanence.providers.function import EmbedFunction, FunctionEmbedder

EmbedderSource: TypeAlias = "str | Embedder | EmbedFunction"


def open_embedder(source: EmbedderSource, *, connections: Connections | None = None) -> Embedder:
    """Make an embedder of `provider:model`, an async function, or an `Embedder`.

    A named one keeps its HTTP client among *connections*.

    Raises:
        MissingExtra: vectors need `remanence[vectors]`, a named embedder `remanence[models]` too.
        ModelError: `unknown_model` or `auth`; the message names the remedy.
    """
    if importlib.util.find_spec("numpy") is None:
        raise MissingExtra("vectors", "numpy")
    if isinstance(source, str):
        return open_provider_embedder(source, connections=connections)
    if isinstance(source, Embedder):
        return source
    if callable(source):
        require_async(embedder=source)
        return FunctionEmbedder(source)
    raise ModelError(
        "unknown_model",
        f"a {type(source).__name__} is not an embedder: pass a name, an async function or an Embedder",
    )
