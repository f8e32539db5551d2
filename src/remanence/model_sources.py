"""Observers, reflectors and extractors made from the arguments of `Memory.open`."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from remanence.arguments import require_async_methods, require_object
from remanence.clock import Clock
from remanence.costs.budgets import Budgeted, Budgets
from remanence.errors import InvalidArgument, InvalidPolicy
from remanence.facts import ExtractiveFacts, ModelFacts
from remanence.observers.extractive import ExtractiveObserver, ExtractiveReflector
from remanence.observers.llm import ModelObserver, ModelReflector
from remanence.observers.llm.writer import ModelCaller
from remanence.pacing import compute_in_slices
from remanence.policy.policy import Policy
from remanence.protocols import (
    Compute,
    CountTokens,
    FactExtractor,
    Model,
    ModelRequest,
    Observer,
    Reflector,
)
from remanence.providers import ModelOptions, ModelSource, open_model
from remanence.providers.meter import MeteredModel
from remanence.providers.output_room import OutputRoomModel
from remanence.providers.shared_limit import SharedLimit, SharedLimitModel
from remanence.providers.spec import can_continue
from remanence.settings import Settings
from remanence.types import Usage
from remanence.types.usage import ANSWERED

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverFactory:
    """Makes the observer, reflector and extractor of a memory, with metering, limits and budgets.

    Each is made from its own source, or else from `model`, or else is the embedded one, which runs
    in `compute`; models are opened only if they are used. The usage of each call goes to `record`,
    and that of each answer also to `compare`, with the estimate of `count`; neither blocks nor
    raises.
    """

    policy: Policy
    settings: Settings
    clock: Clock
    record: Callable[[Usage], None]
    compare: Callable[[Usage, int], None]
    count: CountTokens
    options: ModelOptions
    budgets: Budgets
    limit: SharedLimit
    model: ModelSource | None = None
    compute: Compute = compute_in_slices

    def observer(self, source: Observer | ModelSource | None) -> Observer:
        """Return the observer for *source*.

        Raises:
            InvalidPolicy: the observer does not support the policy's `observer_mode`.
            ModelError: the model cannot be opened.
        """
        own: Observer | ModelSource | None = source
        if own is None:
            own = self.settings.observer_model or None
        chosen: Observer | ModelSource | None = self.model if own is None else own
        require_object(chosen)
        if chosen is None or not self.policy.enabled:
            observer: Observer = ExtractiveObserver(self.compute)
        elif isinstance(chosen, Observer):
            require_async_methods("observer", chosen, "observe")
            observer = self._meter(chosen)
        else:
            _require_model(source, "an Observer", "observe")
            key = self.settings.observer_key_variable or self._shared_key(own)
            observer = self._ask(ModelObserver, chosen, key)
        continues = self.policy.enabled and self.policy.observer_mode == "continuation"
        if continues and not (
            isinstance(observer, ModelObserver) and can_continue(observer.model.name)
        ):
            raise InvalidPolicy(
                "observer_mode='continuation' needs an observer with an anthropic: or openai: "
                "model: name one, or use 'separate'"
            )
        if not self.budgets or isinstance(observer, ExtractiveObserver):
            return observer
        return Budgeted(observer, self._stand_in(ExtractiveObserver), self.budgets)

    def reflector(self, source: Reflector | ModelSource | None) -> Reflector:
        """Return the reflector for *source*; errors as for `observer`."""
        own: Reflector | ModelSource | None = source
        if own is None:
            own = self.settings.reflector_model or None
        chosen: Reflector | ModelSource | None = self.model if own is None else own
        require_object(chosen)
        if chosen is None or not self._reflects:
            return ExtractiveReflector(self.compute)
        if isinstance(chosen, Reflector):
            require_async_methods("reflector", chosen, "reflect")
            reflector = self._meter(chosen)
        else:
            _require_model(source, "a Reflector", "reflect")
            key = self.settings.reflector_key_variable or self._shared_key(own)
            reflector = self._ask(ModelReflector, chosen, key)
        if not self.budgets or isinstance(reflector, ExtractiveReflector):
            return reflector
        return Budgeted(reflector, self._stand_in(ExtractiveReflector), self.budgets)

    def extractor(self, source: FactExtractor | ModelSource | None) -> FactExtractor:
        """Return the extractor for *source*; errors as for `observer`."""
        chosen: FactExtractor | ModelSource | None = self.model if source is None else source
        require_object(chosen)
        if chosen is None or not self._reflects:
            return ExtractiveFacts(self.compute)
        if isinstance(chosen, FactExtractor):
            require_async_methods("extractor", chosen, "extract")
            extractor = self._meter(chosen)
        else:
            _require_model(source, "a FactExtractor", "extract")
            extractor = self._ask(ModelFacts, chosen, self._shared_key(source))
        if not self.budgets or isinstance(extractor, ExtractiveFacts):
            return extractor
        # Over budget, facts wait: an embedded stand-in would store facts under this extractor's name.
        return Budgeted(extractor, None, self.budgets)

    @property
    def _reflects(self) -> bool:
        """Return whether notes are reflected; daily notes are, even under a disabled policy."""
        return self.policy.enabled or self.settings.daily_directory is not None

    def _shared_key(self, own: object) -> str | None:
        return self.settings.model_key_variable if own is None else None

    def _meter(self, writer: T) -> T:
        """Return the caller's observer, reflector or extractor, with its model, if any, metered."""
        if not isinstance(writer, ModelCaller):
            return writer
        limit = writer.max_output_tokens
        return writer.asking(self._wrap(writer.model, max_output_tokens=limit))

    def _stand_in(self, embedded: Callable[[Compute], T]) -> T | None:
        return embedded(self.compute) if self.settings.over_budget == "extractive" else None

    def _ask(self, role: Callable[..., T], source: ModelSource, key_variable: str | None) -> T:
        """Return a *role* that asks the model of *source*."""
        options = self.options
        if key_variable is not None:
            options = replace(options, key_variable=key_variable)
        if options.timeout_seconds is None:
            options = replace(options, timeout_seconds=self.policy.observe_timeout_seconds)
        limit = self.policy.max_output_tokens
        wrap = partial(self._wrap, max_output_tokens=limit)
        model = open_model(source, options=options, clock=self.clock, wrap=wrap)
        return role(model, language=self.policy.note_language, max_output_tokens=limit)

    def _wrap(self, model: Model, *, max_output_tokens: int) -> Model:
        metered = MeteredModel(model, record=self._record, clock=self.clock)
        limited = SharedLimitModel(metered, self.limit)
        return OutputRoomModel(limited, max_output_tokens=max_output_tokens)

    async def _record(self, request: ModelRequest, usage: Usage) -> None:
        self.record(usage)
        answered = usage.outcome in ANSWERED
        if answered and request.live is None and not usage.estimated:
            # An observer's request is long, and counting it would block the event loop.
            texts = (request.stable, request.prompt)
            tokens = await asyncio.to_thread(lambda: sum(map(self.count, texts)))
            self.compare(usage, tokens)


def _require_model(source: object, protocol: str, method: str) -> None:
    """Raise `InvalidArgument` for a value that is no source of a model, and not a *protocol* either."""
    if source is not None and not (isinstance(source, str | Sequence | Model) or callable(source)):
        raise InvalidArgument(
            f"a value of type {type(source).__name__} is neither a model nor {protocol}: pass a name, "
            f"an async function, a Model, or an object with `async def {method}(request)`"
        )
