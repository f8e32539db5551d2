"""Embedders from a name or a function."""

import importlib.util
from functools import partial
from typing import TypeAlias

from remanence.arguments import require_async_methods, require_object
from remanence.clock import Clock, SystemClock
from remanence.errors import InvalidArgument, MissingExtra
from remanence.protocols import Embedder
from remanence.providers import open_provider_embedder
from remanence.providers.connections import Connections
from remanence.providers.function import EmbedFunction, FunctionEmbedder

EmbedderSource: TypeAlias = str | Embedder | EmbedFunction


def open_embedder(
    source: EmbedderSource, *, clock: Clock | None = None, connections: Connections | None = None
) -> Embedder:
    """Open an embedder from a name `provider:model`, a function, or an `Embedder`.

    A sync function runs in a thread, as it may compute for long. A named embedder takes its HTTP
    client from *connections*, and heeds a pause that its provider asks for by *clock*.

    Raises:
        MissingExtra: vectors need the extra `vectors`, and a named embedder `models`.
        ModelError: `unknown_model` or `auth`; the message names the remedy.
        InvalidArgument: *source* is none of these, or a lambda or partial, whose vectors would be kept
            under the same name as those of any other.
    """
    if importlib.util.find_spec("numpy") is None:
        raise MissingExtra("vectors", "numpy")
    require_object(source)
    if isinstance(source, str):
        return open_provider_embedder(source, clock=clock or SystemClock(), connections=connections)
    if isinstance(source, Embedder):
        require_async_methods("embedder", source, "embed")
        return source
    if isinstance(source, partial) or getattr(source, "__name__", "") == "<lambda>":
        raise InvalidArgument(
            f"embedder={source!r:.80} is impossible, as vectors are kept under a function's name: "
            "write a def of its own for each model, or an object with name, dimensions and embed"
        )
    if callable(source):
        return FunctionEmbedder(source)
    raise InvalidArgument(
        f"a value of type {type(source).__name__} is not an embedder: pass a name, a function or an "
        "Embedder"
    )
