"""Which model each conversation was last asked with, as far as this process knows."""

from collections import OrderedDict

from remanence.types import ConversationRef

_MOST = 1_000


class AskedModels:
    """The models of the latest conversations. For one event loop."""

    def __init__(self) -> None:
        self._models: OrderedDict[ConversationRef, str] = OrderedDict()

    def update(self, ref: ConversationRef, model: str | None) -> bool:
        """Whether *model* is another than before; it is the one from now on. None is not known."""
        if model is None:
            return False
        before = self._models.pop(ref, model)
        self._models[ref] = model
        if len(self._models) > _MOST:
            self._models.popitem(last=False)
        return before != model
