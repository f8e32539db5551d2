"""Vectors of facts in Qdrant; the facts themselves stay in the store."""

import asyncio
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from remanence.errors import InvalidArgument, needs_extra
from remanence.types import Owner

with needs_extra("qdrant"):
    from qdrant_client import AsyncQdrantClient, models

_NAMESPACE = uuid.UUID("6f1f2f0e-5b0c-4c8e-9d57-2f6b8d3a7c10")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class QdrantFactVectors:
    """A `FactVectors` over a client that the caller opened and closes.

    Each embedder has its own collection, named after *collection* and the embedder, and created
    with the first vector. If it was deleted, all facts are embedded again.

    Raises:
        InvalidArgument: the client is not an `AsyncQdrantClient`.
    """

    def __init__(self, client: AsyncQdrantClient, *, collection: str = "remanence-facts") -> None:
        if not isinstance(client, AsyncQdrantClient):
            raise InvalidArgument(f"client={client!r:.80} is impossible: use an AsyncQdrantClient")
        self.name = f"qdrant:{collection}"
        self._client = client
        self._collection = collection
        self._known: set[str] = set()
        self._making = asyncio.Lock()  # concurrent first vectors must not create a collection twice

    async def put(self, owner: Owner, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        if not vectors:
            return
        name = self._name(model)
        size = len(next(iter(vectors.values())))
        async with self._making:
            if not await self.holds(model):
                config = models.VectorParams(size=size, distance=models.Distance.COSINE)
                await self._client.create_collection(name, vectors_config=config)
        points = [
            models.PointStruct(
                id=str(uuid.uuid5(_NAMESPACE, "\0".join((*owner, fact_id)))),
                vector=[float(value) for value in vector],
                payload={"tenant": owner.tenant, "user": owner.user, "fact": fact_id},
            )
            for fact_id, vector in vectors.items()
        ]
        with self._checking_again(name):
            await self._client.upsert(name, points=points)

    async def nearest(
        self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
    ) -> tuple[str, ...]:
        name = self._name(model)
        if not await self.holds(model):
            return ()
        with self._checking_again(name):
            response = await self._client.query_points(
                name,
                query=[float(value) for value in vector],
                query_filter=models.Filter(must=[*_conditions(owner)]),
                limit=limit,
                with_payload=True,
            )
        return tuple(str((point.payload or {})["fact"]) for point in response.points)

    async def forget(self, owner: Owner, fact_ids: Sequence[str]) -> None:
        if not fact_ids:
            return
        chosen = models.Filter(
            must=[
                *_conditions(owner),
                models.FieldCondition(key="fact", match=models.MatchAny(any=list(fact_ids))),
            ]
        )
        listed = await self._client.get_collections()
        for collection in listed.collections:
            if collection.name.startswith(f"{self._collection}-"):
                await self._client.delete(
                    collection.name, points_selector=models.FilterSelector(filter=chosen)
                )

    def _name(self, model: str) -> str:
        return f"{self._collection}-{_UNFIT.sub('-', model)}"

    async def holds(self, model: str) -> bool:
        name = self._name(model)
        if name not in self._known and await self._client.collection_exists(name):
            self._known.add(name)
        return name in self._known

    @contextmanager
    def _checking_again(self, name: str) -> Iterator[None]:
        """Look for the collection again after an error, as it may have been deleted."""
        try:
            yield
        except Exception:
            self._known.discard(name)
            raise


def _conditions(owner: Owner) -> list[models.FieldCondition]:
    return [
        models.FieldCondition(key="tenant", match=models.MatchValue(value=owner.tenant)),
        models.FieldCondition(key="user", match=models.MatchValue(value=owner.user)),
    ]
