"""Keys of clients of the service."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["read", "write", "erase", "metrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class APIKey:
    """A key of a client: the tenant whose memory it opens, and what it may do there.

    `read` is for contexts, notes and searches, `write` for messages and turns, `erase` for
    forgetting, deleting and exporting, `metrics` for the numbers of the service, which are those of
    all tenants. `digest` is the SHA-256 of the token, which is not kept.
    """

    id: str
    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    digest: str = field(repr=False)

    def is_valid(self, now: datetime) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
