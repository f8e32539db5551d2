"""Sample values for the contract suites."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from remanence.protocols import Store
from remanence.types import (
    ConversationRef,
    Fact,
    FactChanges,
    Failure,
    MemoryState,
    Message,
    Note,
    Owner,
    Repetition,
    Segment,
    Usage,
)

REF = ConversationRef("default", "chat")
OTHER = ConversationRef("default", "other")
ANA = Owner("default", "ana")
BOB = Owner("default", "bob")
START = datetime(2024, 5, 17, 9, 30, tzinfo=UTC)
TOKENS = 10  # per message


def at(minutes: float) -> datetime:
    """A time after START."""
    return START + timedelta(minutes=minutes)


def user(text: str, *, id: str | None = None, tokens: int = TOKENS) -> Message:  # noqa: A002 - a field
    """Return a user message with a token count."""
    return Message.user(text, id=id).replace(tokens=tokens)


def users(count: int) -> list[Message]:
    """Return *count* different messages."""
    return [user(f"message {number}") for number in range(1, count + 1)]


def observation(first_seq: int, last_seq: int, **changes: object) -> Segment:
    """Return an observation of a range, with one note and *changes* of its fields."""
    text = f"what was said in {first_seq} to {last_seq}"
    generation = changes.get("generation", 0)
    fields: dict[str, object] = {
        "id": f"g{generation}-{first_seq}-{last_seq}",
        "generation": generation,
        "first_seq": first_seq,
        "last_seq": last_seq,
        "text": text,
        "notes": (Note(text=text, first_seq=first_seq, last_seq=last_seq, observed_at=START),),
        "tokens": 7,
        "source_tokens": (last_seq - first_seq + 1) * TOKENS,
        "sum_tokens": last_seq * TOKENS,
        "lost": (),
        "made_by": "contract/1",
        "created_at": at(60),
    }
    return Segment(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def reflection(first_seq: int, last_seq: int, **changes: object) -> Segment:
    """Return a reflection of generation 1 over a range."""
    return observation(first_seq, last_seq, **{"generation": 1, **changes})


def failure(step: str = "observe", **changes: object) -> Failure:
    """Return a failed step, with *changes* of its fields."""
    fields: dict[str, object] = {
        "step": step,
        "reason": "timeout",
        "message": "no answer within 30 s",
        "at": at(61),
        "next_attempt_at": at(62),
        "failures": 1,
        "last_seq": 4,
    }
    return Failure(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def fact(id_: str, summary: str, owner: Owner = ANA, **changes: object) -> Fact:
    """Return a current fact, with *changes* of its fields."""
    fields: dict[str, object] = {
        "id": id_,
        "tenant": owner.tenant,
        "user": owner.user,
        "summary": summary,
        "type": "knowledge",
        "tags": ("a tag", "another"),
        "created_at": at(5),
        "valid_from": at(4),
        "made_by": "contract/1",
    }
    return Fact(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def said_again(repeats: str, *facts: Fact) -> FactChanges:
    """Return changes with repetitions of one fact."""
    return FactChanges(repetitions=tuple(Repetition(repeats, fact) for fact in facts))


def new(*facts: Fact, **replaced: str) -> FactChanges:
    """Return changes with these facts; *replaced* maps the id of an old fact to a new one's."""
    return FactChanges(facts=facts, replaced=replaced)


def usage(**changes: object) -> Usage:
    """Return a model call for `REF` and its user, with *changes* of its fields."""
    fields: dict[str, object] = {
        "conversation": REF,
        "user": "ana",
        "purpose": "observe",
        "model": "a",
        "input_tokens": 1_000,
        "output_tokens": 100,
        "cache_read_tokens": 400,
        "cache_write_tokens": 200,
        "cost_usd": 0.01,
        "duration_seconds": 1.5,
        "outcome": "ok",
        "at": at(61),
    }
    return Usage(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


async def tape(store: Store, count: int, ref: ConversationRef = REF) -> MemoryState:
    """Append *count* messages and return the state."""
    return (await store.append(ref, users(count), user="ana")).state


async def observe_ranges(
    store: Store, ranges: Sequence[tuple[int, int]], ref: ConversationRef = REF
) -> MemoryState:
    """Append messages up to the last range, observe each range, and return the state."""
    state = await tape(store, ranges[-1][1], ref)
    for first_seq, last_seq in ranges:
        state = expect_state(
            await store.commit_observation(state, observation(first_seq, last_seq))
        )
    return state


async def active(
    store: Store, ranges: Sequence[tuple[int, int]], ref: ConversationRef = REF
) -> MemoryState:
    """Observe the ranges, activate all of them, and return the state."""
    state = await observe_ranges(store, ranges, ref)
    end = state.observed_seq
    return expect_state(await store.activate(state, active_seq=end, tail_seq=end + 1, at=at(70)))


def expect_state(state: MemoryState | None) -> MemoryState:
    """Return the state of a commit, which must have succeeded."""
    assert state is not None, "the guard of a commit without rivals did not hold"
    return state
