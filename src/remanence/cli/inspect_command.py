"""`remanence inspect`: the content of a database, by conversation."""

from collections.abc import Sequence
from typing import Annotated

import typer

from remanence.cli import documents, output
from remanence.cli.options import AsJson, Database
from remanence.cli.output import quantity
from remanence.cli.settings import Access, load, open_conversation, open_existing
from remanence.cli.tape_drawing import print_tape
from remanence.conversation import Conversation
from remanence.runtime import DEFAULT_TENANT
from remanence.settings import Settings
from remanence.stores import mask_password
from remanence.types import BudgetState, ConversationRef, LogEntry, MemoryState, Segment

LISTED = 100
SHOWN_LOG = 20
SHOWN_TEXT = 200


async def run(
    *,
    conversation: Annotated[
        str | None, typer.Argument(help="Its id; by default all are listed.")
    ] = None,
    db: Database = None,
    tenant: Annotated[
        str | None, typer.Option(help="The tenant; for a single conversation 'default' by default.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="List this user's conversations of the tenant.")
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Show this segment, what it lost, and its messages."),
    ] = None,
    version: Annotated[
        int | None, typer.Option(min=0, help="Show the conversation as of this version of its log.")
    ] = None,
    flush: Annotated[bool, typer.Option("--flush", help="Do due work first.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, max=100_000, help=f"The maximum number of conversations, by default {LISTED}."
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="ID", help="List the conversations of --tenant after this."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the conversations of a database, or one of them.

    A single conversation is shown with its tape, segments, failures and log.
    """
    if conversation is None and (segment is not None or flush or version is not None):
        raise typer.BadParameter("--segment, --version and --flush need a CONVERSATION")
    if version is not None and (segment is not None or flush):
        raise typer.BadParameter("--version shows the past: leave out --segment and --flush")
    if conversation is not None and (user, limit, after) != (None, None, None):
        raise typer.BadParameter(
            "--user, --limit and --after list conversations: leave out CONVERSATION"
        )
    settings = load(url=db).settings
    if conversation is None:
        await _list(settings, tenant, user, after=after, limit=limit or LISTED, as_json=as_json)
        return
    access: Access = "work" if flush and segment is None else "read"
    async with open_conversation(
        settings, conversation, tenant=DEFAULT_TENANT if tenant is None else tenant, access=access
    ) as chat:
        if segment is None:
            await _show(chat, version=version, flush=flush, as_json=as_json)
        else:
            await _show_segment(chat, segment, as_json=as_json)


async def _list(
    settings: Settings,
    tenant: str | None,
    user: str | None,
    *,
    after: str | None,
    limit: int,
    as_json: bool,
) -> None:
    start = ConversationRef(tenant or DEFAULT_TENANT, after) if after is not None else None
    async with open_existing(settings) as memory:
        found = await memory.conversations(tenant=tenant, user=user, after=start, limit=limit + 1)
    states, more = found[:limit], len(found) > limit
    if as_json:
        output.write_json({"conversations": [*map(documents.state, states)], "more": more})
        return
    if states:
        output.table(
            states,
            {
                "tenant": lambda state: state.ref.tenant,
                "conversation": lambda state: state.ref.id,
                "messages#": lambda state: state.last_seq,
                "observed#": lambda state: state.observed_seq,
                "active#": lambda state: state.active_seq,
                "reflected#": lambda state: state.reflected_seq,
                "tokens#": lambda state: state.last_sum_tokens,
                "raw#": lambda state: state.tail_tokens,
                "failed#": lambda state: state.failures,
            },
        )
    else:
        whose = "" if tenant is None else f" of tenant {tenant!r:.80}"
        whose += "" if user is None else f" of user {user!r:.80}"
        whose += "" if after is None else f" after {after!r:.80}"
        output.line(f"{mask_password(settings.url)} holds no conversation{whose}")
    if more:
        last = states[-1].ref
        rest = "" if user is None else f"--user {user!r} "
        output.warn(
            f"there are more: continue with --tenant {last.tenant!r} {rest}--after {last.id!r}"
        )


async def _show(chat: Conversation, *, version: int | None, flush: bool, as_json: bool) -> None:
    if flush:
        await chat.flush()
    shown = (await chat.state()).lock_version if version is None else version
    snapshot = await chat.snapshot(shown)
    log, budgets = await chat.log(shown), await chat.budget()
    context = await chat.context_at(shown)
    if as_json:
        output.write_json(
            {
                **documents.state(snapshot.state),
                "segments": [documents.segment(segment) for segment in snapshot.segments],
                "log": log,
                "context": documents.context(context),
                "stats": documents.stats(context),
                "budgets": budgets,
            }
        )
        return
    _print_state(snapshot.state, snapshot.segments, budgets)
    output.list_segments(snapshot.segments)
    output.list_notes(snapshot.segments, older="--segment ID shows those of one, --json all")
    _print_log(log)
    if version is not None:
        output.heading(f"Context ({context.stats.context_tokens:,} tokens)")
        output.line(context.to_text())


async def _show_segment(chat: Conversation, segment_id: str, *, as_json: bool) -> None:
    source = await chat.source(segment_id)
    live = (await chat.snapshot()).segments
    segment = next((each for each in live if each.id == segment_id), None)
    if as_json:
        document = documents.segment(segment) if segment else {"id": segment_id}
        output.write_json({**document, "source": [documents.message(each) for each in source]})
        return
    if segment is None:
        output.line(f"{segment_id} was replaced by a later reflection", style="bold")
    else:
        _print_segment(segment)
    output.heading("Source messages")
    output.table(
        source,
        {
            "message#": lambda message: message.seq,
            "at (UTC)": lambda message: message.created_at,
            "text~": lambda message: output.shorten(message.full_text, SHOWN_TEXT),
        },
    )


def _print_state(
    state: MemoryState, segments: Sequence[Segment], budgets: Sequence[BudgetState]
) -> None:
    user = f", user {state.user}" if state.user else ""
    output.line(f"{state.ref.id} (tenant {state.ref.tenant}{user})", style="bold")
    output.line(
        f"{quantity(state.last_seq, 'message')}, {quantity(state.last_sum_tokens, 'token')}; "
        f"{quantity(state.unobserved_tokens, 'token')} not yet observed"
    )
    output.line()
    print_tape(state, segments)
    for budget in budgets:
        output.line(
            f"{budget.budget.scope} budget: {budget.spent_usd:.4f} USD, "
            f"{budget.spent_tokens:,} tokens spent ({budget.level})"
        )
    failures = (state.observe_failure, state.reflect_failure, state.facts_failure)
    for failure in filter(None, failures):
        skipped = f"was skipped {quantity(failure.left_out, 'time')}"
        happened = skipped if failure.left_out else f"failed {quantity(failure.failures, 'time')}"
        output.line(
            f"the {failure.step} step {happened}: {failure.reason}: "
            f"{failure.message}; next try at {failure.next_attempt_at:%Y-%m-%d %H:%M} UTC",
            style="yellow",
        )


def _print_log(log: Sequence[LogEntry]) -> None:
    if not log:
        return
    output.heading(f"Log ({min(SHOWN_LOG, len(log))} of {len(log)} changes)")
    output.table(
        log[-SHOWN_LOG:],
        {
            "version#": lambda entry: entry.version,
            "at (UTC)": lambda entry: f"{entry.at:%Y-%m-%d %H:%M:%S}",
            "change": lambda entry: entry.kind,
            "detail~": lambda entry: entry.detail,
        },
    )


def _print_segment(segment: Segment) -> None:
    name = f"reflection of generation {segment.generation}" if segment.generation else "observation"
    output.line(
        f"{segment.id}: {name} of messages {segment.first_seq}..{segment.last_seq}, "
        f"{segment.source_tokens:,} -> {segment.tokens:,} tokens, by {segment.made_by}",
        style="bold",
    )
    for first, last, reason, message in segment.failed:
        output.line(f"messages {first}..{last} are in no note: {reason}: {message}", style="yellow")
    if segment.text or not segment.failed:
        output.line(segment.text or "(nothing was worth a note)")
    output.heading(f"Lost literals ({len(segment.lost)})")
    output.line(", ".join(segment.lost) or "none")
    if segment.dropped:
        output.heading(f"Dropped lines ({len(segment.dropped)})")
        output.table(
            segment.dropped,
            {
                "reason": lambda line: line.reason,
                "detail~": lambda line: line.detail,
                "line~": lambda line: line.text,
            },
        )
