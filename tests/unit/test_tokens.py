import base64
import json
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from remanence.catalog import FAMILIES, look_up
from remanence.tokens import count_tokens, counter_for
from remanence.tokens.exact import is_available
from remanence.tokens.image_size import image_size
from remanence.tokens.pieces import cutter
from remanence.types import (
    Dialect,
    Extra,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

RULES = ("flat", "cjk", "split")
COUNTERS = (*FAMILIES, *RULES)

any_text = st.text(st.characters(exclude_categories=()), max_size=200)
counters = st.sampled_from(COUNTERS)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(20)


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + bytes(14)
    return b"\xff\xd8" + app + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(10)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + body + bytes(10)


def of_part(part: Part, *, counter: str = "claude") -> int:
    message = Message(role="user", content=(part,))
    empty = Message(role="user", content=())
    return counter_for(counter).message(message) - counter_for(counter).message(empty)


@pytest.mark.req("LS-01")
@pytest.mark.parametrize("name", COUNTERS)
def test_empty_text_has_no_tokens(name: str) -> None:
    assert counter_for(name).text("") == 0


@pytest.mark.parametrize("name", COUNTERS)
def test_any_other_text_has_at_least_one_token(name: str) -> None:
    assert [counter_for(name).text(text) for text in ("a", " ", "\n", ".")] == [1] * 4


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-sonnet-5-5", "claude"),
        ("claude-opus-4-7", "claude"),
        ("claude-opus-4-10", "claude"),
        ("claude-latest", "claude"),
        ("anthropic:claude-opus-4-8", "claude"),
        ("openrouter/anthropic/claude-sonnet-4.7", "claude"),
        ("claude-haiku-4-5", "claude_3"),
        ("anthropic/claude-3-5-sonnet-20241022", "claude_3"),
        ("claude-opus-4-20250514", "claude_3"),
        ("claude-opus-4@20250514", "claude_3"),
        ("eu.anthropic.claude-3-haiku-20240307-v1:0", "claude_3"),
        ("claude-instant-1.2", "claude_3"),
        ("gpt-4o-mini", "o200k"),
        ("openai:gpt-4.1", "o200k"),
        ("o3", "o200k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-4", "cl100k"),
        ("gpt-3.5-turbo", "cl100k"),
        ("text-embedding-3-small", "cl100k"),
        ("google/gemini-2.5-pro", "o200k"),
        ("mistral-large", "o200k"),
    ],
)
def test_a_model_is_counted_by_its_family(model: str, family: str) -> None:
    assert look_up(model).tokenizer == family


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_is_also_found_by_its_own_name(name: str) -> None:
    assert counter_for(name).name == name


def test_the_default_model_is_a_claude_of_today() -> None:
    text = "The ferry leaves at seven and nobody told the captain."
    assert count_tokens(text) == counter_for("claude").text(text)


@pytest.mark.req("B-12", "L-48", "L-49", "LS-01", "Z-17")
@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("flat", "12345678", 2),
        ("flat", "123456789", 3),
        ("flat", "东京塔", 1),
        ("cjk", "hello", 2),
        ("cjk", "你好世界", 2),
        ("cjk", "你好吗", 2),
        ("cjk", "こんにちは", 3),
        ("cjk", "안녕하세요", 3),
        ("cjk", "hello你好", 3),
        ("cjk", "a你b好c", 5),
        ("split", "1234567", 2),
        ("split", "12345678", 3),
    ],
)
def test_a_rule_counts_by_characters(name: str, text: str, tokens: int) -> None:
    assert counter_for(name).text(text) == tokens


@pytest.mark.req("Z-17")
def test_the_split_rule_counts_results_of_tools_denser_than_text() -> None:
    result = ToolResultPart(call_id="c1", content=(TextPart(text="x" * 42),))
    assert of_part(TextPart(text="x" * 42), counter="split") == 12
    assert of_part(result, counter="split") == 14


@pytest.mark.req("LS-02")
def test_the_cjk_rule_adds_four_tokens_for_the_role_and_counts_calls_and_results() -> None:
    counter = counter_for("cjk")
    call = ToolCallPart(id="c1", name="find", arguments='{"q": 1}')
    assert counter.message(Message.user("12345678")) == 2 + 4
    assert counter.message(Message.assistant(tool_calls=[call])) == 1 + 2 + 4
    assert counter.message(Message.tool("c1", "12345678")) == 2 + 4
    batch = [Message.user("12345678"), Message.assistant(tool_calls=[call])]
    assert count_tokens(batch, model="cjk") == 6 + 7


