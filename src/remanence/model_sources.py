"""Observers, reflectors and fact extractors from their sources, metered and within budget."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from remanence.clock import Clock
from remanence.costs.budgets import BudgetedExtractor, BudgetedObserver, BudgetedReflector, Budgets
from remanence.errors import InvalidPolicy
from remanence.facts import ExtractiveFacts, ModelFacts
from remanence.observers.extractive import ExtractiveObserver, ExtractiveReflector
from remanence.observers.llm import ModelObserver, ModelReflector
from remanence.policy.policy import Policy
from remanence.protocols import CountTokens, FactExtractor, Model, ModelRequest, Observer, Reflector
from remanence.providers import (
    MeteredModel,
    ModelOptions,
    ModelSource,
    open_model,
)
from remanence.providers.spec import can_continue
from remanence.types import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverFactory:
    """Makes an observer, a reflector and an extractor.

    A `key_variable` names the environment variable with the key of a role's model.

    Their models report the usage of each call to `record`, and of each answer also to `compare`,
    with the estimate of `count`; neither blocks nor raises.
    """

    policy: Policy
    clock: Clock
    record: Callable[[Usage], None]
    compare: Callable[[Usage, int], None]
    count: CountTokens
    options: ModelOptions
    budgets: Budgets
    over_budget: Literal["extractive", "raw"]

    async def observer(
        self, source: "Observer | ModelSource | None", *, key_variable: str | None = None
    ) -> Observer:
        """Return the observer for *source*; the embedded one for None.

        Raises:
            InvalidPolicy: it cannot observe in the policy's `observer_mode`.
            ModelError: its model cannot be opened.
        """
        observer = await self._observer(source, key_variable)
        self._check_mode(observer)
        if not self.budgets or isinstance(observer, ExtractiveObserver):
            return observer
        instead = ExtractiveObserver() if self.over_budget == "extractive" else None
        return BudgetedObserver(observer, instead=instead, budgets=self.budgets)

    async def reflector(
        self, source: "Reflector | ModelSource | None", *, key_variable: str | None = None
    ) -> Reflector:
        """Return the reflector for *source*; the embedded one for None. Errors as above."""
        reflector = await self._reflector(source, key_variable)
        if not self.budgets or isinstance(reflector, ExtractiveReflector):
            return reflector
        instead = ExtractiveReflector() if self.over_budget == "extractive" else None
        return BudgetedReflector(reflector, instead=instead, budgets=self.budgets)

    async def extractor(
        self, source: "FactExtractor | ModelSource | None", *, key_variable: str | None = None
    ) -> FactExtractor:
        """Return the extractor for *source*; the embedded one for None."""
        if source is None:
            return ExtractiveFacts()
        if isinstance(source, FactExtractor):
            return source
        model = await self._open(source, key_variable)
        facts = ModelFacts(
            model,
            language=self.policy.note_language,
            max_output_tokens=self.policy.max_output_tokens,
        )
        # Without budget facts wait: those of another extractor would bear this one's name.
        return (
            BudgetedExtractor(facts, instead=None, budgets=self.budgets) if self.budgets else facts
        )

    async def _observer(
        self, source: "Observer | ModelSource | None", key_variable: str | None
    ) -> Observer:
        if source is None:
            return ExtractiveObserver()
        if isinstance(source, ModelObserver):
            return source.asking(self._meter(source.model))
        if isinstance(source, Observer):
            return source
        model = await self._open(source, key_variable)
        return ModelObserver(
            model,
            language=self.policy.note_language,
            max_output_tokens=self.policy.max_output_tokens,
        )

    async def _reflector(
        self, source: "Reflector | ModelSource | None", key_variable: str | None
    ) -> Reflector:
        if source is None:
            return ExtractiveReflector()
        if isinstance(source, ModelReflector):
            return source.asking(self._meter(source.model))
        if isinstance(source, Reflector):
            return source
        model = await self._open(source, key_variable)
        return ModelReflector(
            model,
            language=self.policy.note_language,
            max_output_tokens=self.policy.max_output_tokens,
        )

    async def _open(self, source: ModelSource, key_variable: str | None) -> Model:
        options = self.options
        if key_variable is not None:
            options = replace(options, key_variable=key_variable)
        if options.timeout_seconds is None:
            options = replace(options, timeout_seconds=self.policy.observe_timeout_seconds)
        # Importing a provider's package takes seconds and would block the loop.
        return await asyncio.to_thread(
            open_model, source, options=options, clock=self.clock, record=self._record
        )

    def _meter(self, model: Model) -> Model:
        return MeteredModel(model, record=self._record, clock=self.clock)

    async def _record(self, request: ModelRequest, usage: Usage) -> None:
        self.record(usage)
        answered = usage.outcome in ("ok", "cut_off")
        if answered and request.live is None and not usage.estimated:
            # A request of an observer is long: counting it must not block the event loop.
            self.compare(usage, await asyncio.to_thread(self._estimate, request))

    def _estimate(self, request: ModelRequest) -> int:
        return self.count(request.stable) + self.count(request.prompt)

    def _check_mode(self, observer: Observer) -> None:
        if self.policy.observer_mode == "separate":
            return
        if not isinstance(observer, ModelObserver) or not can_continue(observer.model.name):
            raise InvalidPolicy(
                "observer_mode='continuation' needs an observer with an anthropic: or openai: "
                "model: name one, or use 'separate'"
            )
