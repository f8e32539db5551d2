"""Recall: search by words and vectors over notes, messages and facts."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeAlias, TypeVar

from remanence import telemetry
from remanence.background import guard_host_code
from remanence.facts.tags import speaker_of
from remanence.notes.excerpts import both_ends
from remanence.observers.learned.topics import common_topic, topics
from remanence.policy.policy import Policy
from remanence.protocols import Embedder, FactVectors, Store
from remanence.recall.fusion import by_reciprocal_rank, fuse
from remanence.recall.indexer import EMBEDDER, embed
from remanence.recall.passages import (
    Quote,
    by_passage,
    merge_quotes,
    near_quotes,
    outstanding,
    quotes,
)
from remanence.recall.questions import distinctive_words, is_keyword_query, question_of
from remanence.recall.snippets import snippet
from remanence.types import ConversationRef, Fact, FactCondition, Hit, Owner, RecallFilter

MIN_POOL = 20
POOL_FACTOR = 4
QUOTED_POOL = 250
"""Maximum number of messages whose passages are compared for a turn, and for a search of few hits.

It is large because in whole messages a few common words outweigh a rare name.
"""

NEAR_POOL = 100
"""Maximum number of messages whose distances are compared for a turn."""

COMPARED_FACTS = 500
"""Maximum number of facts whose topics are compared with a query's: the newest ones that may be found.

At least as many of the nearest ones in `FactVectors`, which have no filter, are compared with a
condition before a search gives up.
"""

MIN_TOPIC = 0.15
"""Probability that the likeliest topic of a query must have: "What is 2 + 2?" has none."""

MAYBE_ON_TOPIC, SURELY_ON_TOPIC = 0.03, 0.1
"""Probability of a common topic from which a fact is found, and from which it ranks with what words find.