@pytest.mark.parametrize("name", FAMILIES)
def test_a_message_counts_its_parts_its_name_and_a_frame(name: str) -> None:
    counter = counter_for(name)
    message = Message.user("See you at the harbour.", name="Ottilie")
    inside = counter.text("See you at the harbour.") + counter.text("Ottilie")
    assert inside < counter.message(message) <= inside + 8


@pytest.mark.parametrize("name", FAMILIES)
def test_a_tool_call_counts_its_name_and_arguments(name: str) -> None:
    counter = counter_for(name)
    call = ToolCallPart(id="c1", name="find_ferry", arguments='{"day": "Monday"}')
    inside = counter.text("find_ferry") + counter.text('{"day": "Monday"}')
    assert inside < of_part(call, counter=name) <= inside + 20


@pytest.mark.req("X-05")
@pytest.mark.parametrize("name", COUNTERS)
def test_the_result_of_a_tool_counts_in_full(name: str) -> None:
    short = ToolResultPart(call_id="c1", content=(TextPart(text="a line of output\n" * 10),))
    long = ToolResultPart(call_id="c1", content=(TextPart(text="a line of output\n" * 10_000),))
    assert of_part(long, counter=name) > 500 * of_part(short, counter=name)


@pytest.mark.req("X-05")
@pytest.mark.parametrize(
    ("counter", "size", "tokens"),
    [
        ("claude", (1000, 1000), 1334),
        ("claude", (200, 200), 54),
        ("claude", (8000, 2000), 820),
        ("claude_3", (4000, 4000), 1600),
        ("claude", (None, None), 1600),
        ("o200k", (1024, 1024), 765),
        ("o200k", (2048, 4096), 1105),
        ("o200k", (500, 500), 255),
        ("o200k", (None, None), 1445),
        ("flat", (None, None), 1600),
    ],
)
def test_an_image_counts_by_its_size(
    counter: str, size: tuple[int | None, int | None], tokens: int
) -> None:
    image = ImagePart(url="https://example.org/a.png", width=size[0], height=size[1])
    assert of_part(image, counter=counter) == tokens


@pytest.mark.parametrize(
    "content",
    [
        png(300, 200),
        jpeg(300, 200),
        gif(300, 200),
        webp(b"VP8 ", bytes(6) + struct.pack("<HH", 300, 200)),
        webp(b"VP8L", b"\x2f" + struct.pack("<I", 299 | 199 << 14)),
        webp(b"VP8X", bytes(4) + (299).to_bytes(3, "little") + (199).to_bytes(3, "little")),
    ],
    ids=["png", "jpeg", "gif", "webp lossy", "webp lossless", "webp extended"],
)
def test_the_size_of_an_image_is_read_from_its_data(content: bytes) -> None:
    assert image_size(encoded(content)) == (300, 200)
    assert of_part(ImagePart(media_type="image/png", data=encoded(content))) == 80


def test_an_image_inside_a_data_url_counts_by_its_size() -> None:
    assert of_part(ImagePart(url=f"data:image/png;base64,{encoded(png(300, 200))}")) == 80


