"""Images and files of a user's message reach the model in the form of its provider."""

from tests.wire.reach import Wire
from tests.wire.talking import chat_of, conversing

from remanence import Message
from remanence.types import FilePart, ImagePart, TextPart

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQ="


async def test_an_image_and_a_file_are_sent_with_the_text(whole_wire: Wire) -> None:
    text = TextPart(text="What is on the ticket?")
    image = ImagePart(media_type="image/png", data=PNG)
    file = FilePart(media_type="application/pdf", name="ticket.pdf", data=PDF)
    async with conversing() as conversation:
        await chat_of(conversation, whole_wire).send(
            Message(role="user", content=(text, image, file))
        )

    (message,) = (
        message
        for message in whole_wire.server.received[0].body["messages"]
        if message["role"] == "user"
    )
    shown, picture, ticket = message["content"]
    assert shown["text"] == text.text
    if whole_wire.provider == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": PNG}
        assert picture["source"] == source
        assert ticket["source"] == {**source, "media_type": "application/pdf", "data": PDF}
        assert ticket["title"] == "ticket.pdf"
    else:
        assert picture["image_url"]["url"] == f"data:image/png;base64,{PNG}"
        assert ticket["file"] == {
            "filename": "ticket.pdf",
            "file_data": f"data:application/pdf;base64,{PDF}",
        }
