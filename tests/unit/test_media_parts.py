"""Images and files in the blocks of Anthropic and of Responses: read, and given back."""

from typing import Any

import pytest

from remanence import Message
from remanence.errors import InvalidMessage
from remanence.types import FilePart, ImagePart, OtherPart, Part
from remanence.wire import anthropic, gemini, openai, responses

ANTHROPIC: list[tuple[dict[str, Any], Part]] = [
    (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        ImagePart(media_type="image/png", data="aGk="),
    ),
    (
        {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
        ImagePart(url="https://x.test/a.png"),
    ),
    (
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
            "title": "a.pdf",
        },
        FilePart(media_type="application/pdf", name="a.pdf", data="aGk="),
    ),
    (
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
        },
        FilePart(media_type="text/plain", data="aGk="),
    ),
    (
        {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}},
        FilePart(url="https://x.test/a.pdf"),
    ),
]
RESPONSES: list[tuple[dict[str, Any], Part]] = [
    (
        {"type": "input_image", "detail": "auto", "image_url": "https://x.test/a.png"},
        ImagePart(url="https://x.test/a.png"),
    ),
    (
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
        ImagePart(media_type="image/png", data="aGk="),
    ),
    (
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,aGk=",
        },
        FilePart(media_type="application/pdf", name="a.pdf", data="aGk="),
    ),
    (
        {"type": "input_file", "file_url": "https://x.test/a.pdf"},
        FilePart(url="https://x.test/a.pdf"),
    ),
    ({"type": "input_file", "file_id": "file-1"}, FilePart(file_id="file-1")),
]


@pytest.mark.parametrize(("block", "part"), ANTHROPIC)
def test_an_image_or_document_of_anthropics_is_read_and_comes_back(
    block: dict[str, Any], part: Part
) -> None:
    message = Message.from_anthropic({"role": "user", "content": [block]})

    assert message.content == (part,)
    assert anthropic.render("user", message.content) == [{"role": "user", "content": [block]}]


@pytest.mark.parametrize("kind", ["image", "document"])
def test_a_source_of_anthropics_without_a_name_here_comes_back_as_it_was(kind: str) -> None:
    block = {"type": kind, "source": {"type": "file", "file_id": "file_1"}}

    message = Message.from_anthropic({"role": "user", "content": [block]})

    assert isinstance(message.content[0], OtherPart)
    assert anthropic.render("user", message.content) == [{"role": "user", "content": [block]}]


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (5, "is not an object"),
        ({"x": 1}, "has no type"),
        ({"type": "image"}, "of type .image. needs"),
        (
            {"type": "tool_use", "id": "a", "name": "f", "input": 5},
            "the input of a tool_use block is 5",
        ),
        (
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}],
            },
            "contains a tool call or result",
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "\ud800"},
            },
            "is not Unicode",
        ),
    ],
)
def test_malformed_blocks_of_anthropics_are_refused_by_name(block: object, text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        Message.from_anthropic({"role": "user", "content": [block]})


@pytest.mark.parametrize(("shown", "part"), RESPONSES)
def test_an_image_or_file_of_responses_is_read_and_comes_back(
    shown: dict[str, Any], part: Part
) -> None:
    (message,) = Message.from_openai_responses([{"role": "user", "content": [shown]}])

    assert message.content == (part,)
    assert responses.render("user", message.content) == [{"role": "user", "content": [shown]}]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (5, "is not an object"),
        ({"x": 1}, "has no type"),
        ({"type": "input_file"}, "has no file"),
        ({"type": "input_file", "file_id": 5}, "the file_id of a file is 5"),
    ],
)
def test_malformed_parts_of_responses_are_refused_by_name(shown: object, text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        Message.from_openai_responses([{"role": "user", "content": [shown]}])


def test_what_a_model_refused_to_say_is_text() -> None:
    refusal = {"type": "refusal", "refusal": "I cannot help with that."}

    (message,) = Message.from_openai_responses([{"role": "assistant", "content": [refusal]}])

    assert message.text == "I cannot help with that."
    assert responses.render("assistant", message.content) == [
        {"role": "assistant", "content": [refusal]}
    ]


@pytest.mark.parametrize("content", [5, {"type": "input_text"}])
def test_content_of_responses_is_a_text_or_a_list(content: object) -> None:
    with pytest.raises(InvalidMessage, match="pass a string or a list"):
        Message.from_openai_responses([{"role": "user", "content": content}])


@pytest.mark.parametrize(
    "part",
    [
        ImagePart(media_type="text/html", data="aGk="),
        ImagePart(url="data:text/html;base64,aGk="),
        ImagePart(url="file:///etc/passwd"),
        ImagePart(url="../photo.png"),
    ],
)
def test_an_image_that_is_none_or_cannot_be_fetched_is_sent_as_a_text(part: Part) -> None:
    (anthropics,) = anthropic.render("user", (part,))
    shown = anthropics["content"][0]["text"]

    assert shown.startswith("[image")
    assert openai.render("user", (part,)) == [{"role": "user", "content": shown}]
    assert responses.render("user", (part,)) == [{"role": "user", "content": shown}]


def test_a_local_file_is_never_named_to_a_provider_as_one_to_fetch() -> None:
    part = FilePart(name="a.txt", url="file:///etc/passwd")
    shown = "[file a.txt: file:///etc/passwd]"

    assert responses.render("user", (part,)) == [{"role": "user", "content": shown}]
    assert gemini.render("user", (part,))["parts"] == [{"text": shown}]


def test_an_image_in_googles_storage_is_sent_by_its_url() -> None:
    (message,) = openai.render("user", (ImagePart(url="gs://photos/a.png"),))

    assert message["content"][0]["image_url"] == {"url": "gs://photos/a.png"}


@pytest.mark.parametrize(
    ("media_type", "name"),
    [("application/pdf", "file.pdf"), ("text/plain", "file.txt"), ("x-own/kind", "file")],
)
def test_data_of_a_file_goes_to_openai_with_a_name(media_type: str, name: str) -> None:
    file = FilePart(media_type=media_type, data="aGk=")

    (message,) = openai.render("user", (file,))
    (item,) = responses.render("user", (file,))

    assert message["content"][0]["file"]["filename"] == name
    assert item["content"][0]["filename"] == name


@pytest.mark.parametrize("media_type", ["video/mp4", "audio/mp3"])
def test_a_video_or_sound_to_fetch_is_sent_as_a_text_to_others_than_gemini(media_type: str) -> None:
    file = FilePart(media_type=media_type, url="https://x.test/a")
    text = "[file without a name: https://x.test/a]"

    [message] = anthropic.render("user", (file,))
    [item] = responses.render("user", (file,))

    assert message["content"] == [{"type": "text", "text": text}]
    assert item["content"] == text


def test_a_picture_or_file_that_a_model_made_is_a_text_for_those_that_take_none_of_a_model() -> (
    None
):
    blobs = [{"mimeType": kind, "data": "aGk="} for kind in ("image/png", "application/pdf")]
    parts = [{"text": "Here."}, *({"inlineData": blob} for blob in blobs)]
    made = Message.from_gemini({"role": "model", "parts": parts})
    expected = [
        "Here.",
        "[image of type image/png]",
        "[file without a name of type application/pdf]",
    ]

    (turn,) = anthropic.render(made.role, made.content)

    assert turn["content"] == [{"type": "text", "text": text} for text in expected]
    assert openai.render(made.role, made.content)[0]["content"] == turn["content"]
    assert gemini.render(made.role, made.content)["parts"] == parts
