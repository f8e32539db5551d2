"""API keys for clients of the service."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["read", "write", "erase", "metrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class APIKey:
    """A client's key: the tenant that it gives access to, and its scopes.

    `read` allows contexts, notes and searches, `write` messages and turns, `erase` forgetting,
    deleting and exporting, `metrics` the metrics of the service, which cover all tenants. `digest` is
    the SHA-256 of the token, which is not stored.
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
