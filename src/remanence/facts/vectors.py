"""Vectors of facts in a store of their own, outside of the database."""

from collections.abc import Sequence

from remanence.errors import StoreUnavailable
from remanence.protocols import FactVectors
from remanence.types import Owner


async def forget_vectors(
    vectors: FactVectors | None, owner: Owner, fact_ids: Sequence[str]
) -> None:
    """Erase the vectors of facts, if they are in a store of their own.

    Raises:
        StoreUnavailable: it failed.
    """
    if vectors is None or not fact_ids:
        return
    try:
        await vectors.forget(owner, fact_ids)
    except Exception as error:
        name = type(vectors).__name__
        raise StoreUnavailable(
            f"{name} could not erase vectors of facts ({type(error).__name__}): make it available, "
            "and call again",
            public="vectors of facts cannot be erased",
        ) from error