A fifth and a twentieth of the facts that do not answer a question reach them, by `benchmarks/questions.tsv`,
where they were chosen.
"""

QUOTED_ON_TOPIC = 3
"""Maximum number of facts of a turn's topic that are quoted for it."""

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
        by_topic: bool = True,
    ) -> tuple[Hit, ...]:
        """Return the best hits with snippets, from one conversation or all of a user's.

        Facts are the owner's, limited to *source* if it is set. A question also finds those of its
        topic, unless *by_topic* is off. Hits whose messages are all *shown* are left out.
        """
        if limit < 1 or not query.strip():
            return ()
        query = both_ends(query, MAX_QUERY)
        pool = max(MIN_POOL, POOL_FACTOR * limit)
        meaning = await self._query_vector(query)
        rankings: list[Sequence[Hit]] = []
        last: Sequence[Hit] = ()
        if only.kind != "fact":
            words = distinctive_words(query) or query
            worded = await self.store.search(of, words, limit=max(QUOTED_POOL, pool), only=only)
            question = distinctive_words(question_of(query))
            rankings.append(await _scan(lambda: by_passage(worded, question), worded, query))
            if meaning is not None:
                rankings.append(await self.store.nearest(of, *meaning, limit=pool, only=only))
        if owner is not None and only.allows_facts:
            *ranked, unsure = await self._fact_rankings(
                owner, query, meaning, pool, by_topic=by_topic, only=_condition(only, source)
            )
            rankings += ([*map(_fact_hit, facts)] for facts in ranked)
            last = [*map(_fact_hit, unsure)]
        here = of.id if isinstance(of, ConversationRef) else None
        found = (hit for hit in (*fuse(rankings), *last) if not _is_shown(hit, here, shown))
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
        on_topic: Sequence[Fact] = ()
        if ref is not None:
            only = RecallFilter(kind="message")
            worded += await self.store.search(ref, query, limit=QUOTED_POOL, only=only)
            if meaning is not None:
                hits = await self.store.nearest(ref, *meaning, limit=NEAR_POOL, only=only)
                near.append(near_quotes(outstanding(hits)[:MIN_POOL], query))
        if owner is not None:
            by_words, *by_meaning, _ = await self._fact_rankings(
                owner, query, meaning, MIN_POOL, by_topic=False
            )
            worded += map(_fact_hit, by_words)
            near += [near_quotes(map(_fact_hit, facts), query) for facts in by_meaning]
            if not by_words and meaning is None:
                scored = await self._facts_on_topic(owner, question)
                on_topic = [fact for fact, p in scored if p >= SURELY_ON_TOPIC][:QUOTED_ON_TOPIC]
        found = await _scan(lambda: quotes(worded, query), worded, query)
        best = merge_quotes([found, *near])
        return (*best, *near_quotes(map(_fact_hit, on_topic), query))

    async def facts(self, owner: Owner, query: str, limit: int) -> tuple[Fact, ...]:
        """Return the owner's best matching facts."""
        if limit < 1 or not query.strip():
            return ()
        query = both_ends(query, MAX_QUERY)
        pool = max(MIN_POOL, POOL_FACTOR * limit)
        meaning = await self._query_vector(query)
        *ranked, unsure = await self._fact_rankings(owner, query, meaning, pool, by_topic=True)
        best = (fact for fact, _ in by_reciprocal_rank(ranked, lambda fact: fact.id))
        return (*best, *unsure)[:limit]

    async def _fact_rankings(
        self,
        owner: Owner,
        query: str,
        meaning: _QueryVector | None,
        limit: int,
        *,
        by_topic: bool,
        only: FactCondition | None = None,
    ) -> list[Sequence[Fact]]:
        """Return rankings of the owner's facts: by words and topic, by vectors, and a last one behind these.

        The first has those with most of the query's distinctive words, those that surely share its
        topic, and others with a word. The last has others that may share the topic.
        """
        question = question_of(query)
        words = distinctive_words(question)
        by_words = await self.store.search_facts(owner, words or query, limit=limit, only=only)
        hits, known = [_fact_hit(fact) for fact in by_words], {fact.id: fact for fact in by_words}
        quoted = await _scan(lambda: quotes(hits, words), hits, query)
        scored = await self._facts_on_topic(owner, question, only) if by_topic else []
        covering = [known[quote.hit.source_id] for quote in quoted]
        sure = [fact for fact, p in scored if p >= SURELY_ON_TOPIC]
        first = tuple({fact.id: fact for fact in (*covering, *sure, *by_words)}.values())
        rankings = [first[:limit], *await self._near_facts(owner, meaning, limit, only)]
        ranked = {fact.id for facts in rankings for fact in facts}
        return [*rankings, [fact for fact, _ in scored if fact.id not in ranked]]

    async def _near_facts(
        self,
        owner: Owner,
        meaning: _QueryVector | None,
        limit: int,
        only: FactCondition | None,
    ) -> list[Sequence[Fact]]:
        """Return a ranking of the owner's facts by vectors; none without a vector of the query."""
        if meaning is None:
            return []
        if self.fact_vectors is None:
            return [await self.store.nearest_facts(owner, *meaning, limit=limit, only=only)]
        facts: list[Fact] = []
        wanted, read = limit, 0
        while len(facts) < limit and read < COMPARED_FACTS:
            nearest = self.fact_vectors.nearest(owner, *meaning, limit=wanted)
            ids = await self._in_time(nearest, type(self.fact_vectors).__name__) or ()
            found = [await self.store.fact(owner, fact_id) for fact_id in ids[read:]]
            current = [fact for fact in found if fact and fact.valid_to is None]
            facts += filter(only, current)
            if len(ids) < wanted:  # there are no more
                break
            wanted, read = wanted * POOL_FACTOR, len(ids)
        return [facts[:limit]]

    async def _facts_on_topic(
        self, owner: Owner, question: str, only: FactCondition | None = None
    ) -> list[tuple[Fact, float]]:
        """Return the owner's facts that may share a question's topic, the likeliest first, with how likely.

        An answer may share no word with its question: "Where do I live?", "We moved to Porto in May".
        """
        if is_keyword_query(question):
            return []
        likely = await asyncio.to_thread(topics, question)  # the first call loads the weights
        if max(likely) < MIN_TOPIC:
            return []
        known = await self.store.facts(owner, limit=None if only else COMPARED_FACTS)
        facts = [*filter(only, known)][:COMPARED_FACTS]
        scored = await asyncio.to_thread(
            lambda: [(fact, common_topic(question, fact.summary)) for fact in facts]
        )
        found = [each for each in scored if each[1] >= MAYBE_ON_TOPIC]
        return sorted(found, key=itemgetter(1), reverse=True)

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
                with guard_host_code():
                    return await call
        except Exception as error:  # noqa: BLE001 - as above
            telemetry.embedding_failed(part, type(error).__name__, str(error), 1)
            return None


def _condition(only: RecallFilter, source: str | None) -> FactCondition | None:
    """Return the condition on facts of a filter and a conversation *source*; None if all meet it."""
    if source is None and only.since is None and only.until is None:
        return None
    return lambda fact: source in (None, fact.conversation) and only.allows(_fact_hit(fact))


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


async def _scan(look: Callable[[], _Found], hits: Sequence[Hit], query: str) -> _Found:
    """Run *look* over the texts of *hits*, in a thread if they are long."""
    if sum(len(hit.text) + len(query) for hit in hits) <= LONG_TEXTS:
        return look()
    return await asyncio.to_thread(look)


def _fact_hit(fact: Fact) -> Hit:
    """Return a fact as a hit."""
    return Hit(
        kind="fact",
        text=fact.summary,
        first_seq=fact.first_seq or 0,
        last_seq=fact.last_seq or 0,
        at=fact.valid_from,
        score=0.0,
        source_id=fact.id,
        conversation=fact.conversation,
        speaker=speaker_of(fact) or None,
    )
