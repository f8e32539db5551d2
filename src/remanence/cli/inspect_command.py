"""`remanence inspect`: the content of a database, by conversation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from remanence.cli.documents import (
    budget_document,
    context_document,
    log_document,
    mask_password,
    message_document,
    segment_document,
    state_document,
    stats_document,
)
from remanence.cli.output import Printer, shorten, warn, write_json
from remanence.cli.replay import live_segments
from remanence.cli.settings import existing, open_existing
from remanence.context.context import Context
from remanence.runtime import DEFAULT_TENANT
from remanence.settings import Settings
from remanence.types import BudgetState, ConversationRef, LogEntry, MemoryState, Message, Segment

SHOWN_LOG = 20
SHOWN_TEXT = 200
SHOWN_NOTE_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """One conversation: its state, live segments, log, budgets and context."""

    state: MemoryState
    segments: tuple[Segment, ...]
    log: tuple[LogEntry, ...]
    context: Context
    budgets: tuple[BudgetState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A segment with its source messages; `segment` is None if a later one replaced it."""

    segment_id: str
    segment: Segment | None
    source: tuple[Message, ...]


def run_list(
    settings: Settings, *, tenant: str | None, after: str | None, limit: int, as_json: bool
) -> int:
    """List the conversations of one tenant or of all, by tenant and id."""
    found = asyncio.run(_states(settings, tenant, after, limit + 1))
    states, more = found[:limit], len(found) > limit
    if as_json:
        write_json({"conversations": [state_document(state) for state in states], "more": more})
    elif not states:
        whose = "" if tenant is None else f" of tenant {tenant!r}"
        Printer().line(f"{mask_password(settings.url)} holds no conversation{whose}")
    else:
        _print_states(Printer(), states)
    if more and not as_json:
        last = states[-1].ref
        warn(f"there are more: go on with --tenant {last.tenant!r} --after {last.id!r}")
    return 0


def run_one(
    settings: Settings,
    conversation: str,
    *,
    tenant: str,
    version: int | None,
    flush: bool,
    as_json: bool,
) -> int:
    """Show one conversation, now or at *version*; with *flush*, after the work that is due."""
    found = asyncio.run(_inspect(settings, conversation, tenant, version, flush=flush))
    if as_json:
        write_json(
            {
                **state_document(found.state),
                "segments": [segment_document(segment) for segment in found.segments],
                "log": [log_document(entry) for entry in found.log],
                "context": context_document(found.context),
                "stats": stats_document(found.context),
                "budgets": [budget_document(budget) for budget in found.budgets],
            }
        )
    else:
        _print_one(Printer(), found)
        if version is not None:
            _print_context(Printer(), found.context)
    return 0


def run_segment(
    settings: Settings, conversation: str, segment_id: str, *, tenant: str, as_json: bool
) -> int:
    """Show a segment, its lost literals and its source messages."""
    traced = asyncio.run(_trace(settings, conversation, tenant, segment_id))
    if as_json:
        document = segment_document(traced.segment) if traced.segment else {"id": segment_id}
        write_json({**document, "source": [message_document(m) for m in traced.source]})
    else:
        _print_segment(Printer(), traced)
    return 0


async def _states(
    settings: Settings, tenant: str | None, after: str | None, limit: int
) -> tuple[MemoryState, ...]:
    start = ConversationRef(tenant or DEFAULT_TENANT, after) if after is not None else None
    async with open_existing(settings) as memory:
        return await memory.conversations(tenant=tenant, after=start, limit=limit)


async def _inspect(
    settings: Settings, conversation: str, tenant: str, version: int | None, *, flush: bool
) -> Inspection:
    async with open_existing(settings, access="work" if flush else "read") as memory:
        chat = await existing(memory, conversation, tenant=tenant)
        if flush:
            await chat.flush()
        shown = (await chat.state()).lock_version if version is None else version
        snapshot = await chat.snapshot(shown)
        return Inspection(
            state=snapshot.state,
            segments=snapshot.segments,
            log=await chat.log(shown),
            context=await chat.context_at(shown),
            budgets=await chat.budget(),
        )


async def _trace(settings: Settings, conversation: str, tenant: str, segment_id: str) -> Trace:
    async with open_existing(settings) as memory:
        chat = await existing(memory, conversation, tenant=tenant)
        source = await chat.source(segment_id)
        live = {segment.id: segment for segment in await live_segments(chat)}
        return Trace(segment_id=segment_id, segment=live.get(segment_id), source=source)


