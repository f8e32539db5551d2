"""Opening language models by name, from a function, or as a fallback chain."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from remanence.arguments import require_async, require_async_methods, require_object
from remanence.clock import Clock, SystemClock
from remanence.errors import InvalidArgument, ModelError, needs_extra
from remanence.protocols import Embedder, Model
from remanence.providers.connections import Connections
from remanence.providers.fallback import FallbackModel
from remanence.providers.function import FunctionModel, ModelFunction
from remanence.providers.limit import LimitedModel, Limits
from remanence.providers.options import ModelOptions
from remanence.providers.retry import RetryingModel
from remanence.providers.spec import ModelSpec, first_provider, parse_spec, split_names

if TYPE_CHECKING:
    from remanence.providers.provider_model import ProviderModel

__all__ = ["ModelFunction", "ModelOptions", "ModelSource", "open_model"]

EMBEDDING_SECONDS = 60.0
"""The timeout of an embedding call."""

ModelSource: TypeAlias = str | Model | ModelFunction | Sequence["ModelSource"]


def open_model(
    source: ModelSource,
    *,
    options: ModelOptions | None = None,
    clock: Clock | None = None,
    wrap: Callable[[Model], Model] = lambda model: model,
) -> Model:
    """Open a model.

    *source* is one of the following, or a list of them, tried in order:

    * a name `provider:model`, such as `anthropic:claude-haiku-4-5`, or for an OpenAI-compatible
      server `openai:model@http://host/v1`; several names may be separated by commas;
    * an async function that takes a request and returns a text, or yields its pieces;
    * a `Model`, which is returned unchanged.

    Keys and base URLs come from the provider's own environment variables. *options* may name another
    variable of the key, and has timeout, attempts and limits, whose time is that of *clock*. *wrap*
    puts a layer around each model, inside retries.

    Raises:
        ModelError: `unknown_model` or `auth`; the text names the remedy.
        MissingExtra: a named model needs the extra `models`.
        InvalidArgument: *source* is none of these, or an empty list.
    """
    opener = _Opener(
        key_owner=first_provider(source),
        options=options or ModelOptions(),
        clock=clock or SystemClock(),
        wrap=wrap,
    )
    return opener.open(source)


def open_provider_model(spec: ModelSpec, *, clock: Clock, options: ModelOptions) -> "ProviderModel":
    """Open a model of a provider through its adapter; errors as for `open_model`."""
    with needs_extra("models"):
        from remanence.providers.provider_model import ProviderModel

        module = importlib.import_module(f"remanence.providers.{spec.row.adapter}")
    return ProviderModel(module.open_adapter(spec, options), spec, clock=clock, options=options)


def open_provider_embedder(
    name: str, *, clock: Clock, connections: Connections | None = None
) -> Embedder:
    """Open an embedding model by name; errors as for `open_model`."""
    spec = parse_spec(name)
    options = ModelOptions(timeout_seconds=EMBEDDING_SECONDS, connections=connections)
    with needs_extra("models"):
        from remanence.providers.provider_model import ProviderEmbedder

        module = importlib.import_module(f"remanence.providers.{spec.row.adapter}")
    if not hasattr(module, "open_embeddings"):
        raise ModelError(
            "unknown_model", f"{spec.provider} has no embeddings: use another provider"
        )
    embeddings = module.open_embeddings(spec, options)
    return ProviderEmbedder(embeddings, spec, clock=clock, options=options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opener:
    """Opens the models of a chain, of which those of one provider share its limits."""

    key_owner: str | None
    options: ModelOptions
    clock: Clock
    wrap: Callable[[Model], Model]
    limits: dict[str, Limits] = field(default_factory=dict)

    def open(self, source: ModelSource) -> Model:
        require_object(source)
        if isinstance(source, str):
            names = split_names(source)
            return self.open(names) if len(names) > 1 else self._open_named(parse_spec(source))
        if isinstance(source, Sequence):
            return FallbackModel(
                [self.open(link) for link in source],
                clock=self.clock,
                cooldown_seconds=self.options.cooldown_seconds,
            )
        if isinstance(source, Model):
            require_async_methods("model", source, "complete")
            return self.wrap(source)
        if callable(source):
            require_async(or_pieces=True, model=source)
            seconds = self.options.call_seconds
            function = FunctionModel(source, clock=self.clock, timeout_seconds=seconds)
            return self.wrap(function)
        raise InvalidArgument(
            f"a value of type {type(source).__name__} is not a model: pass a name, an async function "
            "or a Model"
        )

    def _open_named(self, spec: ModelSpec) -> Model:
        options = self.options
        if spec.provider == self.key_owner:  # no other provider may see the key
            spec = replace(spec, key_variable=options.key_variable)
        model = open_provider_model(spec, clock=self.clock, options=options)
        with needs_extra("models"):
            from remanence.providers.text_model import TextModel
        limits = Limits(
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
            parallel=options.parallel,
            clock=self.clock,
        )
        limits = self.limits.setdefault(spec.provider, limits)
        limited = LimitedModel(self.wrap(TextModel(model, stream=options.stream)), limits)
        return RetryingModel(limited, attempts=options.attempts)
