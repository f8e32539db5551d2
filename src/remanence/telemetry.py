"""Every span, counter and log name of remanence, in the terms of OpenTelemetry."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from opentelemetry import metrics, trace

from remanence.types import BudgetState, MemoryState, Usage

ContextListener: TypeAlias = Callable[[MemoryState, object], None]

_context_listeners: list[ContextListener] = []

logger = logging.getLogger("remanence")

_tracer = trace.get_tracer("remanence")
_meter = metrics.get_meter("remanence")

_appended = _meter.create_counter("remanence.messages.appended", unit="{message}")
_committed = _meter.create_counter("remanence.segments.committed", unit="{segment}")
_remembered = _meter.create_counter("remanence.facts.committed", unit="{fact}")
_failed = _meter.create_counter("remanence.steps.failed", unit="{step}")
_discarded = _meter.create_counter("remanence.steps.discarded", unit="{step}")
_activated = _meter.create_counter("remanence.activations", unit="{activation}")
_context_tokens = _meter.create_histogram("remanence.context.tokens", unit="{token}")
_model_calls = _meter.create_counter("remanence.model.calls", unit="{call}")
_model_tokens = _meter.create_counter("remanence.model.tokens", unit="{token}")
_model_cost = _meter.create_counter("remanence.model.cost", unit="USD")
_ledger_lost = _meter.create_counter("remanence.ledger.lost", unit="{call}")
_budget_reached = _meter.create_counter("remanence.budgets.reached", unit="{budget}")
_skipped = _meter.create_counter("remanence.steps.skipped", unit="{step}")
_omitted = _meter.create_counter("remanence.context.omitted", unit="{message}")
_chat_tokens = _meter.create_counter("remanence.chat.tokens", unit="{token}")
_chat_failures = _meter.create_counter("remanence.chat.failed", unit="{call}")
_tool_failures = _meter.create_counter("remanence.chat.tools.failed", unit="{call}")
_prefix_changes = _meter.create_counter("remanence.prefix.changes", unit="{change}")

_request: ContextVar[str] = ContextVar("remanence_request", default="-")


@contextmanager
def request(name: str) -> Iterator[None]:
    """Add the id of a request to the log records of the block (`RequestNames`)."""
    token = _request.set(name)
    try:
        yield
    finally:
        _request.reset(token)


class RequestNames(logging.Filter):
    """Adds the id of the request to each log record, as `request`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request = _request.get()
        return True


def request_ended(method: str, path: str, status: int, seconds: float) -> None:
    """Log a request with its status; 0 means that it was left unanswered."""
    level = logging.ERROR if status >= 500 else logging.INFO
    answer = str(status) if status else "left by the client"
    logger.log(level, "%s %s: %s in %.0f ms", method, ascii(path)[1:-1], answer, seconds * 1_000)


@contextmanager
def step_span(step: str, conversation_id: str) -> Iterator[None]:
    """Span one background step; an exception is recorded on it."""
    with _tracer.start_as_current_span(f"remanence.{step}") as span:
        span.set_attribute("gen_ai.conversation.id", conversation_id)
        yield


def messages_appended(count: int) -> None:
    """Count messages that are durable."""
    _appended.add(count)


def segment_committed(generation: int, conversation_id: str, first_seq: int, last_seq: int) -> None:
    """Count a committed observation or reflection."""
    _committed.add(1, {"generation": generation})
    text = "committed generation %d of %r: messages %d..%d"
    logger.debug(text, generation, conversation_id, first_seq, last_seq)


def slice_cut(conversation_id: str, first_seq: int, last_seq: int) -> None:
    """Log that messages are observed in several steps where the policy asks for one."""
    text = (
        "conversation %r has more to observe than one observation can read: messages %d..%d are "
        "observed now, the next ones in another step"
    )
    logger.info(text, conversation_id, first_seq, last_seq)


def facts_committed(conversation_id: str, facts: int, replaced: int) -> None:
    """Count facts that were extracted from a conversation."""
    _remembered.add(facts)
    logger.debug("%r gave %d facts, which replaced %d", conversation_id, facts, replaced)


def step_failed(step: str, conversation_id: str, reason: str, message: str, failures: int) -> None:
    """Count and log a failed step."""
    _failed.add(1, {"step": step, "reason": reason})
    text = "%s of conversation %r failed (%s, %d in a row): %s; messages stay raw"
    logger.warning(text, step, conversation_id, reason, failures, message)


def embedding_failed(reason: str, message: str, failures: int) -> None:
    """Count and log a failed call of the embedder."""
    _failed.add(1, {"step": "embed", "reason": reason})
    text = "the embedder failed (%s, %d in a row): %s; words alone are searched"
    logger.warning(text, reason, failures, message)


def text_not_embedded(embedder: str, reason: str, message: str) -> None:
    """Count and log a text that the embedder refuses."""
    _failed.add(1, {"step": "embed", "reason": reason})
    text = "%s refuses a text (%s: %s); words alone find it"
    logger.warning(text, embedder, reason, message[:200])


def background_failed(
    name: str, reason: str, message: str, failures: int, *, retry_seconds: float
) -> None:
    """Count and log a failure of work that belongs to no conversation."""
    _failed.add(1, {"step": name, "reason": reason})
    text = "background work %r failed (%s, %d in a row): %s; it is tried again in %g s"
    logger.warning(text, name, reason, failures, message, retry_seconds)


