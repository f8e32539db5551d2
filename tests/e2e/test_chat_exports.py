"""`remanence import` of an account's export: ChatGPT's and Claude's `conversations.json`."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeAlias

import pytest

Cli = Callable[..., CompletedProcess[str]]
Json: TypeAlias = dict[str, Any]

START = 1_740_000_000.0
"""2025-02-19T21:20:00Z."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


def node(id_: str, parent: str | None, *parts: object, role: str = "user", **more: Any) -> Json:
    """A node of ChatGPT's tree, sent as many seconds after the start as its id has letters."""
    message = {
        "id": id_,
        "author": {"role": role, "name": None},
        "create_time": START + len(id_),
        "content": {"content_type": "text", "parts": [*parts]},
        "recipient": "all",
        "metadata": {},
    }
    return {"id": id_, "parent": parent, "children": [], "message": {**message, **more}}


def chatgpt(*nodes: Json, shown: str | None = None, id_: str = "c1") -> Json:
    mapping = {one["id"]: one for one in ({"id": "root", "parent": None, "message": None}, *nodes)}
    known = {"id": id_, "conversation_id": id_, "title": "Boats", "create_time": START}
    return {**known, "mapping": mapping, "current_node": shown or nodes[-1]["id"]}


def claude(*messages: Json, id_: str = "c1") -> Json:
    known = {"uuid": id_, "name": "Boats", "created_at": "2025-02-19T21:20:00.000000Z"}
    return {**known, "account": {"uuid": "a"}, "chat_messages": [*messages]}


def claude_message(id_: str, *content: object, sender: str = "human", **more: Any) -> Json:
    at = f"2025-02-19T21:20:{len(id_):02}.000000Z"
    text = "```\nThis block is not shown here.\n```"
    return {
        "uuid": id_,
        "sender": sender,
        "created_at": at,
        "text": text,
        "content": [*content],
        "attachments": [],
        "files": [],
        **more,
    }


def block(text: str) -> Json:
    return {"type": "text", "text": text, "citations": []}


def write(path: Path, conversations: object) -> Path:
    path.write_text(json.dumps(conversations), encoding="utf-8")
    return path


def imported(cli: Cli, file: Path, url: str, *options: str) -> Json:
    run = cli("import", file, "--db", url, "--user", "me", "--json", *options)
    assert run.returncode == 0, run.stderr
    counted: Json = json.loads(run.stdout)
    return counted


def tape(cli: Cli, url: str, conversation: str = "c1") -> list[Json]:
    run = cli("messages", conversation, "--db", url)
    return [json.loads(line) for line in run.stdout.splitlines()]


def texts(cli: Cli, url: str, conversation: str = "c1") -> list[str]:
    return [message["content"] for message in tape(cli, url, conversation)]


QUESTION = node("q", "root", "Which pier?")
ANSWER = node("qa", "q", "Pier 4.", role="assistant")


