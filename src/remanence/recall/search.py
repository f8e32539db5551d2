"""Recall: search by words and vectors over notes, messages and facts."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from remanence import telemetry
from remanence.background import guard_cancellation
from remanence.notes.excerpts import both_ends
from remanence.observers.learned.topics import common_topic
from remanence.policy.policy import Policy
from remanence.protocols import Embedder, FactVectors, Store
from remanence.recall.fusion import by_reciprocal_rank, fact_hit, fuse, snippet
from remanence.recall.indexer import EMBEDDER, embed
from remanence.recall.passages import (
    Quote,
    by_passage,
    distinctive_words,
    merge_quotes,
    near_quotes,
    outstanding,
    question_of,
    quotes,
)
from remanence.types import ConversationRef, Fact, Hit, Owner, RecallFilter

MIN_POOL = 20
POOL_FACTOR = 4
QUOTED_POOL = 250
"""Maximum number of messages whose passages are compared for a turn.

It is large because in whole messages a few common words outweigh a rare name.
"""

NEAR_POOL = 100
"""Maximum number of messages whose distances are compared for a turn."""

COMPARED_FACTS = 1_000
"""Maximum number of a user's facts, the newest ones, whose topics are compared with a query's."""

MIN_COMMON_TOPIC = 0.03
"""Probability of a common topic from which a fact is found by it.

A fifth of the facts that have nothing to do with a question reach it. It was chosen on 120 questions.
"""

SURELY_COMMON_TOPIC, QUOTED_ABOUT = 0.3, 3
"""Probability of it from which a fact is quoted for a turn, and the maximum number of such facts."""

MAX_QUERY = 10_000
"""Characters of a query that are read, half of them from either end, where the question is."""

LONG_TEXTS = 20_000
"""Characters from which hits are scanned in a thread, off the event loop.

