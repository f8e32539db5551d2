"""Several models, tried in order."""

from collections.abc import Sequence

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import Model, ModelAnswer, ModelRequest
from remanence.providers.cooldowns import Cooldowns


class FallbackModel:
    """Asks the first model that is not cooling down after a failure; when it fails, the next.

    Raises:
        ModelError: the error of the last model called; `cooling` if none was called, with
            `retry_after_seconds` until the first is available again.
    """

    def __init__(
        self, models: Sequence[Model], *, clock: Clock, cooldown_seconds: float = 60
    ) -> None:
        if not models:
            raise ValueError("a chain needs at least one model")
        self._models = tuple(models)
        self._cooldowns = Cooldowns(clock=clock, seconds=cooldown_seconds)

    @property
    def name(self) -> str:
        return " > ".join(model.name for model in self._models)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        failure: ModelError | None = None
        for link, model in enumerate(self._models):
            if self._cooldowns.is_cooling(link):
                continue
            try:
                answer = await model.complete(request)
            except ModelError as error:
                failure = error
                self._cooldowns.begin(link, error)
            else:
                self._cooldowns.end(link)
                return answer
        raise failure or self._cooldowns.error(self.name)
