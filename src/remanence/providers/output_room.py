"""Room in the output limit for models that think before they answer."""

from dataclasses import replace

from remanence.errors import ModelError
from remanence.observers.llm.request import without_thoughts
from remanence.protocols import Model, ModelAnswer, ModelRequest


class OutputRoomModel:
    """Calls a model again with its largest output limit if it reaches a limit before any text.

    Providers count thoughts towards the limit, so later calls have the largest one at once.
    """

    def __init__(self, model: Model, *, max_output_tokens: int) -> None:
        self.name = model.name
        self._model = model
        self._max_output_tokens = max_output_tokens
        self._thinks = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if request.max_output_tokens >= self._max_output_tokens:
            return await self._model.complete(request)
        roomy = replace(request, max_output_tokens=self._max_output_tokens)
        if self._thinks:
            return await self._model.complete(roomy)
        try:
            answer = await self._model.complete(request)
        except ModelError as error:
            if error.reason != "cut_off":
                raise
        else:
            if answer.complete or without_thoughts(answer.text):
                return answer
        self._thinks = True
        return await self._model.complete(replace(roomy, is_follow_up=True))
