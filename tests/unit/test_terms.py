import json

import pytest
from hypothesis import given, strategies as st

from remanence import Message
from remanence.notes.plain_text import plain_text
from remanence.stores.terms import fold, index_terms, query_terms, searchable_text
from remanence.types import TextPart, ToolCallPart, ToolResultPart


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("My flight, LH 454.", "my flight, lh 454."),
        ("지난주", "지난 난주 주"),
        ("航班号CA1234", "航班 班号 号 ca1234"),
        ("天", "天"),
        ("ＣＡ１２３", "ca123"),
        ("Ёлка", "елка"),
        ("1️⃣", "1⃣"),
    ],
)
def test_cjk_text_is_cut_to_pairs_and_other_text_is_folded(text: str, terms: str) -> None:
    assert index_terms(text).split() == terms.split()


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("", ()),
        ('" * ( ) : ^ -', ()),
        ("one two one", ("one", "two")),
        ("user_name@example.org", ("user", "name", "example", "org")),
        ("지난주", ("지난", "난주")),
        ("天", ("天*",)),
        ("हिन्दी भाषा", ("हिन्दी", "भाषा")),
        ("उड़ान है।", ("उड़ान", "है")),
        ("ọ̀rẹ́ Gwich̓in ❤️", ("ọ̀rẹ́", "Gwich̓in")),
        ("ދިވެހި ބަސް བོད་སྐད", ("ދިވެހި", "ބަސް", "བོད", "སྐད")),
        ("b天a", ("b", "天*", "a")),
    ],
)
def test_a_query_is_cut_to_words_and_pairs(query: str, terms: tuple[str, ...]) -> None:
    assert query_terms(query) == terms


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("اسمها مِيرَا", "ميرا"),
        ("שָׁלוֹם", "שלום"),
        ("الرقم ٤٥٦", "456"),
        ("room 123", "۱۲۳"),
        ("কক্ষ ১২", "12"),
        ("Straße", "STRASSE"),
        ("ցերև", "ՑԵՐԵՒ"),
    ],
)
def test_a_word_is_found_whatever_its_vowel_marks_digits_and_case(text: str, query: str) -> None:
    (term,) = map(fold, query_terms(query))
    assert term in index_terms(text).split()
    assert plain_text(query) in plain_text(text)


def test_of_a_long_query_the_first_and_last_words_are_searched() -> None:
    words = [f"word{number}" for number in range(1_000)]

    assert query_terms(" ".join(words)) == (*words[:64], *words[-64:])


@given(st.text())
def test_no_term_of_a_query_holds_what_an_index_would_read_as_syntax(query: str) -> None:
    for term in query_terms(query):
        assert any(character.isalnum() for character in term) or not term.isascii()
        assert not set(term.removesuffix("*")) & set("\"'*():^-+{}\0 ")


@given(st.text(alphabet="지난주東京 ab1"))
def test_the_terms_of_a_text_as_a_query_are_among_those_of_the_index(text: str) -> None:
    indexed = index_terms(text).split()

    for term in query_terms(text):
        if term.endswith("*"):
            assert any(word.startswith(term[:-1]) for word in indexed)
        else:
            assert term in indexed


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (json.dumps({"city": "München 東京 🍕"}), '{"city": "München 東京 🍕"}'),
        (json.dumps(["C:\\u00fc", "\x1b\x85", '"']), json.dumps(["C:\\u00fc", "\x1b\x85", '"'])),
        (r'["\ud83c"]', '["\ufffd"]'),
        (r"\u00fc is an escape", r"\u00fc is an escape"),
    ],
)
def test_escaped_letters_of_json_in_tool_calls_and_results_are_searchable(
    raw: str, text: str
) -> None:
    call = ToolCallPart(id="t", name="look", arguments=raw)
    result = ToolResultPart(call_id="t", content=(TextPart(text=raw),))

    assert searchable_text([call, result]) == f"look {text}\n{text}"


@pytest.mark.parametrize(
    "message",
    [
        Message.from_openai_responses(
            [
                {
                    "type": "shell_call_output",
                    "call_id": "c1",
                    "output": [{"stdout": "code ZX1", "outcome": {"type": "exit"}}],
                }
            ]
        )[0],
        Message.from_anthropic(
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [
                            {
                                "type": "search_result",
                                "content": [{"type": "text", "text": "code ZX1"}],
                            }
                        ],
                    }
                ],
            }
        ),
    ],
    ids=["shell", "search_result"],
)
def test_texts_in_parts_of_unknown_types_are_searchable(message: Message) -> None:
    assert "code ZX1" in searchable_text(message.content)
    assert "code ZX1" in message.full_text


def test_ids_in_parts_of_unknown_types_are_not_searchable_but_words_that_end_alike_are() -> None:
    ids = {"id": "x1", "call_id": "x2", "fileId": "x3"}
    content = [{"type": "receipt", **ids, "paid": "12 euros", "bid": "none"}]
    message = Message.from_openai({"role": "user", "content": content})

    assert searchable_text(message.content).split("\n") == ["12 euros", "none"]


def test_reasoning_and_encrypted_data_are_not_searchable() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "web_search_result", "encrypted_content": 400 * "b"},
    ]
    message = Message.from_anthropic({"role": "assistant", "content": content})

    assert searchable_text(message.content) == ""