@given(st.binary(max_size=80))
def test_no_bytes_upset_the_reading_of_a_size(content: bytes) -> None:
    for head in (b"", b"\xff\xd8", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF0000WEBPVP8X"):
        size = image_size(encoded(head + content))
        assert size is None or min(size) > 0


@given(st.text(max_size=80))
def test_text_in_place_of_data_has_no_size_and_counts_like_an_image_of_unknown_size(
    data: str,
) -> None:
    assert image_size(data) is None
    unknown = of_part(ImagePart(url="https://example.org/a.png"))
    assert of_part(ImagePart(media_type="image/png", data=data)) == unknown


@pytest.mark.parametrize("counter", COUNTERS)
def test_the_data_of_images_and_files_never_counts_as_text(counter: str) -> None:
    data = encoded(png(300, 200) + bytes(1_000_000))
    parts: list[Part] = [
        ImagePart(media_type="image/png", data=data),
        FilePart(media_type="image/png", data=data),
        OtherPart(dialect="openai", raw=json.dumps({"type": "input_video", "data": data})),
        ToolResultPart(call_id="c1", content=(ImagePart(media_type="image/png", data=data),)),
    ]
    assert max(of_part(part, counter=counter) for part in parts) <= 1_700


@pytest.mark.parametrize("media_type", ["text/plain", "application/json", None])
def test_a_text_file_counts_as_its_text(media_type: str | None) -> None:
    text = "Ferry timetable, winter: the 07:10 runs daily — été compris.\n" * 30
    part = FilePart(media_type=media_type, name="a.txt", data=encoded(text.encode()))
    assert of_part(part) == counter_for("claude").text(text)


def test_a_pdf_counts_by_its_pages() -> None:
    def pdf(pages: int) -> FilePart:
        content = b"%PDF-1.7\n<</Type /Pages>>" + b"<</Type /Page>>" * pages
        return FilePart(media_type="application/pdf", data=encoded(content))

    assert of_part(pdf(3)) == 3 * of_part(pdf(1))
    assert 1_500 <= of_part(pdf(1)) <= 3_000


def test_the_pages_of_a_pdf_count_also_in_compressed_streams_of_objects() -> None:
    pages = b"<</Type /Page>>" * 50
    plain, streams = b"%PDF-1.7\n" + 2 * pages, b"%PDF-1.7\n"
    for stream in (zlib.compress(pages), b"encrypted", zlib.compress(pages)):
        head = b"<</Type/ObjStm/N 50/Filter/FlateDecode/Length %d>>stream\r\n" % len(stream)
        streams += head + stream + b"\nendstream\n"

    counts = [
        of_part(FilePart(media_type="application/pdf", data=encoded(content)))
        for content in (plain, streams)
    ]

    assert counts[0] == counts[1] >= 100 * 1_500


def test_a_file_that_is_not_at_hand_counts_a_fixed_sum() -> None:
    for part in (FilePart(file_id="file-1"), FilePart(url="https://example.org/a.pdf")):
        assert of_part(part) == 1_500


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("anthropic", {"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
        ("anthropic", {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
        ("openai_responses", {"type": "input_image", "detail": "auto", "file_id": "file-1"}),
    ],
)
def test_a_file_id_in_a_part_of_unknown_type_counts_as_a_file(
    dialect: Dialect, fields: object
) -> None:
    tokens = of_part(OtherPart(dialect=dialect, raw=json.dumps(fields)))
    assert tokens == of_part(FilePart(file_id="file-1"))


def test_a_part_of_unknown_type_counts_the_texts_in_it() -> None:
    raw = json.dumps({"type": "poll", "question": "Boat or train?", "options": ["boat", "train"]})
    counter = counter_for("claude")
    texts = ("Boat or train?", "boat", "train")
    assert of_part(OtherPart(dialect="openai", raw=raw)) == sum(map(counter.text, texts))


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "computer_call_output", "output": {"image_url": "data:image/png;base64,<data>"}},
        {"type": "image_generation_call", "result": "<data>"},
        {"type": "document", "content": [{"media_type": "image/png", "data": "<data>"}]},
    ],
)
def test_an_image_in_a_part_of_unknown_type_counts_as_an_image(fields: object) -> None:
    data = encoded(png(300, 200) + bytes(1_000))
    raw = json.dumps(fields).replace("<data>", data)

    tokens = of_part(OtherPart(dialect="openai", raw=raw))

    assert tokens == of_part(ImagePart(media_type="image/png", data=data))


def test_audio_in_a_part_of_unknown_type_counts_as_an_audio_file() -> None:
    data = encoded(bytes(160_000))
    audio = OtherPart(dialect="openai", raw=json.dumps({"audio": {"data": data, "format": "wav"}}))

    assert of_part(audio) == of_part(FilePart(media_type="audio/wav", data=data)) == 100


def test_encrypted_data_in_a_part_of_unknown_type_counts_nothing() -> None:
    raw = json.dumps({"type": "reasoning", "encrypted_content": "gAAAA" + 400 * "b"})

    assert of_part(OtherPart(dialect="openai_responses", raw=raw)) == 0


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("web_search_result", "encrypted_content"),
        ("encrypted_code_execution_result", "encrypted_stdout"),
    ],
)
def test_encrypted_results_of_a_providers_tool_count_like_their_text(kind: str, field: str) -> None:
    text = "The ferry to Ouchy leaves at 07:10 every day but Sunday, says the timetable. " * 80
    block = {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": [{"type": kind, field: encoded(text.encode())}],
    }

    tokens = of_part(OtherPart(dialect="anthropic", raw=json.dumps(block)))

    assert tokens == pytest.approx(of_part(TextPart(text=text)), rel=0.3)


@pytest.mark.parametrize(
    "field",
    ["encrypted_content", "signature", "thoughtSignature", "data", "base64", "b64_json"],
)
def test_long_data_that_providers_send_along_counts_nothing(field: str) -> None:
    raw = json.dumps({field: encoded(bytes(30_000))})
    part = TextPart(text="Hi.", extra=Extra(dialect="gemini", raw=raw))

    assert of_part(OtherPart(dialect="openai", raw=raw)) == 0
    assert of_part(part) == of_part(TextPart(text="Hi."))


