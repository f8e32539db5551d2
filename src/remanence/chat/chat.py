"""`Chat`: turns of a conversation with a model."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from remanence import telemetry
from remanence.arguments import require_count, require_name, require_text, require_unicode
from remanence.background import finish, part_of, start_beside
from remanence.chat.events import (
    ChatEvent,
    Done,
    Reply,
    TextDelta,
    ToolCalled,
    ToolReturned,
    make_reply,
)
from remanence.chat.models import ChatAnswer, ChatChain, ChatRequest, ChatSource, open_chat_model
from remanence.chat.questions import (
    ASK_AGAIN,
    Question,
    answer_to,
    broken_off,
    is_final,
    newest_question,
)
from remanence.chat.tool_calls import refuse_call, run_tool
from remanence.context.context import Context
from remanence.conversation import Conversation, require_conversation, runtime_of
from remanence.errors import DuplicateMessage, InvalidArgument, InvalidMessage, ModelError
from remanence.providers import ModelOptions
from remanence.providers.layer import Link, pieces_of
from remanence.providers.meter import MeteredModel
from remanence.providers.retry import RetryingModel
from remanence.providers.shared_limit import PauseReport, SharedLimit
from remanence.tokens import count_tokens
from remanence.types import Message, Part, TextPart, Tool, ToolCallPart, Usage
from remanence.types.usage import ANSWERED
from remanence.wire.boundaries import is_settled
from remanence.wire.message_rules import split_piece, storable

FIRST_WAIT_SECONDS = 0.5
MAX_WAIT_SECONDS = 4.0
"""If the provider asks for a longer pause, its error is raised, as a person is waiting."""

ROUNDS = 10


class Chat:
    """Talks to a model with a conversation's memory attached, one turn at a time.

    A turn appends the user's message to the tape, calls the model with the conversation's context,
    and appends its answer, with the tool calls and results in between; each is durable before the
    next step. Each model call gets a new context, with passages of earlier messages that are
    relevant to the user's message (`Policy.recall_each_turn`).

    When a call fails, the user's message and the finished rounds stay on the tape, but nothing of
    the failed answer, even if its stream failed in the middle. `send()` or `stream()` without a text
    then continues from there; so does the same text again, which is not appended twice unless it
    comes under another name. When a stream is closed early, the partial answer is stored with
    `BROKEN_OFF` at its end, and the question counts as unanswered.

    A message with an `id` is asked only once: sent again, it gets the answer on the tape. If that
    was broken off and the conversation went on since, the message is refused.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        model: ChatSource,
        system: str = "",
        tools: Sequence[Tool] = (),
        identity: str = "",
        channel: str | None = None,
        options: ModelOptions | None = None,
        max_output_tokens: int | None = None,
        max_rounds: int = ROUNDS,
    ) -> None:
        """Open *model*, without calling it yet.

        The first chat with a named model imports its provider's package, which takes seconds. In a
        running server make it in a thread: `await asyncio.to_thread(Chat, conversation, model=...)`.

        Args:
            conversation: the conversation that the model remembers.
            model: a name such as `anthropic:claude-haiku-4-5`, `openai:gpt-5-mini`, `google:…`,
                `ollama:…` or `openai:my-model@http://host/v1`, an async function from a
                `ModelRequest` to a text, a `ChatModel`, or a list of these, tried in order.
            system: the base system prompt.
            tools: the tools that the model may call.
            identity: a text before the system prompt, which some kinds of access require.
            channel: the channel that the user writes from.
            options: timeout and attempts of a model call.
            max_output_tokens: the maximum of one answer, by default the provider's limit, for
                Anthropic 8,192.
            max_rounds: the maximum number of model calls per turn; the last may not call tools.

        Raises:
            ModelError: `unknown_model` or `auth`; the text names the remedy.
            MissingExtra: a named model needs the extra `models`.
            InvalidArgument: an argument has a wrong type, such as a tool that is a dict, two tools
                have one name, or a text is not Unicode (NUL, lone surrogates).
        """
        require_conversation(conversation)
        require_text(system=system, identity=identity)
        require_text(channel=channel, optional=True)
        require_unicode(system=system, identity=identity, channel=channel)
        require_count(max_rounds=max_rounds)
        if max_rounds < 1:
            raise InvalidArgument(f"max_rounds={max_rounds} is impossible: use 1 or more")
        _require_tools(tools)
        self.conversation: Conversation = conversation
        self._runtime = runtime_of(conversation)
        opened = open_chat_model(
            model,
            clock=self._runtime.clock,
            options=(options or ModelOptions()).with_connections(self._runtime.connections),
            max_output_tokens=max_output_tokens,
        )
        self._model = (
            opened.wrap(self._wrap_model)
            if isinstance(opened, ChatChain)
            else self._wrap_model(opened)
        )
        self._system = system
        self._identity = identity
        self._channel = channel
        self._tools = {tool.name: tool for tool in tools}
        self._tools_tokens = sum(count_tokens(json.dumps(tool.to_openai())) for tool in tools)
        self._max_rounds = max_rounds
        self._prefix: tuple[object, ...] | None = None
        self._question = ""

    def _wrap_model(self, model: Link[ChatRequest, ChatAnswer]) -> Link[ChatRequest, ChatAnswer]:
        clock = self._runtime.clock
        metered = MeteredModel(model, record=self._note_call, clock=clock)
        return RetryingModel(
            PauseReport(metered, SharedLimit(calls=self._runtime.store, clock=clock)),
            attempts=getattr(model, "attempts", 1),  # the host's own model retries by itself
            first_wait_seconds=FIRST_WAIT_SECONDS,
            max_wait_seconds=MAX_WAIT_SECONDS,
        )

    async def send(
        self, text: str | Message | None = None, *, answer_id: str | None = None
    ) -> Reply:
        """Answer *text*, by default the unanswered message on the tape.

        For images and files, pass a whole user message as *text*, such as
        `Message(role="user", content=(TextPart(text="What is it?"), ImagePart(data=...)))`. The
        answer gets the id *answer_id*, under which a repeated turn is answered only once.

        Raises:
            ModelError: the model gave no answer, for the given `reason`.
            InvalidMessage: the text is empty, not a user message, or there is nothing to answer.
            DuplicateMessage: an id, also *answer_id*, is taken by another message, or names an
                earlier question whose answer was broken off.
            TurnTaken: another turn of the conversation did not end within `turn_wait_seconds`, or it
                waits for this call, as of a tool or in the block of a `conversation.turn()`.
            Closed: the memory was closed meanwhile, which cancels the model call.
            StoreError: the database failed.
        """
        async with (
            self._runtime.turns.interruptible(),
            aclosing(self._turn(text, answer_id, streaming=False)) as events,
        ):
            async for event in events:
                if isinstance(event, Done):
                    return event.reply
        raise AssertionError("a turn ends with its reply or an error")

    async def stream(
        self, text: str | Message | None = None, *, answer_id: str | None = None
    ) -> AsyncGenerator[ChatEvent, None]:
        """Like `send`, but yield text, tool calls and results as they arrive, and `Done` last.

        The arguments and errors are those of `send`.

        Closing the stream cancels the model call and ends the turn; the partial answer is stored.
        Closing the memory does so, too, and the next event is the error `Closed`.
        """
        event: ChatEvent | None = None
        async with aclosing(self._turn(text, answer_id, streaming=True)) as events:
            self._runtime.streams.add(events)
            while not isinstance(event, Done):
                async with self._runtime.turns.interruptible():
                    event = await anext(events)
                yield event

    async def _turn(
        self, text: str | Message | None, answer_id: str | None, *, streaming: bool
    ) -> AsyncGenerator[ChatEvent, None]:
        async with self.conversation.turn() as turn:
            self._runtime.turns.share(turn)
            if (known := await self._begin(text, answer_id, turn)) is not None:
                yield TextDelta(text=known.text)
                yield Done(reply=self._known_reply(known))
                return
            calls: list[Usage] = []
            for rounds_left in reversed(range(self._max_rounds)):
                answer: ChatAnswer | None = None
                said: list[str] = []
                try:
                    async with aclosing(self._ask(rounds_left, streaming=streaming)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, ChatAnswer):
                                answer = piece
                            else:
                                said.append(piece)
                                yield TextDelta(text=piece)
                except (GeneratorExit, asyncio.CancelledError):
                    if answer is not None:
                        await self._keep(_message_of(answer, answer_id), turn=turn)
                    elif "".join(said).strip():
                        await self._keep(broken_off("".join(said)), turn=turn)
                    raise
                assert answer is not None, "a model gives an answer or an error"
                calls.append(answer.usage)
                message = _message_of(answer, answer_id)
                await self._keep(message, turn=turn)
                if not message.tool_calls:
                    yield Done(reply=make_reply(message.text, calls, complete=answer.complete))
                    return
                running = self._run_tools(message.tool_calls, turn, complete=answer.complete)
                async with aclosing(running) as events:
                    async for event in events:
                        yield event

    async def _begin(
        self, text: str | Message | None, answer_id: str | None, turn: str
    ) -> Message | None:
        """Append the user's message, unless it is on the tape; return its answer if it has one."""
        message = None if text is None else _user_message(text)
        taken = None if answer_id is None else await self._find_taken(answer_id, message)
        question = await self._find_question(message, answer_id, taken, turn)
        if question.is_answered:
            return question.answer
        if taken is not None:
            raise self._taken_error(taken)
        self._question = question.message.text if question.message else ""
        if question.answer is not None:
            await self.conversation.append(ASK_AGAIN, turn=turn)
        return None

    async def _find_question(
        self, message: Message | None, answer_id: str | None, taken: Message | None, turn: str
    ) -> Question:
        """Return the question of a turn, which is appended if it is new."""
        last_seq = (await self.conversation.state()).last_seq
        newest = await newest_question(self.conversation, last_seq)
        if message is None:
            if taken is not None and is_final(taken):
                return Question(None, taken)
            if last_seq == 0 or newest.is_answered:
                raise InvalidMessage(
                    f"conversation {self.conversation.id!r} has nothing to answer: send a text"
                )
            return newest
        if _repeats(message, newest, answer_id):
            return newest
        if taken is not None and (message.id is None or not await self._look_up(message.id)):
            raise self._taken_error(taken)
        (kept,) = await self.conversation.append(message, turn=turn)
        is_new = kept.seq > last_seq  # not sent before under its id
        return Question(kept, None) if is_new else await self._earlier_question(kept, newest)

    async def _find_taken(self, answer_id: str, message: Message | None) -> Message | None:
        """Return the message on the tape that has the id of the answer to come."""
        require_name("answer id", answer_id)
        if message is not None and message.id == answer_id:
            raise InvalidArgument(
                f"{answer_id!r:.80} is the id of both the message and its answer: use two ids"
            )
        return await self._look_up(answer_id)

    async def _look_up(self, message_id: str) -> Message | None:
        return await self._runtime.store.message(self.conversation.ref, message_id)

    def _taken_error(self, taken: Message) -> DuplicateMessage:
        return DuplicateMessage(
            f"message id {taken.id!r:.80} is taken by message {taken.seq} of conversation "
            f"{self.conversation.id!r:.80}: use another id for the answer"
        )

    async def _earlier_question(self, asked: Message, newest: Question) -> Question:
        """Return a message that was sent before under its id, with its answer.

        Raises:
            DuplicateMessage: the message was forgotten, or its answer was broken off, and is not the
                newest one any more.
        """
        if asked.kind == "forgotten":
            raise DuplicateMessage(
                f"message {asked.id!r:.80} of conversation {self.conversation.id!r:.80} was "
                "forgotten: send it again under a new id"
            )
        question = Question(asked, await answer_to(self.conversation, asked))
        if question.answer in (None, newest.answer) or question.is_answered:
            return question
        raise DuplicateMessage(
            f"the answer to message {asked.id!r:.80} of conversation {self.conversation.id!r:.80} was "
            "broken off, and the conversation went on: send the message again under a new id"
        )

    async def _keep(self, message: Message, *, turn: str) -> None:
        """Append a message, even if the turn is cancelled meanwhile."""
        append = self.conversation.append(message, turn=turn)
        await finish(start_beside(append, name="remanence-keep"))

    def _known_reply(self, answer: Message) -> Reply:
        """Return the reply for an answer on the tape, which took no model call."""
        usage = Usage(
            conversation=self.conversation.ref,
            user=self.conversation.user,
            model=self._model.name,
            input_tokens=0,
            output_tokens=0,
            cost_usd=0.0,
            at=self._runtime.clock.now(),
        )
        return Reply(text=answer.text, usage=usage, calls=())

    async def _ask(
        self, rounds_left: int, *, streaming: bool
    ) -> AsyncGenerator[str | ChatAnswer, None]:
        """Call the model once: yield its pieces if streaming, then the metered answer.

        A character that is cut between two pieces comes whole with the second one.
        """
        context = await self.conversation.context(
            system=self._system,
            identity=self._identity,
            channel=self._channel,
            model=self._model.name,
            recall=self._question if self.conversation.policy.recall_each_turn else None,
        )
        request = ChatRequest(
            context=context,
            tools=tuple(self._tools.values()),
            conclude=not rounds_left,
            conversation=self.conversation.ref,
            user=self.conversation.user,
        )
        half = ""
        try:
            async with pieces_of(self._model, request, streaming=streaming) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ChatAnswer):
                        answer = replace(piece, usage=self._runtime.ledger.price(piece.usage))
                        self._log(answer.usage, context)
                        self._check_concluded(answer, rounds_left)
                        yield answer
                    elif isinstance(piece, str):
                        whole, half = split_piece(half + piece)
                        if whole:
                            yield whole
        except ModelError as error:
            telemetry.chat_failed(self.conversation.id, self._model.name, error.reason)
            raise

    def _check_concluded(self, answer: ChatAnswer, rounds_left: int) -> None:
        if not rounds_left and any(isinstance(part, ToolCallPart) for part in answer.content):
            raise ModelError(
                "tool_rounds",
                f"{self._model.name} still calls tools after {self._max_rounds} rounds: raise "
                "max_rounds, or send again to continue",
            )

    async def _run_tools(
        self, calls: Sequence[ToolCallPart], turn: str, *, complete: bool
    ) -> AsyncGenerator[ChatEvent, None]:
        """Call the tools in the model's order, and append each result before the next call.

        Calls of a cut-off answer are refused, as their arguments may be incomplete.
        """
        max_bytes = self.conversation.policy.max_message_bytes
        for call in calls:
            yield ToolCalled(call_id=call.id, name=call.name, arguments=call.arguments)
            if complete:
                with part_of(turn):
                    message = await run_tool(call, self._tools, max_bytes=max_bytes)
            else:
                message = refuse_call(call)
            await self._keep(message, turn=turn)
            result = message.tool_results[0]
            yield ToolReturned(
                call_id=call.id, name=call.name, text=result.text, is_error=result.is_error
            )

    async def _note_call(self, request: ChatRequest, usage: Usage) -> None:
        estimated_tokens = request.context.stats.context_tokens + self._tools_tokens
        answered = usage.outcome in ANSWERED
        await self.conversation.record_call(
            usage, estimated_tokens=estimated_tokens if answered else None
        )

    def _log(self, usage: Usage, context: Context) -> None:
        """Log a call with its tokens, and whether the cached prefix changed since the last one."""
        prefix = (context.stats.first_raw_seq, *(block.text for block in context.system))
        changed = self._prefix is not None and self._prefix != prefix
        self._prefix = prefix
        telemetry.chat_called(
            self.conversation.id,
            usage,
            estimated_tokens=context.stats.context_tokens,
            prefix_changed=changed,
        )


