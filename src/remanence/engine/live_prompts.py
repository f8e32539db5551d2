"""The newest prompt of each conversation, for observers that go on from it."""

from collections import OrderedDict
from typing import Final

from remanence.protocols import LivePrompt
from remanence.types import ConversationRef

MAX_PROMPTS: Final = 256


class LivePrompts:
    """Caches the newest prompts of this process; the least recently used is evicted first."""

    def __init__(self) -> None:
        self._prompts: OrderedDict[ConversationRef, LivePrompt] = OrderedDict()

    def keep(self, ref: ConversationRef, prompt: LivePrompt) -> None:
        """Store the newest prompt of a conversation."""
        self._prompts[ref] = prompt
        self._prompts.move_to_end(ref)
        if len(self._prompts) > MAX_PROMPTS:
            self._prompts.popitem(last=False)

    def newest(self, ref: ConversationRef) -> LivePrompt | None:
        """Return the newest prompt of a conversation, if it is cached."""
        return self._prompts.get(ref)

    def forget(self, ref: ConversationRef) -> None:
        """Remove the prompt of a deleted conversation."""
        self._prompts.pop(ref, None)