def test_each_conversation_of_an_export_is_one_with_its_messages_at_their_times(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    other = chatgpt(node("x", "root", "I live in Lisbon."), id_="c2")
    file = write(tmp_path / "conversations.json", [chatgpt(QUESTION, ANSWER), other])

    assert imported(cli, file, url)["messages"] == 3

    assert [(m["role"], m["content"], m["created_at"]) for m in tape(cli, url)] == [
        ("user", "Which pier?", "2025-02-19T21:20:01+00:00"),
        ("assistant", "Pier 4.", "2025-02-19T21:20:02+00:00"),
    ]
    assert texts(cli, url, "c2") == ["I live in Lisbon."]


def test_facts_hold_from_the_time_of_their_message_on_in_whatever_order_an_export_has_them(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    new = chatgpt(node("ab", "root", "I live in Porto now."), id_="new")
    old = chatgpt(node("a", "root", "I live in Lisbon."), id_="old")
    imported(cli, write(tmp_path / "conversations.json", [new, old]), url)

    facts = json.loads(cli("facts", "me", "--db", url, "--history", "--json").stdout)

    held = {fact["summary"]: (fact["valid_from"], fact["valid_to"]) for fact in facts["facts"]}
    assert held == {
        "I live in Porto now.": ("2025-02-19T21:20:02+00:00", None),
        "I live in Lisbon.": ("2025-02-19T21:20:01+00:00", "2025-02-19T21:20:02+00:00"),
    }


def test_an_evening_of_an_export_is_of_its_day_in_the_time_zone_that_is_given(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    evening = node("q", "root", "My surgery is tomorrow at 8:15.", create_time=1657859400.0)
    file = write(tmp_path / "conversations.json", [chatgpt(evening)])
    imported(cli, file, url, "--timezone", "America/Los_Angeles")

    (fact,) = json.loads(cli("facts", "me", "--db", url, "--json").stdout)["facts"]

    assert "2022-07-15" in fact["summary"]


def test_an_export_of_claude_is_read_by_its_blocks_or_its_text(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    old = claude_message("q", text="Which pier?")
    new = claude_message("qa", block("I look."), block("Pier 4."), sender="assistant")
    file = write(tmp_path / "conversations.json", [claude(old, new)])

    imported(cli, file, url)

    assert [(m["role"], m["content"], m["created_at"]) for m in tape(cli, url)] == [
        ("user", "Which pier?", "2025-02-19T21:20:01+00:00"),
        ("assistant", "I look.\n\nPier 4.", "2025-02-19T21:20:02+00:00"),
    ]


CHANGED = node("edit", "root", "Which gate?")
CHATGPT_TREE = chatgpt(QUESTION, ANSWER, CHANGED, node("gate", "edit", "B42.", role="assistant"))
CLAUDE_TREE = claude(
    claude_message("q", block("Which pier?"), parent_message_uuid="root"),
    claude_message("edit", block("Which gate?"), parent_message_uuid="root"),
    claude_message("qa", block("Pier 4."), sender="assistant", parent_message_uuid="q"),
    claude_message("edits", block("B42."), sender="assistant", parent_message_uuid="edit"),
)


@pytest.mark.parametrize(
    "conversation", [CHATGPT_TREE, {**CHATGPT_TREE, "current_node": None}, CLAUDE_TREE]
)
def test_the_shown_branch_or_else_the_newest_is_taken_and_the_others_are_counted(
    cli: Cli, tmp_path: Path, url: str, conversation: Json
) -> None:
    file = write(tmp_path / "conversations.json", [conversation])

    assert imported(cli, file, url)["left_out"] == {"message of another branch": 2}

    assert texts(cli, url) == ["Which gate?", "B42."]


def test_what_no_message_can_have_is_counted_by_its_name(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1"}
    spoken = {"content_type": "audio_transcription", "text": "And the boat?"}
    audio = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_2"}
    hidden = {"is_visually_hidden_from_conversation": True}
    files = {"attachments": [{"id": "file_1", "name": "a.png"}, {"id": "file-3", "name": "b.pdf"}]}
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}
    code = {"content_type": "code", "text": "search('pier')"}
    found = {"content_type": "execution_output", "text": "pier 4"}
    nodes = [
        node("s", "root", "", role="system", metadata=hidden),
        node("sh", "s", "Be brief.", role="system", metadata=hidden),
        node("shq", "sh", image, "Which pier?", metadata=files),
        node("shqt", "shq", role="assistant", content=thoughts),
        node("shqtc", "shqt", role="assistant", content=code, recipient="python"),
        node("shqtcr", "shqtc", role="tool", content=found),
        node("shqtcra", "shqtcr", "Pier 4.", role="assistant"),
        node("shqtcraq", "shqtcra", spoken, audio),
        node("shqtcraqn", "shqtcraq", image),
    ]
    file = write(tmp_path / "conversations.json", [chatgpt(*nodes)])

    run = cli("import", file, "--db", url)

    assert texts(cli, url) == ["Which pier?", "Pier 4.", "And the boat?"]
    left_out = imported(cli, file, url)["left_out"]
    assert left_out == {
        "image_asset_pointer": 2,
        "audio_asset_pointer": 1,
        "attachment": 1,
        "message without text": 2,
        "thoughts": 1,
        "tool call": 1,
        "tool message": 1,
        "hidden message": 1,
    }
    assert "left out: image_asset_pointer 2, " in run.stdout


def test_files_thoughts_and_tools_of_claude_are_counted(cli: Cli, tmp_path: Path, url: str) -> None:
    used = [{"type": "tool_use", "input": {}}, {"type": "tool_result", "content": []}]
    attached: Json = {
        "attachments": [{"extracted_content": "Long."}],
        "files": [{"file_name": "a.png"}],
    }
    messages = [
        claude_message("q", block("Which pier?"), **attached),
        claude_message(
            "qa", {"type": "thinking", "thinking": "Hm."}, *used, block("4."), sender="assistant"
        ),
        claude_message("qaq", *used),
    ]
    file = write(tmp_path / "conversations.json", {"conversations": [claude(*messages)]})

    left_out = imported(cli, file, url)["left_out"]

    assert texts(cli, url) == ["Which pier?", "4."]
    assert left_out == {
        "tool_use": 2,
        "tool_result": 2,
        "attachment": 1,
        "message without text": 1,
        "file": 1,
        "thinking": 1,
    }


def test_references_of_an_answer_are_shown_as_their_reader_saw_them(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    entity, page = '\ue200entity\ue202["city"]\ue201', "\ue200cite\ue202turn0search0\ue201"
    metadata = {"content_references": [{"matched_text": entity, "alt": "Lisbon"}]}
    answer = node("a", "root", f"In {entity}.{page}", role="assistant", metadata=metadata)
    file = write(tmp_path / "conversations.json", [chatgpt(answer)])

    imported(cli, file, url)

    assert texts(cli, url) == ["In Lisbon."]


def test_a_newer_export_adds_only_what_is_new(cli: Cli, tmp_path: Path, url: str) -> None:
    file = write(tmp_path / "may.json", [chatgpt(QUESTION, ANSWER)])
    assert imported(cli, file, url)["new"] == 2
    assert imported(cli, file, url)["new"] == 0

    grown = node("qaq", "qa", "And the boat?"), node("qaqa", "qaq", "At nine.", role="assistant")
    file = write(tmp_path / "june.json", [chatgpt(QUESTION, ANSWER, *grown)])

    assert imported(cli, file, url)["new"] == 2
    assert texts(cli, url) == ["Which pier?", "Pier 4.", "And the boat?", "At nine."]


def test_a_branch_that_a_newer_export_shows_follows_the_one_on_the_tape(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    first = write(tmp_path / "may.json", [chatgpt(QUESTION, ANSWER)])
    second = write(tmp_path / "june.json", [CHATGPT_TREE])

    for file in (first, second, second):
        imported(cli, file, url)

    assert texts(cli, url) == ["Which pier?", "Pier 4.", "Which gate?", "B42."]


def test_a_message_that_says_more_in_a_newer_export_stays_as_it_is_and_is_counted(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(tmp_path / "may.json", [chatgpt(QUESTION, ANSWER)])
    imported(cli, file, url)
    longer = node("qa", "q", "Pier 4, as always.", role="assistant")
    file = write(tmp_path / "june.json", [chatgpt(QUESTION, longer, node("qaq", "qa", "Ok."))])

    again = imported(cli, file, url)

    assert again["left_out"] == {"another text of a message on tape": 1}
    assert texts(cli, url) == ["Which pier?", "Pier 4.", "Ok."]


def test_a_message_without_a_time_has_that_of_the_one_before(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    timeless: Sequence[Json] = [
        node("q", "root", "Which pier?", create_time=None),
        ANSWER,
        node("next", "qa", "Ok.", create_time=None),
    ]
    file = write(tmp_path / "conversations.json", [chatgpt(*timeless)])

    imported(cli, file, url)

    times = ["2025-02-19T21:20:00+00:00", *["2025-02-19T21:20:02+00:00"] * 2]
    assert [message["created_at"] for message in tape(cli, url)] == times


@pytest.mark.parametrize(
    "damage",
    [
        {"mapping": {"a": None, "b": {"message": "text", "parent": 7}}, "current_node": "b"},
        {"mapping": {"a": {"parent": "a", "message": {"content": [], "author": 1}}}},
        {"mapping": {"a": {"parent": [], "message": {"author": {"role": []}}}}, "current_node": []},
        {"chat_messages": [None, 5, {"sender": None, "content": 3, "parent_message_uuid": 4}]},
    ],
)
def test_what_is_damaged_in_an_export_leaves_the_rest_of_it_readable(
    cli: Cli, tmp_path: Path, url: str, damage: Json
) -> None:
    cut = node("q", "root", "A cut \ud83d and a \0.")
    file = write(tmp_path / "conversations.json", [damage, chatgpt(cut)])

    assert imported(cli, file, url)["messages"] == 1

    assert texts(cli, url) == ["A cut ? and a ."]


@pytest.mark.parametrize(
    ("damage", "kind", "reason"),
    [
        (
            {**chatgpt(node("a", "root", "Hi."), id_="c0"), "mapping": None},
            "conversation",
            "conversation 'c0', 'Boats': its mapping is None",
        ),
        (
            {"uuid": "c0", "name": "Boats", "account": {"uuid": "a"}},
            "conversation",
            "conversation 'c0', 'Boats': its chat_messages is None",
        ),
        (
            {"title": "Boats", "conversation_id": "c0", "current_node": "a"},
            "conversation",
            "conversation 'c0', 'Boats': its mapping is None",
        ),
        ({"uuid": "c0"}, "conversation", "conversation 'c0', None: its chat_messages is None"),
        (None, "conversation", "conversation 1 is None: export it again"),
        (
            chatgpt(node("a", "root", "Hi.", create_time="soon"), id_="c0"),
            "message",
            "conversation 'c0', message 'a': created_at 'soon' is not a time",
        ),
    ],
)
def test_a_damaged_conversation_of_an_export_is_named_and_the_others_are_imported(
    cli: Cli, tmp_path: Path, url: str, damage: Json | None, kind: str, reason: str
) -> None:
    file = write(tmp_path / "conversations.json", [damage, chatgpt(node("b", "root", "Hello."))])

    run = cli("import", file, "--db", url, "--json")

    assert run.returncode == 1
    assert run.stderr.startswith(f"left out: conversations.json, {reason}")
    assert json.loads(run.stdout)["left_out"] == {f"unreadable {kind}": 1}
    assert texts(cli, url) == ["Hello."]


def test_messages_of_the_vercel_ai_sdk_are_read_with_their_texts(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    call = {"type": "tool-weather", "toolCallId": "c", "input": {}, "output": {"t": 1}}
    messages = [
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Rain?"}]},
        {"id": "m2", "role": "assistant", "parts": [
            {"type": "reasoning", "text": "Hm."}, call,
            {"type": "text", "text": "No."}, {"type": "text", "text": "Sunny."}]},
    ]  # fmt: skip
    file = write(tmp_path / "ui.json", {"conversation": "c1", "messages": messages})

    counted = imported(cli, file, url)

    assert [(one["role"], one["content"]) for one in tape(cli, url)] == [
        ("user", "Rain?"),
        ("assistant", "No.\n\nSunny."),
    ]
    assert counted["left_out"] == {"reasoning": 1, "tool-weather": 1}


@pytest.mark.parametrize(
    ("key", "messages"),
    [
        ("system", {"messages": [{"role": "user", "content": "Hi."}]}),
        ("systemInstruction", {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}),
        ("instructions", {"input": [{"role": "user", "content": "Hi."}]}),
    ],
)
def test_a_system_text_beside_the_messages_is_counted(
    cli: Cli, tmp_path: Path, url: str, key: str, messages: Json
) -> None:
    file = write(tmp_path / "request.json", {"conversation": "c1", key: "Be kind.", **messages})

    counted = imported(cli, file, url)

    assert (counted["new"], counted["left_out"]) == (1, {key: 1})


def test_a_chatgpt_conversation_without_an_id_is_named_by_title_and_time(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    unnamed = {**chatgpt(node("a", "root", "Hello.")), "id": None, "conversation_id": None}

    imported(cli, write(tmp_path / "conversations.json", [unnamed]), url)

    assert [message["content"] for message in tape(cli, url, f"Boats {START}")] == ["Hello."]
