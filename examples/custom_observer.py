"""An observer of one's own: it keeps the lines that a support desk asks for, and nothing else.

An observer is any object with `observe`. What it returns is checked as any other draft: it has to
fit the budget and to name messages of the request.
"""

import asyncio
import re

from remanence import Memory, Message, Note, Policy
from remanence.protocols import ObserveRequest
from remanence.types import Draft

TICKET = re.compile(r"\b(?:ticket|order|invoice)\s+#?[A-Z]*-?\d+", re.IGNORECASE)


class TicketObserver:
    """A note for each message that names a ticket, an order or an invoice."""

    async def observe(self, request: ObserveRequest) -> Draft:
        notes = tuple(
            Note(
                text=message.text,
                first_seq=message.seq,
                last_seq=message.seq,
                observed_at=message.created_at,
                priority="IMPORTANT",
                tag="Issue",
                speaker=message.speaker,
            )
            for message in request.messages
            if TICKET.search(message.full_text)
        )
        return Draft(notes=notes, made_by="tickets/1", nothing=not notes)


async def main() -> None:
    policy = Policy.default(observe_tokens=50, note_ratio=1.0, keep_last=0)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=TicketObserver()
    ) as memory:
        chat = memory.conversation("desk-3")
        await chat.append(
            Message.user("Good morning! I hope that you are well, in spite of the heat."),
            Message.assistant("Thank you, we are. What can I do for you on this fine day?"),
            Message.user("Ticket #4417 is still open: the lamp of order A-981 arrived broken."),
            Message.assistant("I am sorry to hear that, and I look into it."),
        )
        await chat.flush(everything=True)
        for segment in await chat.observations():
            print(segment.made_by, f"messages {segment.first_seq} to {segment.last_seq}")
            for note in segment.notes:
                print(f"  #{note.first_seq} {note.text}")


if __name__ == "__main__":
    asyncio.run(main())
