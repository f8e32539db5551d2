"""The newest prompt of each conversation, for observers that continue it."""

from typing import Final

from remanence.protocols import LivePrompt
from remanence.recent import Recent
from remanence.types import ConversationRef, MemoryState

MAX_PROMPTS: Final = 256


class LivePrompts:
    """Caches the newest prompts of this process."""

    def __init__(self) -> None:
        self._prompts: Recent[ConversationRef, tuple[int, int, LivePrompt]] = Recent(MAX_PROMPTS)

    def keep(self, state: MemoryState, prompt: LivePrompt) -> None:
        """Store the newest prompt of a conversation, made from *state*."""
        self._prompts[state.ref] = state.key, state.erasures, prompt

    def newest(self, state: MemoryState) -> LivePrompt | None:
        """Return the newest prompt, if it is cached and nothing was forgotten since.

        If another process deleted the conversation and began a new one, its key differs.
        """
        key, erasures, prompt = self._prompts.get(state.ref, (0, 0, None))
        return prompt if (key, erasures) == (state.key, state.erasures) else None

    def forget(self, ref: ConversationRef) -> None:
        """Remove the prompt of a deleted conversation."""
        self._prompts.pop(ref, None)
