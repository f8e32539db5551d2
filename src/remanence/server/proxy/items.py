"""Items of the Responses API that a client refers to by id, as the provider stores them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from remanence.memory import Memory
from remanence.recent import Recent
from remanence.server.proxy.api import ProxiedAPI
from remanence.server.proxy.branches import Branch, read_branches
from remanence.server.proxy.naming import Name
from remanence.types import ConversationRef, TapeVersion
from remanence.wire.json_value import JsonObject

_MAX_TAPES: Final = 200
_PAGE: Final = 500


@dataclass(slots=True)
class _TapeItems:
    """The items of a tape up to a seq, by id; another *version* has others, as after an erasure."""

    version: TapeVersion
    last_seq: int = 0
    items: dict[str, JsonObject] = field(default_factory=dict)


class Items:
    """Finds the items of conversations on their tapes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._tapes: Recent[ConversationRef, _TapeItems] = Recent(_MAX_TAPES)

    async def read(self, name: Name, api: ProxiedAPI) -> Mapping[str, JsonObject]:
        """Return the items of all tapes of a conversation, by id."""
        items: dict[str, JsonObject] = {}
        for branch in (await read_branches(self._memory, name)).tapes:
            items |= (await self._read_tape(branch, api)).items
        return items

    async def _read_tape(self, branch: Branch, api: ProxiedAPI) -> _TapeItems:
        """Return the items of a tape; only its new messages are read."""
        tape, state = branch
        version = state.tape_version
        known = self._tapes.get(tape.ref)
        if known is None or known.version != version:
            known = _TapeItems(version)
        while new := await tape.messages(after=known.last_seq, limit=_PAGE):
            for one in chain.from_iterable(api.render(message) for message in new):
                if isinstance(id_ := one.get("id"), str):
                    known.items[id_] = one
            known.last_seq = new[-1].seq
        self._tapes[tape.ref] = known
        return known
