"""`remanence inspect`: the content of a database, by conversation."""

from collections.abc import Sequence
from typing import Annotated

import typer

from remanence.cli.documents import (
    context_document,
    message_document,
    segment_document,
    state_document,
    stats_document,
)
from remanence.cli.options import AsJson, Database
from remanence.cli.output import Printer, shorten, warn, write_json
from remanence.cli.replay import live_segments
from remanence.cli.settings import Access, load, mask_password, open_conversation, open_existing
from remanence.conversation import Conversation
from remanence.runtime import DEFAULT_TENANT
from remanence.settings import Settings
from remanence.types import BudgetState, ConversationRef, LogEntry, MemoryState, Segment

SHOWN_LOG = 20
SHOWN_TEXT = 200
SHOWN_NOTE_LINES = 40


async def run(
    *,
    conversation: Annotated[
        str | None, typer.Argument(help="Its id; without it, all are listed.")
    ] = None,
    db: Database = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose conversations; for one of them, by default 'default'.")
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Show this segment, what it lost, and its messages."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(min=0, help="Show it as it was until the version after this one."),
    ] = None,
    flush: Annotated[bool, typer.Option("--flush", help="First do the work that is due.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="List at most so many conversations.")] = 100,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="List those after this one of --tenant.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the conversations of a database, or one of them.

    One is shown with its tape, segments, failures and log.
    """
    if conversation is None and (segment is not None or flush or version is not None):
        raise typer.BadParameter("--segment, --version and --flush need a CONVERSATION")
    if version is not None and (segment is not None or flush):
        raise typer.BadParameter("--version shows the past: leave out --segment and --flush")
    settings = load(url=db).settings
    if conversation is None:
        await _list(settings, tenant=tenant, after=after, limit=limit, as_json=as_json)
        return
    access: Access = "work" if flush and segment is None else "read"
    async with open_conversation(
        settings, conversation, tenant=tenant or DEFAULT_TENANT, access=access
    ) as chat:
        if segment is None:
            await _show(chat, version=version, flush=flush, as_json=as_json)
        else:
            await _show_segment(chat, segment, as_json=as_json)


async def _list(
    settings: Settings, *, tenant: str | None, after: str | None, limit: int, as_json: bool
) -> None:
    """List the conversations of one tenant or of all, by tenant and id."""
    start = ConversationRef(tenant or DEFAULT_TENANT, after) if after is not None else None
    async with open_existing(settings) as memory:
        found = await memory.conversations(tenant=tenant, after=start, limit=limit + 1)
    states, more = found[:limit], len(found) > limit
    if as_json:
        write_json({"conversations": [state_document(state) for state in states], "more": more})
        return
    if states:
        _print_states(Printer(), states)
    else:
        whose = "" if tenant is None else f" of tenant {tenant!r}"
        Printer().line(f"{mask_password(settings.url)} holds no conversation{whose}")
    if more:
        last = states[-1].ref
        warn(f"there are more: go on with --tenant {last.tenant!r} --after {last.id!r}")


async def _show(chat: Conversation, *, version: int | None, flush: bool, as_json: bool) -> None:
    """Show a conversation, now or at *version*; with *flush*, after the work that is due."""
    if flush:
        await chat.flush()
    shown = (await chat.state()).lock_version if version is None else version
    snapshot = await chat.snapshot(shown)
    log, budgets = await chat.log(shown), await chat.budget()
    context = await chat.context_at(shown)
    if as_json:
        write_json(
            {
                **state_document(snapshot.state),
                "segments": [segment_document(segment) for segment in snapshot.segments],
                "log": log,
                "context": context_document(context),
                "stats": stats_document(context),
                "budgets": budgets,
            }
        )
        return
    printer = Printer()
    _print_state(printer, snapshot.state, budgets)
    printer.segments(snapshot.segments)
    _print_notes(printer, snapshot.segments)
    _print_log(printer, log)
    if version is not None:
        printer.heading(f"Context ({context.stats.context_tokens:,} tokens)")
        printer.line(context.to_text())


async def _show_segment(chat: Conversation, segment_id: str, *, as_json: bool) -> None:
    """Show a segment, its lost literals and its source messages."""
    source = await chat.source(segment_id)
    live = {segment.id: segment for segment in await live_segments(chat)}
    segment = live.get(segment_id)
    if as_json:
        document = segment_document(segment) if segment else {"id": segment_id}
        write_json({**document, "source": [message_document(message) for message in source]})
        return
    printer = Printer()
    if segment is None:
        printer.line(f"{segment_id} was replaced by a later reflection", style="bold")
    else:
        _print_segment(printer, segment)
    rows = [
        (
            message.seq,
            f"{message.created_at:%Y-%m-%d %H:%M}" if message.created_at else "",
            shorten(message.full_text, SHOWN_TEXT),
        )
        for message in source
    ]
    printer.heading("Source messages")
    printer.table(("message#", "at (UTC)", "text~"), rows)


def _print_states(printer: Printer, states: Sequence[MemoryState]) -> None:
    columns = (
        *("tenant", "conversation", "messages#", "observed#", "active#", "reflected#"),
        *("tokens#", "raw#", "failed#"),
    )
    rows = [
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
    ]
    printer.table(columns, rows)


def _print_state(printer: Printer, state: MemoryState, budgets: Sequence[BudgetState]) -> None:
    user = f", user {state.user}" if state.user else ""
    printer.line(f"{state.ref.id} (tenant {state.ref.tenant}{user})", style="bold")
    printer.line(
        f"{state.last_seq:,} messages, {state.last_sum_tokens:,} tokens; "
        f"{state.unobserved_tokens:,} tokens not yet observed"
    )
    printer.line()
    printer.tape(state)
    for budget in budgets:
        printer.line(
            f"{budget.budget.scope} budget: {budget.spent_usd:.4f} USD, "
            f"{budget.spent_tokens:,} tokens spent ({budget.level})"
        )
    for failure in (state.observe_failure, state.reflect_failure):
        if failure is not None:
            left_out = f"was left out {failure.skips} times"
            happened = left_out if failure.skips else f"failed {failure.failures} times"
            printer.line(
                f"{failure.step} {happened}: {failure.reason}: "
                f"{failure.message}; next try at {failure.next_attempt_at:%Y-%m-%d %H:%M} UTC",
                style="yellow",
            )


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


def _print_segment(printer: Printer, segment: Segment) -> None:
    name = f"reflection of generation {segment.generation}" if segment.generation else "observation"
    printer.line(
        f"{segment.id}: {name} of messages {segment.first_seq}..{segment.last_seq}, "
        f"{segment.source_tokens:,} -> {segment.tokens:,} tokens, by {segment.made_by}",
        style="bold",
    )
    printer.line(segment.text or "(nothing was worth a note)")
    printer.heading(f"Lost literals ({len(segment.lost)})")
    printer.line(", ".join(segment.lost) or "none")
    if segment.dropped:
        printer.heading(f"Dropped lines ({len(segment.dropped)})")
        rows = [(line.reason, line.detail, line.text) for line in segment.dropped]
        printer.table(("reason", "detail~", "line~"), rows)
