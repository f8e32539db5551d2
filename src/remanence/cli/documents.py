"""JSON documents of the memory's values; docs/reference/cli.md lists their keys."""

import dataclasses
import re
from typing import Any

from remanence.context.context import Context
from remanence.types import (
    BudgetState,
    Fact,
    Failure,
    Hit,
    LogEntry,
    MemoryState,
    Message,
    Note,
    Problem,
    Segment,
)

JsonObject = dict[str, Any]  # values of many types


def segment_document(segment: Segment) -> JsonObject:
    """A segment with its notes and its lost literals."""
    return {
        "id": segment.id,
        "generation": segment.generation,
        "first_seq": segment.first_seq,
        "last_seq": segment.last_seq,
        "tokens": segment.tokens,
        "source_tokens": segment.source_tokens,
        "text": segment.text,
        "notes": [_note(note) for note in segment.notes],
        "lost": list(segment.lost),
        "dropped": [dataclasses.asdict(line) for line in segment.dropped],
        "failed": [stretch._asdict() for stretch in segment.failed],
        "made_by": segment.made_by,
        "created_at": segment.created_at.isoformat(),
    }


def _note(note: Note) -> JsonObject:
    return {
        "text": note.text,
        "first_seq": note.first_seq,
        "last_seq": note.last_seq,
        "observed_at": note.observed_at.isoformat() if note.observed_at else None,
        "referenced_at": note.referenced_at,
        "priority": note.priority,
        "tag": note.tag,
    }


def state_document(state: MemoryState) -> JsonObject:
    """The cursors, token accounts and failures."""
    return {
        "tenant": state.ref.tenant,
        "conversation": state.ref.id,
        "user": state.user,
        "last_seq": state.last_seq,
        "observed_seq": state.observed_seq,
        "active_seq": state.active_seq,
        "reflected_seq": state.reflected_seq,
        "tail_seq": state.tail_seq,
        "tokens": {
            "history": state.last_sum_tokens,
            "unobserved": state.unobserved_tokens,
            "tail": state.tail_tokens,
        },
        "failures": state.failures,
        "observe_failure": _failure(state.observe_failure),
        "reflect_failure": _failure(state.reflect_failure),
        "lock_version": state.lock_version,
    }


def _failure(failure: Failure | None) -> JsonObject | None:
    if failure is None:
        return None
    return {
        "reason": failure.reason,
        "message": failure.message,
        "at": failure.at.isoformat(),
        "next_attempt_at": failure.next_attempt_at.isoformat(),
        "failures": failure.failures,
        "skips": failure.skips,
    }


def context_document(context: Context) -> JsonObject:
    """The request for Anthropic's Messages API, with an empty `system` where there is none."""
    return {"system": [], **context.to_anthropic()}


def stats_document(context: Context) -> JsonObject:
    """Tokens by tier, and the omitted messages with the reasons."""
    return {
        **dataclasses.asdict(context.stats),
        "context_tokens": context.stats.context_tokens,
        "omitted": [dataclasses.asdict(gap) for gap in context.omitted],
    }


def message_document(message: Message) -> JsonObject:
    """A message as text, with its position on the tape."""
    return {
        "seq": message.seq,
        "role": message.role,
        "name": message.name,
        "kind": message.kind,
        "created_at": message.created_at.isoformat() if message.created_at else None,
        "tokens": message.tokens,
        "text": message.full_text,
    }


def hit_document(hit: Hit) -> JsonObject:
    """A search hit with its source."""
    return {**dataclasses.asdict(hit), "at": hit.at.isoformat() if hit.at else None}


def fact_document(fact: Fact) -> JsonObject:
    """A fact of a user."""
    times = ("created_at", "valid_from", "valid_to")
    fields = dataclasses.asdict(fact)
    return {**fields, **{name: fields[name] and fields[name].isoformat() for name in times}}


def log_document(entry: LogEntry) -> JsonObject:
    """A committed change."""
    return {**dataclasses.asdict(entry), "at": entry.at.isoformat()}


def problem_document(problem: Problem) -> JsonObject:
    """A problem and its remedy; tenant and conversation are null if it concerns the database."""
    ref = problem.conversation
    return {
        "tenant": ref.tenant if ref else None,
        "conversation": ref.id if ref else None,
        "level": problem.level,
        "what": problem.what,
        "remedy": problem.remedy,
    }


def budget_document(state: BudgetState) -> JsonObject:
    """A budget with the amounts spent."""
    return dataclasses.asdict(state)


def mask_password(url: str) -> str:
    """A database URL without its password."""
    return re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", url)
