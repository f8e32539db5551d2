"""Budgets for the memory's own model calls, checked before each step."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from remanence import telemetry
from remanence.clock import Clock
from remanence.costs.ledger import Ledger
from remanence.engine.backoff import maker_name
from remanence.engine.segment_writer import source_limit
from remanence.errors import ObservationSkipped
from remanence.protocols import (
    EventLog,
    ExtractRequest,
    FactExtractor,
    Observer,
    ObserveRequest,
    Reflector,
    ReflectRequest,
)
from remanence.recent import Recent
from remanence.types import Budget, BudgetState, ConversationRef, Draft, FactDraft
from remanence.types.usage import TURNS

Maker_co = TypeVar("Maker_co", bound=Observer | Reflector | FactExtractor, covariant=True)


class Budgets:
    """The budgets of a memory, measured by its ledger.

    A call counts when it ends, so that calls in progress may exceed a hard limit.
    """

    def __init__(
        self, budgets: Sequence[Budget], *, ledger: Ledger, events: EventLog, clock: Clock
    ) -> None:
        self._budgets = tuple(budgets)
        self._ledger = ledger
        self._events = events
        self._clock = clock
        self._warned: Recent[tuple[Budget, str, datetime | None, str], None] = Recent(10_000)

    def __bool__(self) -> bool:
        return bool(self._budgets)

    async def states(self, ref: ConversationRef, user: str | None) -> tuple[BudgetState, ...]:
        """Return the state of each budget that applies to a conversation."""
        now = self._clock.now()
        return tuple(
            [
                await self._state(budget, ref, user, now)
                for budget in self._budgets
                if user is not None or budget.scope != "user"
            ]
        )

    async def find_exhausted(self, ref: ConversationRef, user: str | None) -> BudgetState | None:
        """Return a budget at its hard limit, if any; reports each limit once."""
        states = await self.states(ref, user)
        for state in states:
            if state.level != "ok":
                await self._report(state, ref, user)
        return next((state for state in states if state.level == "hard"), None)

    async def blind(self) -> dict[Budget, list[str]]:
        """Return the budgets in dollars alone that miss calls of models without a price."""
        found = {}
        for budget in self._budgets:
            if budget.hard_usd is None or budget.hard_tokens is not None:
                continue
            totals = await self._ledger.usage(since=budget.since(self._clock.now()))
            models = {
                total.model
                for total in totals
                if total.purpose not in TURNS and total.unpriced_calls > total.failed_calls
            }
            if models:
                found[budget] = sorted(models)
        return found

    def renewal(self, budget: Budget) -> datetime | None:
        """Return the time at which a budget starts over; None if it never does."""
        since = budget.since(self._clock.now())
        return since + timedelta(days=1) if since else None

    async def _state(
        self, budget: Budget, ref: ConversationRef, user: str | None, now: datetime
    ) -> BudgetState:
        since = budget.since(now)
        match budget.scope:
            case "conversation":
                totals = await self._ledger.usage(conversation=ref, since=since)
            case "user":
                totals = await self._ledger.usage(tenant=ref.tenant, user=user, since=since)
            case "day":
                totals = await self._ledger.usage(since=since)
        counted = [total for total in totals if total.purpose not in TURNS]
        usd = sum(total.cost_usd or 0.0 for total in counted)
        tokens = sum(total.input_tokens + total.output_tokens for total in counted)
        level = budget.level(usd=usd, tokens=tokens)
        return BudgetState(budget=budget, spent_usd=usd, spent_tokens=tokens, level=level)

    async def _report(self, state: BudgetState, ref: ConversationRef, user: str | None) -> None:
        subject = {
            "conversation": f"conversation {ref.id!r} of tenant {ref.tenant!r}",
            "user": f"user {user!r} of tenant {ref.tenant!r}",
            "day": "all conversations",
        }[state.budget.scope]
        key = (state.budget, subject, state.budget.since(self._clock.now()), state.level)
        if key in self._warned:
            return
        self._warned[key] = None
        telemetry.budget_reached(state, subject)
        await self._events.record_budget(ref, state, at=self._clock.now())


class Budgeted(Generic[Maker_co]):
    """An observer, reflector or extractor within budgets.

    Uses *maker* while budget is left, then *instead*; without the latter, the step is skipped.
    """

    def __init__(self, maker: Maker_co, instead: Maker_co | None, budgets: Budgets) -> None:
        self._maker = maker
        self._instead = instead
        self._budgets = budgets

    @property
    def name(self) -> str:
        return maker_name(self._maker)

    @property
    def max_source_tokens(self) -> int | None:
        return source_limit(self._maker)

    async def observe(self: "Budgeted[Observer]", request: ObserveRequest) -> Draft:
        return await (await self._choose(request)).observe(request)

    async def reflect(self: "Budgeted[Reflector]", request: ReflectRequest) -> Draft:
        return await (await self._choose(request)).reflect(request)

    async def extract(
        self: "Budgeted[FactExtractor]", request: ExtractRequest
    ) -> tuple[FactDraft, ...]:
        return await (await self._choose(request)).extract(request)

    async def _choose(self, request: ObserveRequest | ReflectRequest | ExtractRequest) -> Maker_co:
        spent = await self._budgets.find_exhausted(request.conversation, request.user)
        if spent is None:
            return self._maker
        if self._instead is None:
            raise ObservationSkipped(
                "over_budget",
                f"the {spent.budget.scope} budget is spent: {spent.spent_usd:.4f} USD, "
                f"{spent.spent_tokens:,} tokens",
                until=self._budgets.renewal(spent.budget),
            )
        return self._instead
