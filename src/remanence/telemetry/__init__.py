"""All spans, counters and log messages of remanence, in OpenTelemetry's terms."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Literal, TypeAlias, get_args

from opentelemetry import metrics

from remanence.telemetry.spans import call_attributes
from remanence.types import (
    EFFECTS,
    BudgetScope,
    BudgetState,
    MemoryState,
    Pruned,
    Segment,
    Usage,
)

ContextListener: TypeAlias = Callable[[MemoryState, object], None]

_context_listeners: list[ContextListener] = []

logger = logging.getLogger("remanence")

_meter = metrics.get_meter("remanence")

_appended = _meter.create_counter("remanence.messages.appended", unit="{message}")
_committed = _meter.create_counter("remanence.segments.committed", unit="{segment}")
_lost = _meter.create_counter("remanence.literals.lost", unit="{literal}")
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
_proxied = _meter.create_counter("remanence.proxy.requests", unit="{request}")
_prefix_changes = _meter.create_counter("remanence.prefix.changes", unit="{change}")


def count_from_zero(*, omitted_reasons: Iterable[str]) -> None:
    """Initialize counters to zero, so that the first event shows up as an increase."""
    for counter in (_appended, _lost, _remembered, _activated, _ledger_lost):
        counter.add(0)
    for reason in omitted_reasons:
        _omitted.add(0, {"reason": reason})
    for scope, level in product(get_args(BudgetScope), ("soft", "hard")):
        _budget_reached.add(0, {"scope": scope, "level": level})


def messages_appended(count: int) -> None:
    """Count durably appended messages."""
    _appended.add(count)


def segment_committed(conversation_id: str, segment: Segment) -> None:
    """Count a committed observation or reflection, and the literals that its notes lost."""
    _committed.add(1, {"generation": segment.generation})
    _lost.add(len(segment.lost))
    text = "committed generation %d of %r: messages %d..%d"
    logger.debug(text, segment.generation, conversation_id, segment.first_seq, segment.last_seq)


def slice_cut(conversation_id: str, first_seq: int, last_seq: int) -> None:
    """Log that messages are observed in several steps, although the policy asks for one."""
    text = (
        "conversation %r has more to observe than one observation can read: messages %d..%d are "
        "observed now, later ones in another step"
    )
    logger.info(text, conversation_id, first_seq, last_seq)


def processes_broken(error: str) -> None:
    """Log that observer processes died; their requests are retried once."""
    text = (
        "observer processes died, and new ones start with the next request: %s If this repeats, open "
        "the memory under `if __name__ == '__main__'`, and check that the machine has enough memory"
    )
    logger.warning(text, error)


def facts_committed(conversation_id: str, facts: int, replaced: int) -> None:
    """Count facts extracted from a conversation."""
    _remembered.add(facts)
    logger.debug("%r gave %d facts, which replaced %d", conversation_id, facts, replaced)


def left_out_of_facts(conversation_id: str, first_seq: int, last_seq: int) -> None:
    """Log that messages leave no facts, as every attempt to extract them failed."""
    text = "messages %d..%d of conversation %r are left out of facts, as every attempt failed"
    logger.warning(text, first_seq, last_seq, conversation_id)


def secret_not_replaced(fact_id: str) -> None:
    """Log that a fact was not replaced, as only a secret differs, which is not kept."""
    text = "fact %r is not replaced: without secrets, which are not kept, the new one is the same"
    logger.warning(text, fact_id)


def step_failed(
    step: str,
    conversation_id: str,
    reason: str,
    message: str,
    failures: int,
    *,
    cause: str = "",
    effect: str = "",
) -> None:
    """Count and log a failed step with its *cause*, a text that quotes nothing, and its *effect*.

    *message* may quote private text, and is logged only at DEBUG.
    """
    _failed.add(1, {"step": step, "reason": reason})
    text = "%s of conversation %r failed (%s, %d in a row); %s%s"
    shown = f": {cause}" if cause else ""
    logger.warning(text, step, conversation_id, reason, failures, effect or EFFECTS[step], shown)
    logger.debug("the %s of %r failed with: %s", step, conversation_id, message)


def embedding_failed(
    part: str, reason: str, message: str, failures: int, *, cause: str = ""
) -> None:
    """Count and log a failed embedder, or another *part* that the search by meaning needs.

    *message* and *cause* are as for `step_failed`.
    """
    _failed.add(1, {"step": "embed", "reason": reason})
    text = "%s failed (%s, %d in a row); only words are searched%s"
    logger.warning(text, part, reason, failures, f": {cause}" if cause else "")
    logger.debug("%s failed with: %s", part, message)


def text_not_embedded(embedder: str, reason: str, message: str) -> None:
    """Count and log a text that the embedder refuses; *message* is as for `step_failed`."""
    _failed.add(1, {"step": "embed", "reason": reason})
    logger.warning("%s refuses a text (%s); it is found only by its words", embedder, reason)
    logger.debug("%s refuses it with: %s", embedder, message[:200])


def background_failed(
    name: str, reason: str, message: str, failures: int, *, retry_seconds: float
) -> None:
    """Count and log a failure of work that does not belong to a conversation."""
    _failed.add(1, {"step": name, "reason": reason})
    text = "background work %r failed (%s, %d in a row): %s; it is tried again in %g s"
    logger.warning(text, name, reason, failures, message, retry_seconds)


def background_stopped(failure: str, error: BaseException) -> None:
    """Log that an open memory does no more background work, with the traceback of the reason."""
    text = "%s: messages stay raw, and waiting calls fail, until the memory is opened again"
    logger.error(text, failure, exc_info=error)


def task_left(step: str) -> None:
    """Log that closing does not wait for a task that goes on though it was cancelled."""
    text = (
        "%s did not end when it was cancelled, and is left behind: have it pass on CancelledError"
    )
    logger.error(text, step)


def step_discarded(step: str, conversation_id: str) -> None:
    """Count a result that lost a race."""
    _discarded.add(1, {"step": step})
    logger.info("%s of conversation %r lost a race and was discarded", step, conversation_id)


def lease_not_prolonged(conversation_id: str, message: str) -> None:
    """Log that another process may take over while this one still works."""
    logger.warning("the lease of conversation %r was not renewed: %s", conversation_id, message)


def turn_not_ended(conversation_id: str, message: str) -> None:
    """Log that other processes must wait until the lease of a turn expires."""
    logger.warning("the turn of conversation %r was not released: %s", conversation_id, message)


def model_called(usage: Usage) -> None:
    """Count and log a model call with its tokens."""
    about = call_attributes(usage)
    _model_calls.add(1, {**about, "remanence.outcome": usage.outcome})
    kinds = _tokens(usage, cache_write="cache_write")
    for kind, tokens in kinds.items():
        _model_tokens.add(tokens, {**about, "gen_ai.token.type": kind})
    text = (
        "model call %s of %s: conversation %r, input %d, output %d, cache write %d, cache read %d "
        "tokens, outcome %s"
    )
    conversation_id = usage.conversation.id if usage.conversation else None
    counts = (*kinds.values(), usage.outcome)
    logger.info(text, usage.purpose, usage.model, conversation_id, *counts)


def rows_pruned(pruned: Pruned) -> None:
    """Log that retention deleted rows."""
    text = "retention deleted %d replaced segments, %d log entries, %d model calls, %d vectors"
    logger.info(text, *pruned)


def model_priced(usage: Usage) -> None:
    """Count the price of a model call, if it is known."""
    about = call_attributes(usage)
    _model_cost.add(usage.cost_usd or 0.0, about)


def ledger_waits(reason: str) -> None:
    """Log that model calls wait, as the store of the ledger is unavailable."""
    logger.warning("model calls wait to be written to the ledger, and are tried again: %s", reason)


def usage_lost(calls: int, message: str) -> None:
    """Count and log model calls that could not be written to the ledger."""
    _ledger_lost.add(calls)
    logger.warning("%d model calls are missing in the ledger: %s", calls, message)


def budget_reached(state: BudgetState, subject: str) -> None:
    """Count and log that the budget of *subject* is at its soft or hard limit."""
    scope, level = state.budget.scope, state.level
    _budget_reached.add(1, {"scope": scope, "level": level})
    spent = f"{state.spent_usd:.4f} USD, {state.spent_tokens} tokens"
    logger.warning("the %s budget of %s is at its %s limit: %s", scope, subject, level, spent)


def step_skipped(step: str, conversation_id: str, reason: str, message: str) -> None:
    """Count and log a step that was skipped on purpose; *message* is as for `step_failed`."""
    _skipped.add(1, {"step": step, "reason": reason})
    text = "%s of conversation %r was skipped (%s); %s"
    logger.info(text, step, conversation_id, reason, EFFECTS[step])
    logger.debug("the %s of %r was skipped: %s", step, conversation_id, message)


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


def context_built(
    state: MemoryState, context: object, *, tokens: int, omitted: Mapping[str, int]
) -> None:
    """Record a context's size and omitted messages by reason, and notify listeners."""
    _context_tokens.record(tokens)
    for reason, messages in omitted.items():
        _omitted.add(messages, {"reason": reason})
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
    """Count and log the tokens of a chat's model call, and whether its cached prefix changed."""
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
    """Count and log a chat's failed model call."""
    _chat_failures.add(1, {"model": model, "reason": reason})
    logger.warning("chat call of conversation %r to %s failed: %s", conversation_id, model, reason)


