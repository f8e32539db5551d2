"""The dashboard: a page of its own that shows what the API has."""

import base64
import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import fields
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter
from tests.builders import state
from tests.server.conftest import Client, served

from remanence import Memory
from remanence.cli.tape_drawing import draw_tape
from remanence.http.documents import ConversationDocument, MessageDocument
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.server.routes.memory import MemoryStateDocument
from remanence.testing.store_contract.samples import observation
from remanence.types import Fact, FailedStretch, Hit, Note, Segment


async def page_of(client: Client) -> str:
    response = await client.get("/")
    assert (response.status_code, response.headers["content-type"]) == (
        200,
        "text/html; charset=utf-8",
    )
    return response.text


async def test_the_page_is_open_and_what_it_shows_needs_a_key(memory: Memory) -> None:
    async with served(create_app(memory, auth=by_key(memory.keys))) as client:
        assert "<title>remanence</title>" in await page_of(client)
        assert (await client.get("/v1/conversations")).status_code == 401


async def test_a_browser_runs_nothing_but_the_script_of_the_page(client: Client) -> None:
    page = await page_of(client)
    policy = (await client.get("/")).headers["content-security-policy"]
    script = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert f"script-src 'sha256-{digest}';" in policy
    assert "default-src 'none'; connect-src 'self';" in policy
    assert "://" not in page
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\b", page)


async def test_key_and_tenant_are_taken_when_the_form_is_submitted(client: Client) -> None:
    before, submit, after = (await page_of(client)).partition('$("access").onsubmit')

    assert submit
    assert '$("key").value.trim()' in after
    assert not re.search(r'\$\("(key|tenant|user|id)"\)\.value', before)


async def test_the_key_stays_in_its_tab_and_out_of_addresses(client: Client) -> None:
    page = await page_of(client)

    assert 'sessionStorage.setItem("key", key)' in page
    assert not re.search(r"localStorage|cookie|indexedDB", page)
    assert 'const FILTERS = ["tenant", "user", "id"],' in page


async def test_a_tenant_without_conversations_gets_words_that_name_it(client: Client) -> None:
    page = await page_of(client)

    assert "`No conversations ${where}${remedy}.`" in page
    assert 'key ? "in the tenant of this key" : "in tenant \'default\'"' in page


class Elements(HTMLParser):
    """Collects the tags of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


async def test_the_script_finds_its_elements_and_no_attribute_runs_code(client: Client) -> None:
    page = await page_of(client)
    parser = Elements()
    parser.feed(page)
    attributes = [attributes for _, attributes in parser.found]
    ids = {each["id"] for each in attributes if "id" in each}

    assert {*re.findall(r'\$\("(\w+)"\)', page)} <= ids
    assert {"alert", "status"} <= {each.get("role") for each in attributes}
    assert not [name for each in attributes for name in each if name == "style" or name[:2] == "on"]


async def test_the_page_names_the_zones_of_a_tape_as_the_terminal_does(client: Client) -> None:
    page = await page_of(client)
    gap = observation(1, 1, text="", failed=(FailedStretch(1, 1, "error", "it broke"),))
    tape = state(reflected_seq=2, active_seq=3, observed_seq=4, last_seq=5)
    legend = draw_tape(tape, (gap,), width=60, plain=True)[-6:-1]

    listed = page.partition("const ZONES = [")[2].partition("];")[0]
    zones = re.findall(r'\["([\w-]+)", "([^"]+)"\]', listed)
    assert [meaning for _, meaning in zones] == [line[3:].partition(":")[0] for line in legend]
    assert all(f".{name} {{ background:" in page for name, _ in zones)


def test_a_given_up_stretch_is_a_list_of_its_messages_and_the_reason() -> None:
    segment = observation(1, 4, failed=(FailedStretch(2, 3, "error", "it broke"),))

    document = json.loads(TypeAdapter(Segment).dump_json(segment))

    assert document["failed"] == [[2, 3, "error", "it broke"]]


async def test_ids_with_a_prefix_follow_the_text_before_it(client: Client) -> None:
    for id_ in ("trio", "trip", "trip/2", "triple", "trips"):
        path = f"/v1/conversations/{quote(id_, safe='')}/messages"
        await client.post(path, messages=[{"role": "user", "content": "Hello."}])

    after = quote("trio\U0010ffff")
    page = (await client.get(f"/v1/conversations?after={after}")).json()

    found = [each["id"] for each in page["conversations"]]
    assert found == ["trip", "trip/2", "triple", "trips"]


async def test_tool_calls_and_results_have_the_fields_that_the_page_words(client: Client) -> None:
    page = await page_of(client)
    call = {"id": "c1", "type": "function", "function": {"name": "gate", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "B42"},
    ]
    await client.post("/v1/conversations/trip/messages", messages=messages)

    stored = (await client.get("/v1/conversations/trip/messages")).json()["messages"]

    assert [each["rendered"] for each in stored] == [[message] for message in messages]
    assert "function wording({ content, tool_calls: calls = [], tool_call_id: answered })" in page


async def test_the_page_asks_for_paths_that_exist(client: Client) -> None:
    page = await page_of(client)
    paths = (await client.get("/openapi.json")).json()["paths"]
    asked = re.findall(r"\b(?:get|find)\([\"`]([^\"`]+)", page)

    assert len(asked) >= 8
    for path in asked:
        assert f"/v1/{re.sub(r'[$]{.*}', 'conversations/{id}', path)}" in paths


async def test_each_list_of_the_page_goes_on_behind_its_first_page(client: Client) -> None:
    page = await page_of(client)
    loads = re.findall(r"pages\(async \((\w+).*?\) => {(.*?)return", page, re.DOTALL)

    assert len(loads) == 5  # conversations, segments, facts, the sources of a text, the tape
    for first, load in loads:
        assert first in ("after", "top")
        assert re.search(r"\b(?:get|load)\([^;]*{[^}]*\bafter\b[^}]*}\)", load)


def names_of(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


@pytest.mark.parametrize(
    ("variable", "known"),
    [
        ("state", MemoryStateDocument.model_fields),
        ("found", ConversationDocument.model_fields),
        ("fact", names_of(Fact)),
        ("segment", names_of(Segment)),
        ("note", names_of(Note)),
        ("hit", names_of(Hit)),
        ("message", MessageDocument.model_fields),
    ],
)
async def test_the_page_reads_fields_that_exist(
    client: Client, variable: str, known: Collection[str]
) -> None:
    found = set(re.findall(rf"\b{variable}\.(\w+)", await page_of(client)))

    assert found
    assert found <= set(known)
