"""Chat models: requests, adapters for each kind of model, and opening by name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from remanence.arguments import require_async_methods
from remanence.clock import Clock
from remanence.context.context import Context
from remanence.errors import ModelError
from remanence.protocols import Model, ModelAnswer, ModelRequest
from remanence.providers import ModelFunction, ModelOptions, open_model, open_provider_model
from remanence.providers.fallback import FallbackModel
from remanence.providers.function import FunctionModel
from remanence.providers.layer import Layer, Pieces, pieces_of
from remanence.providers.prompts import cache_key, render_context
from remanence.providers.requests import ProviderAnswer, ProviderRequest
from remanence.providers.spec import first_provider, parse_spec, split_names
from remanence.types import ConversationRef, Purpose, TextPart, Tool

if TYPE_CHECKING:
    from remanence.providers.provider_model import ProviderModel

OUTPUT_TOKENS: Final = 8_192

_FRAME: Final = "The conversation so far:\n\n{turns}\n\nWrite the assistant's next message."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request to a model: a context, and the tools that the model may call.

    With `conclude`, the model must answer without calling a tool.
    """

    context: Context
    tools: tuple[Tool, ...]
    conclude: bool
    conversation: ConversationRef
    user: str | None
    purpose: Purpose = "chat"


ChatAnswer: TypeAlias = ProviderAnswer


@runtime_checkable
class ChatModel(Protocol):
    """A model that takes a whole context. Called concurrently for different conversations.

    Raises:
        ModelError: the call failed; its text never contains a key.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, request: ChatRequest) -> ChatAnswer: ...

    def stream(self, request: ChatRequest) -> Pieces[ChatAnswer]:
        """Yield the pieces of the answer's text as they arrive, then the answer.

        A usage in between counts if the stream is closed at that point.
        """
        ...


class ChatLayer(Layer[ChatRequest, ChatAnswer]):
    """A layer that implements `ChatModel`."""

    def stream(self, request: ChatRequest) -> Pieces[ChatAnswer]:
        return self.pieces(request, streaming=True)


class ChatChain(ChatLayer, FallbackModel[ChatRequest, ChatAnswer]):
    """A fallback chain of chat models."""


class ContextModel(ChatLayer):
    """Calls a provider's model with the context block by block, and with tools."""

    def __init__(
        self, model: "ProviderModel", *, attempts: int, max_output_tokens: int | None
    ) -> None:
        self.name = model.name
        self.attempts = attempts
        self._model = model
        self._max_output_tokens = max_output_tokens

    def pieces(self, request: ChatRequest, *, streaming: bool) -> Pieces[ChatAnswer]:
        context = request.context
        rendered = ProviderRequest(
            origin=request,
            prompt=render_context(context, self._model.form, self._model.spec),
            max_output_tokens=self._max_output_tokens,
            estimate=lambda: context.stats.context_tokens,
            tools=request.tools,
            conclude=request.conclude,
            cache_key=cache_key(request.conversation),
        )
        return self._model.pieces(rendered, streaming=streaming)


class PromptedModel(ChatLayer):
    """Calls a model that accepts only text, without tools.

    A stream yields the answer in one piece, or in the pieces of an async generator.
    """

    def __init__(self, model: Model, *, max_output_tokens: int | None) -> None:
        self.name = model.name
        self._model = model
        self._max_output_tokens = max_output_tokens or OUTPUT_TOKENS

    async def pieces(self, request: ChatRequest, *, streaming: bool) -> Pieces[ChatAnswer]:
        if request.tools:
            raise ModelError(
                "bad_request",
                f"{self.name} gets the conversation as one text and cannot call tools: use "
                "anthropic:…, openai:… or ollama:…, or a chat without tools",
            )
        turns = replace(request.context, system=()).to_text()
        prompt = ModelRequest(
            stable="\n\n".join(block.text for block in request.context.system),
            prompt=_FRAME.format(turns=turns),
            max_output_tokens=self._max_output_tokens,
            purpose="chat",
            conversation=request.conversation,
            user=request.user,
        )
        in_pieces = streaming and isinstance(self._model, FunctionModel)
        async with pieces_of(self._model, prompt, streaming=in_pieces) as pieces:
            async for piece in pieces:
                if not isinstance(piece, ModelAnswer):
                    yield piece
                    continue
                if streaming and not in_pieces:
                    yield piece.text
                content = (TextPart(text=piece.text),)
                yield ChatAnswer(content=content, complete=piece.complete, usage=piece.usage)


ChatSource: TypeAlias = str | ChatModel | Model | ModelFunction | Sequence["ChatSource"]


def calls_tools(*names: str) -> bool:
    """Return whether all of these models support tools in a chat.

    Raises:
        ModelError: `unknown_model`: a name is not valid.
    """
    return all(parse_spec(link).row.takes_context for name in names for link in split_names(name))


def open_chat_model(
    source: ChatSource,
    *,
    clock: Clock,
    options: ModelOptions | None = None,
    max_output_tokens: int | None = None,
) -> ChatModel:
    """Open a model for a chat.

    *source* is as for `open_model`, or a `ChatModel`, which is returned unchanged. Anthropic, OpenAI,
    Ollama and OpenAI-compatible servers get the context block by block; any other model gets it as
    text. *options*, *clock* and errors are those of `open_model`; *max_output_tokens* limits one answer,
    by default to what the provider allows, for Anthropic to 8,192.
    """
    if isinstance(source, ChatModel):
        require_async_methods("model", source, "complete")
        return source
    options = options or ModelOptions()
    if isinstance(source, str) and len(names := split_names(source)) > 1:
        source = names
    if isinstance(source, str):
        spec = replace(parse_spec(source), key_variable=options.key_variable)
        if spec.row.takes_context:
            model = open_provider_model(spec, clock=clock, options=options)
            return ContextModel(
                model, attempts=options.attempts, max_output_tokens=max_output_tokens
            )
    elif isinstance(source, Sequence):
        owner, others = first_provider(source), replace(options, key_variable=None)
        open_link = partial(open_chat_model, clock=clock, max_output_tokens=max_output_tokens)
        links = [
            open_link(link, options=options if first_provider(link) == owner else others)
            for link in source
        ]
        if len(links) == 1:
            return links[0]
        return ChatChain(links, clock=clock, cooldown_seconds=options.cooldown_seconds)
    texts = open_model(source, options=options, clock=clock)
    return PromptedModel(texts, max_output_tokens=max_output_tokens)