def tool_failed(name: str, failure: str) -> None:
    """Count and log a tool that raised, or gave no text that fits, without texts: they may be private."""
    _tool_failures.add(1, {"tool": name})
    logger.warning("tool %r failed with %s; the model was told", name, failure)


def proxy_requested(memory: Literal["on", "off"], reason: str) -> None:
    """Count a turn that a proxy forwards, with memory or without, and the reason for the latter."""
    _proxied.add(1, {"memory": memory, "reason": reason})


def proxy_without_memory(conversation_id: str | None, reason: str, message: str) -> None:
    """Log that a proxy forwards turns without memory."""
    named = "that names no conversation" if conversation_id is None else "of conversation %.80r"
    text = f"a turn {named} was forwarded without memory, and is not stored (%s): %s"
    ids = () if conversation_id is None else (conversation_id,)
    logger.warning(text, *ids, reason, message)


def proxy_unnamed(provider: str) -> None:
    """Log that a proxy forwards requests without memory because they name no conversation."""
    logger.warning(
        "a request to the proxy for %s names no conversation, and was forwarded without memory: have "
        "the client send the header X-Remanence-Conversation, or recognise conversations by their "
        "messages with 'remanence serve --recognize' (this is logged once)",
        provider,
    )


def proxy_detached(conversation_id: str, count: int) -> None:
    """Log that a client does not continue its conversation at a proxy, and what to do."""
    logger.warning(
        "the last %d requests in conversation %.80r continue no earlier one, and were forwarded without "
        "memory: its client seems to send only its newest message; have it send the history, too, or "
        "use POST /v1/conversations/{id}/chat, or .../messages and .../context (this is logged once)",
        count,
        conversation_id,
    )


