"""The user's messages on the tape, and their answers."""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from remanence.conversation import Conversation
from remanence.types import Message, TextPart
from remanence.wire.boundaries import is_settled

PAGE: Final = 20

BROKEN_OFF: Final = "[The answer was broken off here.]"
"""The end of an answer whose stream was closed early."""

ASK_AGAIN: Final = Message.user("Your last answer was broken off. Answer again.", kind="control")
"""The message after a broken-off answer that asks for a complete one."""


class Question(NamedTuple):
    """A user message and its final answer, each None if there is none."""

    message: Message | None
    answer: Message | None

    @property
    def is_answered(self) -> bool:
        """Return whether there is a complete answer."""
        broken = (TextPart(text=BROKEN_OFF),)
        return self.answer is not None and self.answer.content[-1:] != broken


def broken_off(said: str) -> Message:
    """Return a partial answer as a message, with `BROKEN_OFF` at its end."""
    return Message(role="assistant", content=(TextPart(text=said), TextPart(text=BROKEN_OFF)))


async def newest_question(conversation: Conversation, last_seq: int) -> Question:
    """Return the newest question of a tape that ends at *last_seq*, with its last answer."""
    answer = None
    async for message in _newest_first(conversation, last_seq):
        if _is_question(message):
            return Question(message, answer)
        if answer is None and is_final(message):
            answer = message
    return Question(None, answer)


async def _newest_first(conversation: Conversation, last_seq: int) -> AsyncIterator[Message]:
    end = last_seq
    while end > 0:
        start = max(0, end - PAGE)
        for message in reversed(await conversation.messages(after=start, limit=end - start)):
            yield message
        end = start


async def answer_to(conversation: Conversation, question: Message) -> Message | None:
    """Return the last final answer to a question; consecutive questions share their answer."""
    answer, after = None, question.seq
    while page := await conversation.messages(after=after, limit=PAGE):
        for message in page:
            if answer is not None and _is_question(message):
                return answer
            if is_final(message):
                answer = message
        after = page[-1].seq
    return answer


def _is_question(message: Message) -> bool:
    return message.role == "user" and message.kind == "message" and not message.tool_results


def is_final(message: Message) -> bool:
    """Return whether a message is the last one of an answer, and not forgotten."""
    is_answer = message.role == "assistant" and message.kind == "message"
    return is_answer and is_settled((message,))
