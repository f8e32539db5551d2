"""The dashboard: a page of its own that shows what the API has."""

import base64
import hashlib
import re
from collections.abc import Collection
from dataclasses import fields

import pytest
from tests.server.conftest import Client, served

from remanence import Memory
from remanence.http.documents import ConversationDocument, MessageDocument
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.server.routes.memory import MemoryStateDocument
from remanence.types import Fact, Hit, Note, Segment


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


async def test_a_tenant_without_conversations_gets_words_and_no_blank_page(client: Client) -> None:
    assert "No conversations in tenant '${tenant}'; ${remedy}." in await page_of(client)


async def test_the_page_asks_for_paths_that_exist(client: Client) -> None:
    page = await page_of(client)
    paths = (await client.get("/openapi.json")).json()["paths"]
    asked = re.findall(r"\bget\([\"`]([^\"`]+)", page)

    assert len(asked) >= 7
    for path in asked:
        assert f"/v1/{path}".replace("${path}", "conversations/{id}") in paths


async def test_each_list_of_the_page_goes_on_behind_its_first_page(client: Client) -> None:
    page = await page_of(client)
    lists = ("conversations", "${path}/reflections", "${path}/observations", "facts")

    for name in lists:
        (query,) = re.findall(rf"""get\(["`]{re.escape(name)}["`], {{([^}}]+)}}""", page)
        assert re.search(r"\bafter\b", query), name


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
        (r"page\.messages\.map\(\(each\) => .*each", MessageDocument.model_fields),
    ],
)
async def test_the_page_reads_fields_that_exist(
    client: Client, variable: str, known: Collection[str]
) -> None:
    found = set(re.findall(rf"\b{variable}\.(\w+)", await page_of(client)))

    assert found
    assert found <= set(known)
