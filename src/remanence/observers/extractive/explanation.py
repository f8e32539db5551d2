"""Explanation of embedded notes: the features of each sentence, and whether a note has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import prod

from remanence.observers.extractive.features import Factor, factors
from remanence.observers.extractive.observer import choose
from remanence.observers.observable import observable
from remanence.pacing import at_once
from remanence.policy.policy import Policy
from remanence.policy.schedule import observation_target
from remanence.protocols import ObserveRequest
from remanence.tokens import counter_for
from remanence.types import ConversationRef, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A sentence or clause of a message, in its original text.

    `value` is that of its words, 0 if it says nothing or nothing new; each factor multiplies it.
    Sentences with `is_standing` are taken before all others. `is_taken`: a note has it.
    """

    seq: int
    speaker: str
    text: str
    value: float
    factors: tuple[Factor, ...]
    is_standing: bool
    is_taken: bool

    @property
    def score(self) -> float:
        """The value times all factors; the highest score per token is taken first."""
        return self.value * prod(factor.amount for factor in self.factors)


def explain(messages: Sequence[Message], *, ratio: float | None = None) -> list[Explanation]:
    """Return how the embedded observer chooses among the sentences of messages, in order.

    The messages are observed at once, for notes of at most *ratio* tokens per token; by default
    as many as by `Policy.default()`. Messages that are on no tape yet are numbered by their position.
    """
    policy = Policy.default()
    counter = counter_for(policy.model)
    placed = [m if m.seq else m.replace(seq=seq) for seq, m in enumerate(messages, start=1)]
    seen = observable(placed)
    tokens = sum(message.tokens or counter.message(message) for message in placed)
    target = observation_target(policy, tokens) if ratio is None else int(tokens * ratio)
    choice = at_once(
        choose(
            ObserveRequest(
                conversation=ConversationRef("explain", "explain"),
                messages=seen,
                known=(),
                target_tokens=target,
                count_tokens=counter.text,
                note_format="compact",
                now=datetime.min.replace(tzinfo=UTC),
            )
        )
    )
    values = {
        id(p): sum(value for _, value in candidate.terms)
        for p, candidate in zip(choice.found, choice.candidates, strict=True)
    }
    taken = {id(choice.found[index]) for index in choice.selection.kept}
    return [
        Explanation(
            seq=p.seq,
            speaker=p.speaker,
            text=p.source,
            value=round(values.get(id(p), 0.0), 2),
            factors=tuple(factors(p)),
            is_standing=p.is_standing,
            is_taken=id(p) in taken,
        )
        for p in choice.passages
    ]
