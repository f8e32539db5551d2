"""API keys for clients of the service: tokens for the memory of one tenant."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, get_args

from remanence.arguments import require_choices, require_moment, require_name, require_text
from remanence.clock import Clock
from remanence.errors import InvalidArgument
from remanence.protocols import KeyStore
from remanence.types import APIKey, Scope

KEY_PREFIX: Final = "rk_"
"""The beginning of each token."""
_TOKEN: Final = re.compile(KEY_PREFIX + r"([0-9a-f]{12})_[\w-]{43}", re.ASCII)


class NewKey(NamedTuple):
    """A new key, and the token that its client sends, which is shown once and not stored."""

    key: APIKey
    token: str


class APIKeys:
    """The keys of a memory."""

    def __init__(self, store: KeyStore, clock: Clock) -> None:
        """Use `memory.keys`."""
        self._store = store
        self._clock = clock

    async def create(
        self,
        name: str,
        *,
        tenant: str = "default",
        scopes: Sequence[Scope] = ("read", "write"),
        expires_at: datetime | None = None,
    ) -> NewKey:
        """Create a key for a client called *name*.

        Raises:
            InvalidArgument: a scope is unknown, or another argument has a wrong type.
        """
        require_name("key name", name)
        require_name("key tenant", tenant)
        require_moment(expires_at=expires_at)
        require_choices(get_args(Scope), scopes=scopes)
        if not scopes:
            raise InvalidArgument(f"scopes is empty: use some of {', '.join(get_args(Scope))}")
        token = f"{KEY_PREFIX}{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"
        key = APIKey(
            id=id_of_key(token),
            name=name,
            tenant=tenant,
            scopes=tuple(scope for scope in get_args(Scope) if scope in scopes),
            created_at=self._clock.now(),
            expires_at=expires_at,
            digest=_digest(token),
        )
        await self._store.save_key(key)
        return NewKey(key, token)

    async def verify(self, token: str) -> APIKey | None:
        """Return the key of a token; None if it is unknown, revoked or expired."""
        require_text(token=token)
        found = _TOKEN.fullmatch(token)
        key = await self._store.key(found[1]) if found else None
        if key is None or not hmac.compare_digest(key.digest, _digest(token)):
            return None
        return key if key.is_valid(self._clock.now()) else None

    async def list(self) -> tuple[APIKey, ...]:
        """Return all keys, including revoked and expired ones, oldest first."""
        return await self._store.keys()

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key at once; return false if it does not exist or was already revoked."""
        require_text(key_id=key_id)
        return await self._store.revoke_key(key_id, at=self._clock.now())


def has_key(text: str) -> bool:
    """Return whether a key of this server, valid or not, is anywhere in a text."""
    return _TOKEN.search(text) is not None


def id_of_key(text: str) -> str:
    """Return the id in a token, or in a part of one; any other text is an id already."""
    return text.removeprefix(KEY_PREFIX).partition("_")[0]


def _digest(token: str) -> str:
    """Return the SHA-256 digest; a token has 256 random bits and needs no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()