def step_discarded(step: str, conversation_id: str) -> None:
    """Count a result that lost a race."""
    _discarded.add(1, {"step": step})
    logger.info("%s of conversation %r lost a race and was discarded", step, conversation_id)


def lease_not_prolonged(conversation_id: str, message: str) -> None:
    """Log that another process may take over while this one still works."""
    logger.warning("the lease of conversation %r was not prolonged: %s", conversation_id, message)


def turn_not_ended(conversation_id: str, message: str) -> None:
    """Log that other processes have to wait until the lease of a turn runs out."""
    logger.warning("the turn of conversation %r was not given up: %s", conversation_id, message)


def model_called(usage: Usage) -> None:
    """Count a model call with its tokens and price."""
    about = {"gen_ai.request.model": usage.model, "remanence.purpose": usage.purpose}
    _model_calls.add(1, {**about, "remanence.outcome": usage.outcome})
    kinds = _tokens(usage, cache_write="cache_write")
    for kind, tokens in kinds.items():
        _model_tokens.add(tokens, {**about, "gen_ai.token.type": kind})
    _model_cost.add(usage.cost_usd or 0.0, about)
    text = (
        "model call %s of %s: conversation %r, input %d, output %d, cache write %d, cache read %d "
        "tokens, outcome %s"
    )
    conversation_id = usage.conversation.id if usage.conversation else None
    counts = (*kinds.values(), usage.outcome)
    logger.info(text, usage.purpose, usage.model, conversation_id, *counts)


def usage_lost(calls: int, message: str) -> None:
    """Count and log model calls that the ledger could not take."""
    _ledger_lost.add(calls)
    logger.warning("%d model calls are missing in the ledger: %s", calls, message)


def budget_reached(state: BudgetState, subject: str) -> None:
    """Count and log that the budget of *subject* is at its soft or hard limit."""
    scope, level = state.budget.scope, state.level
    _budget_reached.add(1, {"scope": scope, "level": level})
    spent = f"{state.spent_usd:.4f} USD, {state.spent_tokens} tokens"
    logger.warning("the %s budget of %s is at its %s limit: %s", scope, subject, level, spent)


def step_skipped(step: str, conversation_id: str, reason: str, message: str) -> None:
    """Count and log a step that was left out on purpose."""
    _skipped.add(1, {"step": step, "reason": reason})
    text = "%s of conversation %r was skipped (%s): %s; messages stay raw"
    logger.info(text, step, conversation_id, reason, message)


def daily_notes_failed(user: str, message: str) -> None:
    """Count and log a consolidation that will be tried again."""
    _failed.add(1, {"step": "daily", "reason": "error"})
    logger.warning("the daily notes of %r were not consolidated: %s", user, message)


def memory_file_edited(path: str) -> None:
    """Log that a signed memory file was changed by hand; the change is kept."""
    logger.warning("%s was edited since its last summary; the edit is kept", path)


def count_activation(conversation_id: str, active_seq: int) -> None:
    """Count an activation."""
    _activated.add(1)
    logger.debug("activated %r up to message %d", conversation_id, active_seq)


def context_built(state: MemoryState, context: object, *, tokens: int, omitted: int) -> None:
    """Record the size of a context, and hand it to the listeners."""
    _context_tokens.record(tokens)
    if omitted:
        _omitted.add(omitted)
    for listener in _context_listeners:
        listener(state, context)


@contextmanager
def context_listener(listener: ContextListener) -> Iterator[None]:
    """Pass each new context of this process to *listener*."""
    _context_listeners.append(listener)
    try:
        yield
    finally:
        _context_listeners.remove(listener)


def chat_called(
    conversation_id: str, usage: Usage, *, estimated_tokens: int, prefix_changed: bool
) -> None:
    """Count and log the tokens of a chat's model call, and a change of its cached prefix."""
    kinds = _tokens(usage, cache_write="cache_creation")
    for kind, tokens in kinds.items():
        _chat_tokens.add(tokens, {"kind": kind, "model": usage.model})
    if prefix_changed:
        _prefix_changes.add(1)
    text = (
        "chat call of conversation %r: model=%s input=%d output=%d cache_creation=%d cache_read=%d "
        "hit_ratio=%.2f estimated=%d prefix=%s outcome=%s"
    )
    hit_ratio = usage.cache_read_tokens / max(1, usage.input_tokens)
    prefix = "changed" if prefix_changed else "kept"
    rest = (hit_ratio, estimated_tokens, prefix, usage.outcome)
    logger.info(text, conversation_id, usage.model, *kinds.values(), *rest)


def chat_failed(conversation_id: str, model: str, reason: str) -> None:
    """Count and log a chat's model call that gave no answer."""
    _chat_failures.add(1, {"model": model, "reason": reason})
    logger.warning("chat call of conversation %r to %s failed: %s", conversation_id, model, reason)


def tool_failed(name: str, error_type: str) -> None:
    """Count and log a tool whose handler raised; its text may be private and is left out."""
    _tool_failures.add(1, {"tool": name})
    logger.warning("tool %r failed with %s; the model was told", name, error_type)


def _tokens(usage: Usage, *, cache_write: str) -> dict[str, int]:
    """Return the tokens of a call by their kind."""
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        cache_write: usage.cache_write_tokens,
        "cache_read": usage.cache_read_tokens,
    }