def _message_of(answer: ChatAnswer, answer_id: str | None) -> Message:
    """Return the message of an answer; only a final answer gets *answer_id*."""
    message = Message(role="assistant", content=tuple(map(_storable, answer.content)))
    return replace(message, id=answer_id) if is_settled((message,)) else message


def _storable(part: Part) -> Part:
    match part:
        case TextPart():
            return replace(part, text=storable(part.text))
        case ToolCallPart():
            return replace(part, arguments=storable(part.arguments))
        case _:
            return part


def _repeats(message: Message, newest: Question, answer_id: str | None) -> bool:
    """Return whether a message repeats the newest question, for the same answer."""
    answer = newest.answer if newest.is_answered else None
    if answer is not None and (answer_id is None or answer.id != answer_id):
        return False
    asked = newest.message
    if message.id is not None or asked is None:
        return False
    return (message.name, message.content) == (asked.name, asked.content)


def _user_message(text: object) -> Message:
    message = Message.user(text) if isinstance(text, str) else text
    if not isinstance(message, Message):
        raise InvalidMessage(
            f"{text!r:.80} is neither a text nor a user message: send a str, or "
            'Message(role="user", content=(TextPart(...), ImagePart(...))); Message.from_openai '
            "and Message.from_anthropic read a provider's"
        )
    if message.role != "user":
        raise InvalidMessage(
            f"the message to answer has the role {message.role!r}: send one with the role 'user'"
        )
    return message


def _require_tools(tools: object) -> None:
    remedy = "use Tool(name=..., description=..., parameters=..., handler=...)"
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise InvalidArgument(f"tools={tools!r:.80} is impossible: pass a list; {remedy} for each")
    for tool in tools:
        if not isinstance(tool, Tool):
            raise InvalidArgument(f"tool {tool!r:.80} is a {type(tool).__name__}: {remedy}")
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            raise InvalidArgument(
                f"{count} tools are called {name!r}: give each a name of its own, by which the model "
                "calls it"
            )
