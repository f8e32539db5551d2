"""API keys: stored unchanged, revoked once."""

from dataclasses import replace
from datetime import timedelta

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import at
from remanence.types import APIKey

KEY = APIKey(
    id="k1",
    name="app",
    tenant="acme",
    scopes=("read", "write"),
    created_at=at(0),
    expires_at=at(0) + timedelta(days=1),
    digest="d" * 64,
)


class APIKeyContract(Handles):
    """`save_key`, `key`, `keys` and `revoke_key`."""

    async def test_a_key_is_kept_as_it_was(self, store: Store, other: Store) -> None:
        later = replace(KEY, id="k2", created_at=at(1), expires_at=None)
        await store.save_key(later)
        await store.save_key(KEY)

        assert await other.key("k1") == KEY
        assert await other.keys() == (KEY, later)
        assert await other.key("k3") is None

    async def test_a_key_is_revoked_once(self, store: Store, other: Store) -> None:
        await store.save_key(KEY)

        assert await store.revoke_key("k1", at=at(5))
        assert not await other.revoke_key("k1", at=at(6))
        assert not await other.revoke_key("k3", at=at(6))
        assert await other.key("k1") == replace(KEY, revoked_at=at(5))
