"""Finding what was said: words and vectors over notes, messages and facts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from remanence import telemetry
from remanence.engine.embedding import check_vectors
from remanence.observing.policy import Policy
from remanence.observing.recall import fact_hit, fused, with_snippets
from remanence.protocols import Embedder, FactVectors, Store
from remanence.types import ConversationRef, Fact, Hit, Owner, RecallFilter

LEAST_POOL = 20
POOL_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalling:
    """Searches by words, and by meaning where there is an embedder. Holds no state of its own."""

    store: Store
    embedder: Embedder | None
    policy: Policy
    fact_vectors: FactVectors | None = None

    async def search(
        self,
        ref: ConversationRef,
        owner: Owner | None,
        query: str,
        *,
        limit: int,
        only: RecallFilter,
        source: str | None = None,
    ) -> tuple[Hit, ...]:
        """The best hits, with snippets; facts are the owner's, of conversation *source* if named."""
        if limit < 1 or not query.strip():
            return ()
        pool = max(LEAST_POOL, POOL_FACTOR * limit)
        vector = await self._vector(query)
        rankings: list[Sequence[Hit]] = [await self.store.search(ref, query, limit=pool, only=only)]
        if vector is not None and self.embedder is not None:
            name = self.embedder.name
            rankings.append(await self.store.nearest(ref, name, vector, limit=pool, only=only))
        if owner is not None:
            for facts in await self._fact_rankings(owner, query, vector, pool):
                hits = [fact_hit(fact) for fact in facts if source in (None, fact.conversation)]
                rankings.append([hit for hit in hits if only.allows(hit)])
        return with_snippets(fused(rankings)[:limit], query)

    async def facts(self, owner: Owner, query: str, limit: int) -> tuple[Fact, ...]:
        """The owner's facts that match best."""
        if limit < 1 or not query.strip():
            return ()
        vector = await self._vector(query)
        pool = max(LEAST_POOL, POOL_FACTOR * limit)
        rankings = await self._fact_rankings(owner, query, vector, pool)
        by_id = {fact.id: fact for ranking in rankings for fact in ranking}
        best = fused([fact_hit(fact) for fact in ranking] for ranking in rankings)
        return tuple(by_id[hit.source_id] for hit in best[:limit])

    async def _fact_rankings(
        self, owner: Owner, query: str, vector: Sequence[float] | None, limit: int
    ) -> list[tuple[Fact, ...]]:
        rankings = [await self.store.search_facts(owner, query, limit=limit)]
        if vector is not None and self.embedder is not None:
            name = self.embedder.name
            if self.fact_vectors is None:
                rankings.append(await self.store.nearest_facts(owner, name, vector, limit=limit))
            else:
                rankings.append(await self._near(self.fact_vectors, owner, vector, limit))
        return rankings

    async def _near(
        self, vectors: FactVectors, owner: Owner, vector: Sequence[float], limit: int
    ) -> tuple[Fact, ...]:
        """The nearest facts that hold; none while the vectors cannot be reached."""
        assert self.embedder is not None
        try:
            async with asyncio.timeout(self.policy.recall_timeout_seconds):
                ids = await vectors.nearest(owner, self.embedder.name, vector, limit=limit)
        except Exception as error:  # noqa: BLE001 - words alone still find something
            telemetry.embedding_failed(type(error).__name__, str(error), 1)
            return ()
        found = [await self.store.fact(owner, fact_id) for fact_id in ids]
        return tuple(fact for fact in found if fact is not None and fact.valid_to is None)

    async def _vector(self, query: str) -> Sequence[float] | None:
        """The query's vector; None without an embedder, or where it fails or takes too long."""
        if self.embedder is None:
            return None
        try:
            async with asyncio.timeout(self.policy.recall_timeout_seconds):
                vectors = await self.embedder.embed([query])
            return check_vectors(self.embedder, [query], vectors)[0]
        except Exception as error:  # noqa: BLE001 - words alone still find something
            telemetry.embedding_failed(type(error).__name__, str(error), 1)
            return None
