"""An adapter for a provider's model: the context block by block, with tools."""

from typing import TYPE_CHECKING

from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.providers.layer import Pieces
from remanence.providers.prompts import cache_key, render_context
from remanence.providers.requests import ProviderRequest

if TYPE_CHECKING:
    from remanence.providers.provider_model import ProviderModel


class ContextModel:
    """Renders the context of a chat for a provider's model."""

    def __init__(
        self, model: "ProviderModel", *, attempts: int, max_output_tokens: int | None
    ) -> None:
        self.attempts = attempts
        self._model = model
        self._max_output_tokens = max_output_tokens

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        return await self._model.complete(self._render(request))

    def stream(self, request: ChatRequest) -> Pieces[ChatAnswer]:
        return self._model.stream(self._render(request))

    def _render(self, request: ChatRequest) -> ProviderRequest:
        context = request.context
        return ProviderRequest(
            prompt=render_context(context, self._model.form, self._model.spec),
            max_output_tokens=self._max_output_tokens,
            purpose=request.purpose,
            conversation=request.conversation,
            user=request.user,
            estimate=lambda: context.stats.context_tokens,
            tools=request.tools,
            conclude=request.conclude,
            cache_key=cache_key(request.conversation),
        )
