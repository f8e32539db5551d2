"""The user's messages on the tape, and the answers that they got."""

from typing import Final, NamedTuple

from remanence.conversation import Conversation
from remanence.types import Message, TextPart

PAGE: Final = 20

BROKEN_OFF: Final = "[The answer was broken off here.]"
"""The end of an answer whose reader left while it was streamed."""

ASK_AGAIN: Final = Message.user("Your last answer was broken off. Answer again.", kind="control")
"""The message after a broken answer that asks for a whole one."""


class Question(NamedTuple):
    """A message of the user, and its final answer; None where there is none."""

    message: Message | None
    answer: Message | None

    @property
    def is_answered(self) -> bool:
        """Return whether the answer is there and whole."""
        broken = (TextPart(text=BROKEN_OFF),)
        return self.answer is not None and self.answer.content[-1:] != broken


def broken_off(said: str) -> Message:
    """Return what was said of an answer, with a mark at its end."""
    return Message(role="assistant", content=(TextPart(text=said), TextPart(text=BROKEN_OFF)))


async def newest_question(conversation: Conversation, last_seq: int) -> Question:
    """Return the newest question of a tape that ends at *last_seq*, with its last answer."""
    answer, end = None, last_seq
    while end > 0:
        start = max(0, end - PAGE)
        for message in reversed(await conversation.messages(after=start, limit=end - start)):
            if _is_question(message):
                return Question(message, answer)
            if answer is None and _is_final(message):
                answer = message
        end = start
    return Question(None, answer)


async def answer_to(conversation: Conversation, question: Message) -> Message | None:
    """Return the last final answer before the next question; questions in a row share theirs."""
    answer, after = None, question.seq
    while page := await conversation.messages(after=after, limit=PAGE):
        for message in page:
            if answer is not None and _is_question(message):
                return answer
            if _is_final(message):
                answer = message
        after = page[-1].seq
    return answer


def _is_question(message: Message) -> bool:
    return message.role == "user" and message.kind == "message" and not message.tool_results


def _is_final(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls
