"""An adapter for a model that takes text: the context becomes a system text and a prompt."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Final

from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.errors import ModelError
from remanence.protocols import Model, ModelRequest
from remanence.types import TextPart

OUTPUT_TOKENS: Final = 8_192

_FRAME: Final = "The conversation so far:\n\n{turns}\n\nWrite the assistant's next message."


class PromptedModel:
    """Calls a `Model`, without tools; a stream has its answer in one piece."""

    def __init__(self, model: Model, *, max_output_tokens: int | None) -> None:
        self._model = model
        self._max_output_tokens = max_output_tokens or OUTPUT_TOKENS

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        if request.tools:
            raise ModelError(
                "bad_request",
                f"{self.name} gets the conversation as one text and can call no tools: use "
                "anthropic:…, openai:… or ollama:…, or a chat without tools",
            )
        turns = replace(request.context, system=()).to_text()
        answer = await self._model.complete(
            ModelRequest(
                stable="\n\n".join(block.text for block in request.context.system),
                prompt=_FRAME.format(turns=turns),
                max_output_tokens=self._max_output_tokens,
                purpose="chat",
                conversation=request.conversation,
                user=request.user,
            )
        )
        content = (TextPart(text=answer.text),)
        return ChatAnswer(content=content, complete=answer.complete, usage=answer.usage)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        answer = await self.complete(request)
        for part in answer.content:
            if isinstance(part, TextPart):
                yield part.text
        yield answer