def _print_states(printer: Printer, states: Sequence[MemoryState]) -> None:
    printer.table(
        (
            "tenant",
            "conversation",
            "messages#",
            "observed#",
            "active#",
            "reflected#",
            "tokens#",
            "raw#",
            "failed#",
        ),
        [
            (
                state.ref.tenant,
                state.ref.id,
                state.last_seq,
                state.observed_seq,
                state.active_seq,
                state.reflected_seq,
                state.last_sum_tokens,
                state.tail_tokens,
                state.failures,
            )
            for state in states
        ],
    )


def _print_one(printer: Printer, found: Inspection) -> None:
    state = found.state
    user = f", user {state.user}" if state.user else ""
    printer.line(f"{state.ref.id} (tenant {state.ref.tenant}{user})", style="bold")
    printer.line(
        f"{state.last_seq:,} messages, {state.last_sum_tokens:,} tokens; "
        f"{state.unobserved_tokens:,} tokens not yet observed"
    )
    printer.line()
    printer.tape(state)
    for budget in found.budgets:
        printer.line(
            f"{budget.budget.scope} budget: {budget.spent_usd:.4f} USD, "
            f"{budget.spent_tokens:,} tokens spent ({budget.level})"
        )
    for failure in (state.observe_failure, state.reflect_failure):
        if failure is not None:
            happened = (
                f"was left out {failure.skips} times"
                if failure.skips
                else f"failed {failure.failures} times"
            )
            printer.line(
                f"{failure.step} {happened}: {failure.reason}: "
                f"{failure.message}; next try at {failure.next_attempt_at:%Y-%m-%d %H:%M} UTC",
                style="yellow",
            )
    printer.segments(found.segments)
    _print_notes(printer, found.segments)
    _print_log(printer, found.log)


def _print_notes(printer: Printer, segments: Sequence[Segment]) -> None:
    lines = [line for segment in segments for line in segment.text.splitlines()]
    if not lines:
        return
    left_out = len(lines) - SHOWN_NOTE_LINES
    printer.heading("Notes" if left_out <= 0 else f"Notes (the newest {SHOWN_NOTE_LINES} lines)")
    for line in lines[-SHOWN_NOTE_LINES:]:
        printer.line(line)
    if left_out > 0:
        printer.line(f"{left_out:,} older lines: --segment ID shows those of one, --json all")


def _print_context(printer: Printer, context: Context) -> None:
    printer.heading(f"Context ({context.stats.context_tokens:,} tokens)")
    printer.line(context.to_text())


def _print_log(printer: Printer, log: Sequence[LogEntry]) -> None:
    if not log:
        return
    printer.heading(f"Log ({min(SHOWN_LOG, len(log))} of {len(log)} changes)")
    printer.table(
        ("version#", "at (UTC)", "change", "detail~"),
        [
            (entry.version, f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.kind, entry.detail)
            for entry in log[-SHOWN_LOG:]
        ],
    )


def _print_dropped(printer: Printer, segment: Segment) -> None:
    if segment.dropped:
        printer.heading(f"Dropped lines ({len(segment.dropped)})")
        rows = [(line.reason, line.detail, line.text) for line in segment.dropped]
        printer.table(("reason", "detail~", "line~"), rows)


def _print_segment(printer: Printer, traced: Trace) -> None:
    segment = traced.segment
    if segment is None:
        printer.line(f"{traced.segment_id} was replaced by a later reflection", style="bold")
    else:
        name = (
            f"reflection of generation {segment.generation}"
            if segment.generation
            else "observation"
        )
        printer.line(
            f"{segment.id}: {name} of messages {segment.first_seq}..{segment.last_seq}, "
            f"{segment.source_tokens:,} -> {segment.tokens:,} tokens, by {segment.made_by}",
            style="bold",
        )
        printer.line(segment.text or "(nothing was worth a note)")
        printer.heading(f"Lost literals ({len(segment.lost)})")
        printer.line(", ".join(segment.lost) or "none")
        _print_dropped(printer, segment)
    printer.heading("Source messages")
    printer.table(
        ("message#", "at (UTC)", "text~"),
        [
            (
                message.seq,
                f"{message.created_at:%Y-%m-%d %H:%M}" if message.created_at else "",
                shorten(message.full_text, SHOWN_TEXT),
            )
            for message in traced.source
        ],
    )