def test_the_citations_of_an_answer_count_nothing() -> None:
    sentence = (
        "Claude Shannon was born on April 30, 1916, in Petoskey, Michigan, as Wikipedia says."
    )
    citation = {
        "type": "web_search_result_location",
        "url": "https://en.wikipedia.org/wiki/Claude_Shannon",
        "title": "Claude Shannon - Wikipedia",
        "encrypted_index": encoded(bytes(200)),
        "cited_text": "Claude Elwood Shannon (April 30, 1916 - February 24, 2001) was an American "
        "mathematician, computer scientist, cryptographer and inventor known as the father of ...",
    }
    plain = {"type": "text", "text": sentence}
    cited = {**plain, "citations": [citation]}
    answers = (
        Message.from_anthropic({"role": "assistant", "content": [block] * 40})
        for block in (plain, cited)
    )

    assert len({counter_for("claude").message(answer) for answer in answers}) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"annotations": [{"type": "url_citation", "title": "t" * 300_000}]},
        {"foo": [[]] * 100_000},
        {"foo": {f"key {n}": n for n in range(20_000)}},
        {"foo": [{"type": "x" * 300_000}]},
        {"foo": [{"data": "t" * 400, "format": "wav", "title": {"t" * 300_000: 1}}]},
    ],
)
@pytest.mark.parametrize("kind", ["part", "field of a part", "in a result"])
def test_long_json_counts_whatever_it_consists_of(fields: object, kind: str) -> None:
    raw = json.dumps(fields)
    part: Part = OtherPart(dialect="openai", raw=raw)
    if kind == "field of a part":
        part = TextPart(text="Hi.", extra=Extra(dialect="openai", raw=raw))
    if kind == "in a result":
        part = ToolResultPart(call_id="c1", content=(OtherPart(dialect="openai", raw=raw),))

    assert of_part(part) > len(raw) / 10


@given(st.text(max_size=60))
def test_a_part_of_unknown_type_never_raises(raw: str) -> None:
    assert of_part(OtherPart(dialect="anthropic", raw=raw)) >= 0


def test_a_part_nested_without_end_is_counted() -> None:
    assert of_part(OtherPart(dialect="anthropic", raw="[" * 100_000)) > 0


@pytest.mark.parametrize("name", COUNTERS)
def test_lone_surrogates_are_counted(name: str) -> None:
    assert counter_for(name).text("a\ud800b\udfff\ud83d") > 0


@given(any_text)
def test_the_pieces_of_a_text_make_it_up_again(text: str) -> None:
    assert "".join(cutter()(text)) == text


@given(counters, any_text)
def test_counting_twice_gives_the_same(name: str, text: str) -> None:
    assert counter_for(name).text(text) == counter_for(name).text(text) >= 0


@given(counters, any_text, any_text)
def test_a_longer_text_counts_hardly_less(name: str, text: str, more: str) -> None:
    counter = counter_for(name)
    assert counter.text(text + more) >= counter.text(text) - 4


@given(st.sampled_from(FAMILIES), st.lists(st.sampled_from([
    "The ferry leaves at seven. ", "Сегодня паром опоздал. ", "今天的渡轮晚点了。", "def f(x): return x\n",
    '{"id": 42, "ok": true}\n', "🙂🚢", "https://example.org/a/b?c=1 ", "0x4f2a9c1e ",
]), min_size=2, max_size=12))  # fmt: skip
def test_the_parts_of_a_text_count_as_much_as_the_whole(name: str, parts: list[str]) -> None:
    counter = counter_for(name)
    apart = sum(map(counter.text, parts))
    assert abs(counter.text("".join(parts)) - apart) <= 2 * len(parts)


@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("unit", ["a", "Ab9+", " ", "\n", "=", "é", "漢", "\U0001f642", "a' "])
def test_a_long_run_counts_in_proportion(name: str, unit: str) -> None:
    counter = counter_for(name)
    short, long = counter.text(unit * 2_000), counter.text(unit * 200_000)
    assert 95 * short <= long <= 105 * short


@pytest.mark.req("L-51")
def test_without_a_vocabulary_on_disk_models_of_openai_are_estimated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert counter_for("gpt-4o") is counter_for("o200k")


@pytest.mark.parametrize("content", [b"", b"IQ== 0\n"])
def test_a_vocabulary_that_tiktoken_would_replace_is_not_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(content)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert not is_available("o200k")


@pytest.mark.req("L-51")
def test_with_its_vocabulary_on_disk_counts_are_exact() -> None:
    pytest.importorskip("tiktoken")
    if not is_available("o200k"):
        pytest.skip("tiktoken's vocabulary o200k_base is not in its cache")
    counter = counter_for("gpt-4o")
    assert counter.name == "o200k exact"
    assert counter.text("hello world") == 2
    assert counter.text("<|endoftext|>") > 1
