"""The models of a chat: their protocol, and opening one by name."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, runtime_checkable

from remanence.chat.context_model import ContextModel
from remanence.chat.prompt import PromptedModel
from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import Model, ModelRequest
from remanence.providers import ModelOptions, open_model, open_provider_model
from remanence.providers.fallback import FallbackModel
from remanence.providers.layer import Link, Pieces
from remanence.providers.spec import first_provider, parse_spec, split_names

__all__ = ["ChatAnswer", "ChatModel", "ChatRequest", "ChatSource", "calls_tools", "open_chat_model"]


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

        A usage in between is the usage of the call if the stream is closed there.
        """
        ...


class ChatChain(FallbackModel[ChatRequest, ChatAnswer]):
    """Models of a chat that are tried in order; a `ChatModel` itself."""

    def stream(self, request: ChatRequest) -> Pieces[ChatAnswer]:
        return self.pieces(request, streaming=True)


def attempts_of(model: Link[ChatRequest, ChatAnswer]) -> int:
    """Return the attempts of a model's call; a host's own model does its own retries."""
    attempts: int = getattr(model, "attempts", 1)
    return attempts


ChatSource: TypeAlias = (
    "str | ChatModel | Model | Callable[[ModelRequest], Awaitable[str]] | Sequence[ChatSource]"
)


def calls_tools(*names: str) -> bool:
    """Return whether a chat with each of these models may have tools.

    Raises:
        ModelError: `unknown_model`; a name is not valid.
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

    *source* is a name, as for `open_model`, an async function from a `ModelRequest` to a text, a
    `Model`, a `ChatModel`, which is returned unchanged, or several of these, tried in order.
    Anthropic, OpenAI, Ollama and servers compatible with OpenAI get the context block by block; any
    other model gets it as text.

    Raises:
        ModelError: `unknown_model` or `auth`; the text says what to write or to set.
        MissingExtra: a named model needs `remanence[models]`.
        InvalidArgument: a chain is empty.
    """
    if isinstance(source, ChatModel):
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
        links = [
            open_chat_model(
                link,
                clock=clock,
                options=options if first_provider(link) == owner else others,
                max_output_tokens=max_output_tokens,
            )
            for link in source
        ]
        if len(links) == 1:
            return links[0]
        return ChatChain(links, clock=clock, cooldown_seconds=options.cooldown_seconds)
    elif not callable(source) and not hasattr(source, "complete"):
        raise ModelError(
            "unknown_model",
            f"a {type(source).__name__} is not a model of a chat: pass a name such as "
            "anthropic:claude-haiku-4-5, an async function or a Model",
        )
    texts = open_model(source, options=options, clock=clock)
    return PromptedModel(texts, max_output_tokens=max_output_tokens)