The query counts once per hit, as its words are matched against each.
"""

_Found = TypeVar("_Found")
_QueryVector: TypeAlias = tuple[str, Sequence[float]]
"""The name of an embedder, and its vector of a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Searches by words, and by meaning if there is an embedder. Stateless."""

    store: Store
    embedder: Embedder | None
    policy: Policy
    fact_vectors: FactVectors | None = None

    async def search(
        self,
        of: ConversationRef | Owner,
        owner: Owner | None,
        query: str,
        *,
        limit: int,
        only: RecallFilter,
        source: str | None = None,
        shown: Container[int] = (),
    ) -> tuple[Hit, ...]:
        """Return the best hits with snippets, from one conversation or all of a user's.

        Facts are the owner's, limited to *source* if it is set. Hits whose messages are all *shown*
        are left out.
        """
        if limit < 1 or not query.strip():
            return ()
        query = both_ends(query, MAX_QUERY)
        pool = max(MIN_POOL, POOL_FACTOR * limit)
        meaning = await self._query_vector(query)
        rankings: list[Sequence[Hit]] = []
        if only.kind != "fact":
            worded = await self.store.search(of, query, limit=QUOTED_POOL, only=only)
            question = distinctive_words(question_of(query))
            rankings.append(await _scan(lambda: by_passage(worded, question), worded, query))
            if meaning is not None:
                rankings.append(await self.store.nearest(of, *meaning, limit=pool, only=only))
        if owner is not None and only.kind in (None, "fact"):
            for facts in await self._fact_rankings(owner, query, meaning, pool):
                hits = [fact_hit(fact) for fact in facts if source in (None, fact.conversation)]
                rankings.append(tuple(hit for hit in hits if only.allows(hit)))
        here = of.id if isinstance(of, ConversationRef) else None
        found = (hit for hit in fuse(rankings) if not _is_shown(hit, here, shown))
        best = tuple(itertools.islice(_without_copies(found), limit))
        return await _scan(
            lambda: tuple(replace(hit, snippet=snippet(hit.text, query)) for hit in best),
            best,
            query,
        )

    async def quotes(
        self, ref: ConversationRef | None, owner: Owner | None, turn: str
    ) -> tuple[Quote, ...]:
        """Return passages from messages of *ref*, and facts of *owner*, that answer the turn.

        A turn without distinctive words, such as "Thanks!", asks for nothing: texts near its vector
        would be arbitrary ones.
        """
        question = question_of(both_ends(turn, MAX_QUERY))
        query = distinctive_words(question)
        if not query:
            return ()
        meaning = await self._query_vector(question)
        worded: list[Hit] = []
        near: list[Sequence[Quote]] = []
        about: tuple[Fact, ...] = ()
        if ref is not None:
            only = RecallFilter(kind="message")
            worded += await self.store.search(ref, query, limit=QUOTED_POOL, only=only)
            if meaning is not None:
                hits = await self.store.nearest(ref, *meaning, limit=NEAR_POOL, only=only)
                near.append(near_quotes(outstanding(hits)[:MIN_POOL], query))
        if owner is not None:
            worded += map(fact_hit, await self.store.search_facts(owner, query, limit=MIN_POOL))
            by_meaning = await self._near_facts(owner, meaning, MIN_POOL)
            near += [near_quotes(map(fact_hit, facts), query) for facts in by_meaning]
            about = await self._facts_about(owner, question, SURELY_COMMON_TOPIC)
        found = await _scan(lambda: quotes(worded, query), worded, query)
        best = merge_quotes([found, *near])
        return merge_quotes([(*best, *near_quotes(map(fact_hit, about[:QUOTED_ABOUT]), query))])

    async def facts(self, owner: Owner, query: str, limit: int) -> tuple[Fact, ...]:
        """Return the owner's best matching facts."""
        if limit < 1 or not query.strip():
            return ()
        query = both_ends(query, MAX_QUERY)
        pool = max(MIN_POOL, POOL_FACTOR * limit)
        rankings = await self._fact_rankings(owner, query, await self._query_vector(query), pool)
        best = by_reciprocal_rank(rankings, lambda fact: fact.id)
        return tuple(fact for fact, _ in best[:limit])

    async def _fact_rankings(
        self, owner: Owner, query: str, meaning: _QueryVector | None, limit: int
    ) -> list[tuple[Fact, ...]]:
        """Return rankings of the owner's facts: by words and topic, and by vectors if there are any."""
        worded = await self.store.search_facts(owner, query, limit=limit)
        about = await self._facts_about(owner, query, MIN_COMMON_TOPIC)
        ranked = await _scan(lambda: _with_topic(worded, about, query), worded, query)
        return [ranked[:limit], *await self._near_facts(owner, meaning, limit)]

    async def _facts_about(self, owner: Owner, query: str, least: float) -> tuple[Fact, ...]:
        """Return the owner's newest facts that share a query's topic with some probability, best first."""
        facts = await self.store.facts(owner, limit=COMPARED_FACTS)
        scores = await _scan(
            lambda: [common_topic(query, fact.summary) for fact in facts], facts, query
        )
        found = [each for each in zip(scores, facts, strict=True) if each[0] >= least]
        return tuple(fact for _, fact in sorted(found, key=lambda each: -each[0]))

    async def _near_facts(
        self, owner: Owner, meaning: _QueryVector | None, limit: int
    ) -> list[tuple[Fact, ...]]:
        """Return a ranking of the owner's facts by vectors; none without a vector of the query."""
        if meaning is None:
            return []
        if self.fact_vectors is None:
            return [await self.store.nearest_facts(owner, *meaning, limit=limit)]
        nearest = self.fact_vectors.nearest(owner, *meaning, limit=limit)
        ids = await self._in_time(nearest, type(self.fact_vectors).__name__)
        facts = [await self.store.fact(owner, fact_id) for fact_id in ids or ()]
        return [tuple(fact for fact in facts if fact and fact.valid_to is None)]

    async def _query_vector(self, query: str) -> _QueryVector | None:
        """Return the query's vector; None without an embedder or if it fails or times out."""
        if self.embedder is None:
            return None
        vectors = await self._in_time(embed(self.embedder, [query]), EMBEDDER)
        return None if vectors is None else (self.embedder.name, vectors[0])

    async def _in_time(self, call: Awaitable[_Found], part: str) -> _Found | None:
        """Return the result of a call to *part*; None if it fails or times out: words still find something."""
        try:
            async with asyncio.timeout(self.policy.recall_timeout_seconds):
                with guard_cancellation():
                    return await call
        except Exception as error:  # noqa: BLE001 - as above
            telemetry.embedding_failed(part, type(error).__name__, str(error), 1)
            return None


def _with_topic(worded: Sequence[Fact], about: Iterable[Fact], query: str) -> tuple[Fact, ...]:
    """Return facts found by words, with those that are *about* the topic of the query.

    Those with what is distinctive in it come first, and those with other words of it last. An
    answer may share no word with its question: "Where do I live?", "We moved to Porto in May".
    """
    words = distinctive_words(question_of(query))
    quoted = quotes([fact_hit(fact) for fact in worded], words)
    by_id = {fact.id: fact for fact in worded}
    found = (*(by_id[quote.hit.source_id] for quote in quoted), *about, *worded)
    return tuple({fact.id: fact for fact in found}.values())


def _is_shown(hit: Hit, conversation: str | None, shown: Container[int]) -> bool:
    """Return whether all source messages of a hit are shown."""
    if conversation is None or hit.conversation != conversation:
        return False
    return all(seq in shown for seq in range(hit.first_seq, hit.last_seq + 1))


def _without_copies(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Leave out messages that a fork has in common with the conversation of an earlier hit."""
    seen: set[tuple[object, ...]] = set()
    for hit in hits:
        copied = (hit.source_id, hit.first_seq, hit.at, hit.role, hit.text)
        if hit.kind != "message" or copied not in seen:
            yield hit
        seen.add(copied)


async def _scan(
    look: Callable[[], _Found], found: Sequence[Hit] | Sequence[Fact], query: str
) -> _Found:
    """Run *look* over the texts of hits or facts, in a thread if they are long."""
    texts = (one.summary if isinstance(one, Fact) else one.text for one in found)
    if sum(len(text) + len(query) for text in texts) <= LONG_TEXTS:
        return look()
    return await asyncio.to_thread(look)
