"""Baselines for notes: whole sentences in some order, as many as the target has room for."""

import random
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from remanence.notes import render_notes
from remanence.observers.extractive.sentences import sentences
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import Draft, Message, Note

Order: TypeAlias = Callable[[Sequence[str]], Sequence[int]]
"""The places of texts, the one to keep first at the front."""


class Picking:
    """An observer that keeps sentences as they were said."""

    def __init__(self, order: Order) -> None:
        self._order = order

    async def observe(self, request: ObserveRequest) -> Draft:
        notes = [note for message in request.messages for note in _sentences(message)]
        room, chosen = request.target_tokens, list[int]()
        for place in self._order([note.text for note in notes]):
            cost = request.count_tokens(f"- {notes[place].text}\n")
            if cost <= room:
                chosen.append(place)
                room -= cost
        while chosen and _size([notes[place] for place in sorted(chosen)], request) > (
            request.target_tokens
        ):
            chosen.pop()
        kept = tuple(notes[place] for place in sorted(chosen))
        return Draft(notes=kept, made_by="baseline", nothing=not kept)


class OldestDropped:
    """A reflector that forgets the oldest notes."""

    async def reflect(self, request: ReflectRequest) -> Draft:
        notes = [note for segment in request.segments for note in segment.notes]
        while notes and _size(notes, request) > request.target_tokens:
            del notes[0]
        return Draft(notes=tuple(notes), made_by="baseline")


def last_first(texts: Sequence[str]) -> Sequence[int]:
    """The newest first."""
    return range(len(texts) - 1, -1, -1)


def shuffled(texts: Sequence[str]) -> Sequence[int]:
    """An order by chance, the same in each run."""
    order = list(range(len(texts)))
    random.Random(7).shuffle(order)
    return order


def sumy_orders(stop_words: Collection[str]) -> dict[str, Order]:
    """The orders of two summarizers of `sumy`; none where it is not installed."""
    try:
        from sumy.summarizers.lsa import LsaSummarizer  # noqa: PLC0415 - only for this baseline
        from sumy.summarizers.text_rank import TextRankSummarizer  # noqa: PLC0415
    except ImportError:
        return {}
    return {
        "sumy LSA": _rated(LsaSummarizer, stop_words),
        "sumy TextRank": _rated(TextRankSummarizer, stop_words),
    }


def _rated(summarizer: Any, stop_words: Collection[str]) -> Order:  # sumy ships no types
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence  # noqa: PLC0415
    from sumy.nlp.stemmers import Stemmer  # noqa: PLC0415

    def order(texts: Sequence[str]) -> Sequence[int]:
        rated: dict[int, float] = {}

        class Rating(summarizer):  # type: ignore[misc]
            """The summarizer without its own cut by number of sentences."""

            def _get_best_sentences(self, found: Any, _: Any, rating: Any, *_rest: Any) -> Any:
                rate = rating if callable(rating) else rating.__getitem__
                rated.update(enumerate(map(rate, found)))
                return ()

        rating = Rating(Stemmer("english"))
        rating.stop_words = stop_words
        tokenizer = _Tokenizer()
        rating(ObjectDocumentModel([Paragraph([Sentence(t, tokenizer) for t in texts])]), 1)
        return sorted(rated, key=lambda place: -rated[place])

    return order


class _Tokenizer:
    """Words for sumy, whose own tokenizer would download data."""

    def to_words(self, sentence: str) -> tuple[str, ...]:
        words = (word.strip(".,;:!?\"'()[]").lower() for word in sentence.split())
        return tuple(word for word in words if word)


def _sentences(message: Message) -> list[Note]:
    return [
        Note(
            text=" ".join(message.text[span.start : span.end].split()),
            first_seq=message.seq,
            last_seq=message.seq,
            observed_at=message.created_at,
            speaker=message.speaker,
        )
        for span in sentences(message.text)
    ]


def _size(notes: Sequence[Note], request: ObserveRequest | ReflectRequest) -> int:
    return request.count_tokens(render_notes(notes, request.note_format))