def proxy_began_anew(conversation_id: str, branch_id: str) -> None:
    """Log that a history at a proxy shares nothing with its conversation, and what to do."""
    logger.info(
        "a request in conversation %.80r shares no message with its tapes, and began the branch %.80r "
        "without notes: if its client lost the history, as at a restart, have it keep and resend that; "
        "if it is another conversation, name it with X-Remanence-Conversation; after a summary by the "
        "client this is as it should be (this is logged once)",
        conversation_id,
        branch_id,
    )


def proxy_sub_agent(conversation_id: str, branch_id: str) -> None:
    """Log that a history at a proxy begins during a tool call of its conversation."""
    logger.info(
        "a request in conversation %.80r shares no message with its tapes and began the branch %.80r while "
        "a tool call waits for its result: it is taken for a sub-agent's, so its message yields "
        "no facts; name a sub-agent's conversation with X-Remanence-Conversation, or send "
        "X-Remanence-Memory: off (this is logged once)",
        conversation_id,
        branch_id,
    )


def proxy_branches(conversation_id: str, count: int) -> None:
    """Log that a conversation at a proxy has many branches, and what to do."""
    logger.warning(
        "conversation %.80r has %d branches: its client changes, regenerates or leaves out messages, "
        "repeats runs that were cancelled, or several conversations share the name, and each branch stores "
        "its messages again; have the client resend its history unchanged, name each conversation with "
        "X-Remanence-Conversation, or send X-Remanence-Memory: off",
        conversation_id,
        count,
    )


def _tokens(usage: Usage, *, cache_write: str) -> dict[str, int]:
    """Return the tokens of a call by kind."""
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        cache_write: usage.cache_write_tokens,
        "cache_read": usage.cache_read_tokens,
    }
