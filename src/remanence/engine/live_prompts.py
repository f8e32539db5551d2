"""The newest prompt of each conversation, for observers that go on from it."""

from collections import OrderedDict
from typing import Final

from remanence.protocols import LivePrompt
from remanence.types import ConversationRef

MOST_PROMPTS: Final = 256


class LivePrompts:
    """Holds the newest prompts of this process; the one not used for longest goes first."""

    def __init__(self) -> None:
        self._prompts: OrderedDict[ConversationRef, LivePrompt] = OrderedDict()

    def keep(self, ref: ConversationRef, prompt: LivePrompt) -> None:
        """Note the newest prompt of a conversation."""
        self._prompts[ref] = prompt
        self._prompts.move_to_end(ref)
        if len(self._prompts) > MOST_PROMPTS:
            self._prompts.popitem(last=False)

    def newest(self, ref: ConversationRef) -> LivePrompt | None:
        """The newest prompt of a conversation, if it is held."""
        return self._prompts.get(ref)

    def forget(self, ref: ConversationRef) -> None:
        """Let go of what a deleted conversation was shown."""
        self._prompts.pop(ref, None)
