"""The last model of each conversation, as far as this process knows."""

from collections import OrderedDict

from remanence.types import ConversationRef

_MAX_CONVERSATIONS = 1_000


class LastModels:
    """The last models of recent conversations. Not thread-safe: use it from one event loop."""

    def __init__(self) -> None:
        self._models: OrderedDict[ConversationRef, str] = OrderedDict()

    def update(self, ref: ConversationRef, model: str | None) -> bool:
        """Remember *model* and return whether it differs from the last one; None is ignored."""
        if model is None:
            return False
        before = self._models.pop(ref, model)
        self._models[ref] = model
        if len(self._models) > _MAX_CONVERSATIONS:
            self._models.popitem(last=False)
        return before != model
