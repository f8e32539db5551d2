"""Settings shared by the observer and the reflector that use a model."""

import copy
from typing import Self

from remanence.observers.llm.limits import check_limits
from remanence.observers.llm.prompt import language_rule
from remanence.policy.policy import request_tokens
from remanence.protocols import Model


class ModelWriter:
    """A model with the language and the limits of its notes."""

    def __init__(
        self,
        model: Model,
        *,
        language: str = "conversation",
        repair: bool = True,
        max_output_tokens: int = 8_192,
        max_input_tokens: int | None = None,
    ) -> None:
        if max_input_tokens is None:
            max_input_tokens = request_tokens(model.name)
        check_limits(max_output_tokens=max_output_tokens, max_input_tokens=max_input_tokens)
        self._model = model
        self._language_rule = language_rule(language)
        self._repair = repair
        self._max_output_tokens = max_output_tokens
        self._max_input_tokens = max_input_tokens

    def asking(self, model: Model) -> Self:
        """Return a copy that asks another model."""
        other = copy.copy(self)
        other._model = model
        return other

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def model(self) -> Model:
        """The model that writes the notes."""
        return self._model
