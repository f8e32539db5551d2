"""The whole memory over HTTP: what a program in any language does with it."""

import asyncio
import gzip
import json
import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from anyio.to_thread import current_default_thread_limiter
from tests.server.conftest import POLICY, Client, served

from remanence import Memory, Message
from remanence.http.problems import KINDS, URN
from remanence.server.app import create_app
from remanence.server.problems import MEDIA_TYPE, declare
from remanence.testing import ScriptedObserver

TRIP = "/v1/conversations/trip"
AT = "2026-05-01T09:00:00+02:00"


async def fill(client: Client, turns: int = 30) -> None:
    """A conversation of ana, long enough that a part of it is observed."""
    messages = []
    for turn in range(turns):
        text = f"I live at Rua {turn} in Lisbon and my flight LH {turn} leaves on 2026-05-08."
        messages += [
            {"role": "user", "content": text, "id": f"m-{turn}"},
            {"role": "assistant", "content": f"Flight LH {turn} is noted."},
        ]
    response = await client.post(f"{TRIP}/messages?user=ana", messages=messages)
    assert response.status_code == 201, response.text


async def test_the_example_of_the_page_runs(client: Client) -> None:
    page = (Path(__file__).parents[2] / "docs/howto/http.md").read_text()
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    request = await names["first_turn"](str(client.http.base_url))
    assert "LH 454" in json.dumps(request["messages"])


async def test_requests_are_answered_while_all_threads_are_busy(client: Client) -> None:
    limiter = current_default_thread_limiter()
    borrowers = range(int(limiter.available_tokens))
    for borrower in borrowers:
        limiter.acquire_on_behalf_of_nowait(borrower)
    try:
        async with asyncio.timeout(5):
            response = await client.get("/v1/conversations/trip")
    finally:
        for borrower in borrowers:
            limiter.release_on_behalf_of(borrower)

    assert response.status_code == 404


_SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "open"}


@pytest.mark.parametrize(
    ("given", "other", "message"),
    [
        ("openai", "anthropic", {"role": "user", "content": [_RESULT]}),
        (
            "openai",
            "anthropic",
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {}}],
            },
        ),
        (
            "openai",
            "anthropic",
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "image", "source": _SOURCE}],
            },
        ),
        (
            "anthropic",
            "openai",
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}],
            },
        ),
    ],
    ids=["result", "call", "image in a result", "image for Anthropic"],
)
async def test_a_block_of_the_other_format_is_refused_with_the_format_to_pass(
    client: Client, given: str, other: str, message: dict[str, Any]
) -> None:
    response = await client.post(f"{TRIP}/messages", messages=[message], format=given)

    assert response.status_code == 422
    assert f"is not a block of the format {given!r}" in response.json()["detail"]
    assert f"use the format {other!r}" in response.json()["detail"]


async def test_a_block_that_neither_format_knows_is_kept(client: Client) -> None:
    message = {"role": "user", "content": [{"type": "hologram", "data": "x"}]}
    await client.post(f"{TRIP}/messages?user=ana", messages=[message])

    (kept,) = (await get(client, f"{TRIP}/messages"))["messages"]
    assert kept["rendered"] == [message]


async def get(client: Client, path: str, **query: Any) -> Any:
    response = await client.http.get(path, params={"user": "ana", **query})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/conversations", {"id": "NAME"}),
        ("POST", "/v1/conversations?user=NAME", {}),
        ("GET", "/v1/conversations/PATH", None),
        ("GET", "/conversations/PATH/memory", None),
        ("POST", "/v1/conversations/PATH/chat", {"text": "Hi."}),
        ("POST", "/v1/chat", {"text": "Hi.", "user": "NAME"}),
        ("POST", "/v1/facts?user=ana", {"summary": "Likes tea.", "conversation": "NAME"}),
        ("GET", "/v1/facts?user=NAME", None),
        ("GET", "/v1/recall?query=tea&user=NAME", None),
        ("GET", "/v1/events?conversation=NAME", None),
        ("GET", "/v1/usage?conversation=NAME", None),
        ("DELETE", "/v1/users/PATH", None),
        ("GET", "/v1/users/PATH/export", None),
    ],
)
async def test_a_name_that_clients_drop_from_a_path_is_refused(
    client: Client, memory: Memory, method: str, path: str, body: dict[str, str] | None, name: str
) -> None:
    path = path.replace("PATH", name.replace(".", "%2E")).replace("NAME", name)
    if body is not None:
        body = {key: value.replace("NAME", name) for key, value in body.items()}
    response = await client.http.request(method, path, json=body)

    assert response.status_code == 422
    assert f"{name!r} cannot be a name" in response.json()["detail"]
    assert "use another" in response.json()["detail"]
    assert await memory.conversations() == ()


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/v1/conversations", {"id": "NAME"}, "#/id"),
        ("/v1/conversations?user=NAME", {}, "#/user"),
        ("/v1/conversations?tenant=NAME", {}, "#/tenant"),
        ("/v1/conversations/NAME/messages", {"messages": []}, "#/id"),
        ("/v1/conversations/NAME/chat", {"text": "Hi."}, "#/id"),
        ("/v1/chat", {"text": "Hi.", "user": "NAME"}, "#/user"),
        ("/v1/chat", {"text": "Hi.", "tenant": "NAME"}, "#/tenant"),
        ("/v1/chat", {"message": {"role": "user", "content": "Hi.", "id": "NAME"}}, "the id"),
        (f"{TRIP}/messages", {"messages": [{"role": "user", "content": "Hi.", "id": "NAME"}]}, "1"),
        ("/v1/facts?user=NAME", {"summary": "Likes tea."}, "#/user"),
    ],
)
async def test_nothing_begins_under_a_name_of_more_than_500_characters(
    client: Client, memory: Memory, path: str, body: dict[str, Any], place: str
) -> None:
    def of(length: int) -> tuple[str, str]:
        name = "é" * length
        return path.replace("NAME", quote(name)), json.dumps(body).replace("NAME", name)

    refused, taken = [
        await client.http.post(url, content=content, headers={"content-type": "application/json"})
        for url, content in (of(501), of(500))
    ]

    assert refused.status_code == 422
    assert place in refused.json()["detail"]
    assert "500" in refused.json()["detail"]
    assert taken.is_success


async def test_a_conversation_begins_with_or_without_a_name(client: Client) -> None:
    named = await client.post("/v1/conversations?user=ana", id="trip")
    new = await client.post("/v1/conversations")
    without_body = await client.http.post("/v1/conversations")
    assert named.status_code == new.status_code == without_body.status_code == 201
    assert named.json()["id"] == "trip"
    assert named.json()["last_seq"] == 0
    assert new.json()["id"].startswith("conv")


async def test_a_conversation_is_not_found_before_its_first_message(client: Client) -> None:
    await client.post("/v1/conversations", id="trip")
    before, listed = await client.get(TRIP), await client.get("/v1/conversations")
    acts = [await client.post(f"{TRIP}/{act}") for act in ("end", "flush")]
    await client.post(f"{TRIP}/messages", messages=[{"role": "user", "content": "Hi."}])
    after = await client.get(TRIP)

    for response in (before, *acts):
        assert response.status_code == 404
        assert "there is no conversation 'trip'" in response.json()["detail"]
    assert listed.json()["conversations"] == []
    assert (after.status_code, after.json()["last_seq"]) == (200, 1)


async def test_the_conversations_of_one_user_are_listed_in_pages(
    client: Client, memory: Memory
) -> None:
    for id_, owner in (("a", "ana"), ("b", "bob"), ("c", "ana")):
        await memory.conversation(id_, user=owner).append(Message.user("Hi."))
    first = (await client.get("/v1/conversations?user=ana&limit=1")).json()
    rest = (await client.get(f"/v1/conversations?user=ana&after={first['after']}")).json()

    assert [each["id"] for each in first["conversations"] + rest["conversations"]] == ["a", "c"]
    assert rest["after"] is None


@pytest.mark.parametrize(
    "name", ["C1/17.2", "a/messages", "/", " ", "a%2Fb", "100%", "what?#me", "Zoë", "x" * 3_000]
)
async def test_a_conversation_and_a_user_may_have_any_printable_name(
    client: Client, memory: Memory, name: str
) -> None:
    await memory.conversation(name, user=name).append(Message.user("I live in Ghent."))
    path, user = f"/v1/conversations/{quote(name, safe='')}", {"user": name}
    fact = await memory.facts.save("Ana lives in Ghent.", user=name)
    [message] = (await client.http.get(f"{path}/messages", params=user)).json()["messages"]
    exported = await client.http.get(f"/v1/users/{quote(name, safe='')}/export")
    erased = await client.http.delete(path, params=user)
    forgotten = await client.http.delete(f"/v1/users/{quote(name, safe='')}")

    assert message["text"] == "I live in Ghent."
    assert "I live in Ghent." in exported.text
    assert erased.status_code == forgotten.status_code == 200
    assert fact.id in forgotten.json()["facts"]
    assert await memory.conversations() == ()


@pytest.mark.parametrize(
    ("method", "path", "detail"),
    [
        ("POST", f"{TRIP}/messages?usr=ana", "#/usr: unknown query parameter: use tenant, user"),
        (
            "GET",
            f"{TRIP}/messages?limt=2",
            "#/limt: unknown query parameter: use after, format, limit, tenant, user",
        ),
        (
            "GET",
            "/v1/facts?user=ana&q=nuts",
            "#/q: unknown query parameter: use after, history, limit, query, tenant, user",
        ),
        ("POST", "/v1/chat?user=ana", "#/user: unknown query parameter: put it into the body"),
    ],
)
async def test_a_misspelt_query_parameter_is_refused(
    client: Client, memory: Memory, method: str, path: str, detail: str
) -> None:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "My flight is LH 454."}]}
    if path.startswith("/v1/chat"):
        body = {"text": "Which gate?"}
    response = await client.http.request(method, path, json=body if method == "POST" else None)

    assert response.status_code == 422
    assert response.json()["detail"] == detail
    assert await memory.conversations() == ()


async def test_a_repeated_query_parameter_is_refused(client: Client, memory: Memory) -> None:
    body = {"messages": [{"role": "user", "content": "My flight is LH 454."}]}
    response = await client.http.post(f"{TRIP}/messages?user=ana&user=bo", json=body)

    assert response.status_code == 422
    assert response.json()["detail"] == "#/user: the parameter is repeated: send it once"
    assert await memory.conversations() == ()


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (f"{TRIP}/messages?user=Z%EB", "query"),  # é and ë of Latin-1 would become one character
        ("/v1/conversations/Z%E9/messages?user=ana", "path"),
    ],
)
async def test_a_name_that_is_not_utf_8_is_refused(
    client: Client, memory: Memory, path: str, part: str
) -> None:
    body = {"messages": [{"role": "user", "content": "My flight is LH 454."}]}
    response = await client.http.post(path, json=body)

    assert response.status_code == 422
    assert f"the {part} is not UTF-8" in response.json()["detail"]
    assert await memory.conversations() == ()


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        (
            f"{TRIP}/forget",
            {"ids": ["m-1"]},
            "#/ids: unknown field: use message_ids, facts, query, everywhere",
        ),
        ("/v1/conversations", {"name": "trip"}, "#/name: unknown field: use id"),
        (f"{TRIP}/context", {"user": "ana"}, "#/user: unknown field: put it into the query"),
    ],
)
async def test_an_unknown_field_is_refused_with_the_known_ones_or_its_place(
    client: Client, path: str, body: dict[str, Any], detail: str
) -> None:
    response = await client.http.post(path, json=body)

    assert response.status_code == 422
    assert response.json()["detail"] == detail


async def test_messages_are_on_the_tape_when_it_answers(client: Client) -> None:
    response = await client.post(
        f"{TRIP}/messages?user=ana",
        messages=[
            {
                "role": "user",
                "content": "Hi.",
                "id": "a",
                "created_at": "2026-05-01T09:00:00+02:00",
            },
            {"role": "assistant", "content": "Hello."},
        ],
    )
    assert response.status_code == 201
    found = (await get(client, f"{TRIP}/messages"))["messages"]
    assert found == response.json()["messages"]
    assert [one["seq"] for one in found] == [1, 2]
    assert (found[0]["id"], found[0]["role"], found[0]["text"]) == ("a", "user", "Hi.")
    assert found[0]["created_at"] == "2026-05-01T09:00:00+02:00"
    assert found[0]["rendered"] == [{"role": "user", "content": "Hi."}]
    anthropic = await get(client, f"{TRIP}/messages", format="anthropic", limit=1)
    assert anthropic["messages"][0]["rendered"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
    ]


async def test_a_request_that_is_repeated_changes_nothing(client: Client) -> None:
    messages = [{"role": "user", "content": "Hi.", "id": "a"}]
    first = await client.post(f"{TRIP}/messages", messages=messages)
    again = await client.post(f"{TRIP}/messages", messages=messages)
    assert again.json() == first.json()
    other = await client.post(f"{TRIP}/messages", messages=[{**messages[0], "content": "Ho."}])
    assert other.status_code == 409
    assert other.json()["type"] == "urn:remanence:problem:duplicate_message"


async def test_a_context_is_a_request_of_its_provider(client: Client) -> None:
    await fill(client)
    await client.post(f"{TRIP}/end?user=ana")
    for kind, field in (("anthropic", "system"), ("openai", "messages"), ("text", "text")):
        response = await client.post(
            f"{TRIP}/context?user=ana", system="You help.", recall="flight LH 3", format=kind
        )
        context = response.json()
        assert "You help." in json.dumps(context["request"][field])
        assert context["stats"]["last_seq"] == 60
        assert context["stats"]["first_raw_seq"] > 1


async def test_messages_and_contexts_have_the_time_zone_of_the_user(client: Client) -> None:
    old = {
        "role": "user",
        "content": "My flight is tomorrow.",
        "created_at": "2025-05-01T09:00:00Z",
    }
    messages = [old, {"role": "user", "content": "Hello again."}]
    path = f"{TRIP}/messages"
    appended = await client.post(path, messages=messages, timezone="Asia/Tokyo")
    context = await client.post(f"{TRIP}/context", format="text", timezone="Asia/Dhaka")
    refused = await client.post(path, messages=messages, timezone="Tokyo")

    assert [m["created_at"][-6:] for m in appended.json()["messages"]] == ["+09:00", "+09:00"]
    assert "UTC+06:00" in context.json()["request"]["text"]
    assert refused.status_code == 422


async def test_notes_log_and_search_can_be_read(client: Client) -> None:
    await fill(client)
    state = (await client.post(f"{TRIP}/end?user=ana")).json()
    assert state["observed_seq"] == state["last_seq"] == 60
    segments = await get(client, f"{TRIP}/observations") + await get(client, f"{TRIP}/reflections")
    assert {seq for s in segments for seq in range(s["first_seq"], s["last_seq"] + 1)} == set(
        range(1, 61)
    )
    assert (await get(client, f"{TRIP}/log"))[0]["version"] == 1
    hits = await get(client, f"{TRIP}/recall", query="flight LH 7", limit=3)
    assert "LH 7 " in hits[0]["text"]


async def test_facts_notes_and_the_log_are_read_in_pages(client: Client) -> None:
    await fill(client)
    await client.post(f"{TRIP}/end?user=ana")
    for path, cursor in (("observations", "last_seq"), ("log", "version")):
        whole = await get(client, f"{TRIP}/{path}", limit=1_000)
        first = await get(client, f"{TRIP}/{path}", limit=1)
        rest = await get(client, f"{TRIP}/{path}", after=first[-1][cursor], limit=1_000)
        assert len(whole) > 1
        assert first + rest == whole

    for town in ("Lisbon", "Porto", "Faro"):
        await client.post("/v1/facts?user=eve", summary=f"Has been in {town}.")
    page = await get(client, "/v1/facts", user="eve", limit=2)
    rest = await get(client, "/v1/facts", user="eve", limit=2, after=page["after"])
    assert [fact["summary"][12:-1] for fact in page["facts"] + rest["facts"]] == [
        "Faro",
        "Porto",
        "Lisbon",
    ]
    assert rest["after"] is None
    assert (await get(client, "/v1/facts", user="bob", after=page["after"]))["facts"] == []
    await client.http.delete(f"/v1/facts/{page['after']}?user=eve")
    assert await get(client, "/v1/facts", user="eve", limit=2, after=page["after"]) == rest
    assert (await client.get("/v1/facts?user=eve&after=null")).status_code == 422


async def test_all_conversations_of_a_user_are_searched(client: Client) -> None:
    for name, user in (("a", "ana"), ("b", "ana"), ("c", "bob")):
        await client.post(
            f"/v1/conversations/{name}/messages?user={user}",
            messages=[{"role": "user", "content": f"The gate is {name}."}],
        )
    hits = await get(client, "/v1/recall", user="ana", query="gate", kind="message")
    assert {hit["conversation"] for hit in hits} == {"a", "b"}
    assert (await client.get("/v1/recall?query=gate")).status_code == 422


async def test_conversations_are_listed_in_pages(client: Client) -> None:
    for name in "abc":
        await client.post(
            f"/v1/conversations/{name}/messages", messages=[{"role": "user", "content": "Hi."}]
        )
    first = (await client.get("/v1/conversations?limit=2")).json()
    rest = (await client.get(f"/v1/conversations?limit=2&after={first['after']}")).json()
    assert [one["id"] for one in first["conversations"] + rest["conversations"]] == ["a", "b", "c"]
    assert rest["after"] is None


async def test_messages_and_users_are_forgotten_with_a_receipt(
    client: Client, memory: Memory
) -> None:
    await fill(client)
    receipt = (await client.post(f"{TRIP}/forget?user=ana", message_ids=["m-3"])).json()
    assert receipt["erased"]
    assert receipt["messages"][0]["id"] == "m-3"
    assert "LH 3 leaves" not in json.dumps(await get(client, f"{TRIP}/messages"))
    exported = await client.get("/v1/users/ana/export")
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert {"user", "conversation", "message"} <= {line["line"] for line in lines}
    gone = (await client.http.delete("/v1/users/ana")).json()
    assert gone["conversations"] == ["trip"]
    assert await memory.conversations() == ()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", TRIP, None),
        ("GET", f"{TRIP}/messages", None),
        ("POST", f"{TRIP}/messages", {"messages": [{"role": "user", "content": "Hi."}]}),
        ("POST", f"{TRIP}/context", {}),
        ("GET", f"{TRIP}/observations", None),
        ("GET", f"{TRIP}/reflections", None),
        ("GET", f"{TRIP}/log", None),
        ("GET", f"{TRIP}/recall?query=flight", None),
        ("POST", f"{TRIP}/end", None),
        ("POST", f"{TRIP}/flush", {"retry": True}),
        ("POST", f"{TRIP}/forget", {"message_ids": ["m-1"]}),
    ],
)
async def test_another_user_learns_nothing(
    client: Client, method: str, path: str, body: dict[str, Any] | None
) -> None:
    await fill(client)
    for user in (None, "bob"):
        stranger = httpx2.URL(path).copy_merge_params({} if user is None else {"user": user})
        response = await client.http.request(method, stranger, json=body)
        assert response.status_code == 409
        assert "ana" not in response.text


async def test_only_the_first_fields_of_a_message_are_compared_with_created_at(
    client: Client,
) -> None:
    fields = dict.fromkeys([f"field_{number}" for number in range(60)], 1)
    late = {"role": "user", "content": "x", **fields, "createdAt": AT}
    response = await client.post(f"{TRIP}/messages", messages=[late])
    assert response.status_code == 201


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("messages", {"messages": [{"role": "king", "content": "Hi."}]}, "role 'king' is unknown"),
        ("messages", {"messages": [{"content": "Hi."}]}, "role"),
        ("messages", {"messages": [{"role": "user", "content": ""}]}, "empty"),
        ("messages", {"messages": [{"role": "user", "content": "x", "id": 3}]}, "the id 3"),
        (
            "messages",
            {"messages": [{"role": "user", "content": "x", "created_at": "noon"}]},
            "created_at 'noon'",
        ),
        *(
            ("messages", {"messages": [{"role": "user", "content": "x", name: AT}]}, name)
            for name in ("creatd_at", "createdAt", "created")
        ),
        ("chat", {"message": {"role": "user", "content": "x", "create_at": AT}}, "create_at"),
        ("messages", {"message": []}, "messages"),
        ("context", {"system": 3}, "system"),
        ("flush", {"retry": 0}, "#/retry"),
        ("flush", {"everything": "yes"}, "#/everything"),
        ("forget", {"query": "gate", "everywhere": 1}, "#/everywhere"),
        ("forget", {}, "nothing to forget"),
        ("forget", {"message_ids": ["no"]}, "no"),
    ],
)
async def test_a_wrong_request_is_a_problem_that_names_it(
    client: Client, path: str, body: dict[str, Any], says: str
) -> None:
    response = await client.http.post(f"{TRIP}/{path}", json=body)
    assert 400 <= response.status_code < 500
    assert response.headers["content-type"] == "application/problem+json"
    assert says in response.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/conversations/", "/v1/facts/?user=ana", f"{TRIP}/"])
async def test_a_path_that_ends_in_a_slash_is_unknown(client: Client, path: str) -> None:
    response = await client.get(path)

    assert response.status_code == 404
    assert response.json()["type"].endswith("unknown_path")
    assert "/openapi.json lists the paths" in response.json()["detail"]


PYTHON = re.compile(r"\w\(|\w=|sys\.")
"""Calls, keyword arguments and modules, which say nothing to a caller over HTTP."""


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        (f"{TRIP}/chat", {"message": {"role": "assistant", "content": "Hi."}}, "the role 'user'"),
        (f"{TRIP}/forget", {}, "or a query"),
        (f"{TRIP}/forget", {"message_ids": ["m-1"], "everywhere": True}, "only a query"),
        (f"{TRIP}/forget", {"query": "tea", "everywhere": True}, "this one has no user"),
        ("/v1/facts?user=ana", {"summary": "Tea.", "replaces": "fact_1"}, "list the facts"),
    ],
)
async def test_a_refusal_speaks_no_python(
    client: Client, path: str, body: dict[str, Any], says: str
) -> None:
    response = await client.http.post(path, json=body)

    assert response.status_code == 422
    assert says in response.json()["detail"]
    assert not PYTHON.search(response.json()["detail"])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"messages": "\xff"}', "invalid start byte"),
        (b'{"messages": ' + b"[" * 100_000, "recursion"),
        (b'{"messages": ' + b"9" * 6_000 + b"}", "digits"),
    ],
)
async def test_a_body_that_cannot_be_read_is_a_problem_that_says_why(
    client: Client, body: bytes, says: str
) -> None:
    headers = {"content-type": "application/json"}
    response = await client.http.post(f"{TRIP}/messages", content=body, headers=headers)

    assert response.status_code == 400
    assert says in response.json()["detail"]
    assert "send JSON in UTF-8" in response.json()["detail"]
    assert not PYTHON.search(response.json()["detail"])


async def test_a_compressed_body_is_a_problem_that_says_so(client: Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    body = gzip.compress(b'{"messages": []}')
    response = await client.http.post(f"{TRIP}/messages", content=body, headers=headers)

    assert response.status_code == 400
    assert "it is compressed" in response.json()["detail"]
    assert "send it without content-encoding" in response.json()["detail"]


async def test_a_body_with_very_many_faults_is_refused_at_once_for_the_first(
    client: Client,
) -> None:
    numbers = await client.post(f"{TRIP}/context", knowledge=[1] * 200_000)
    fields = await client.post(f"{TRIP}/context", **{f"f{n}": 1 for n in range(200_000)})
    tags = await client.post("/v1/facts?user=ana", summary="Ana sails.", tags=["a"] * 200_000)

    for response in (numbers, fields, tags):
        assert response.status_code == 422
        assert len(response.json()["errors"]) == 1
    assert "200,000 fields, more than 100" in fields.json()["detail"]


async def test_a_value_that_is_refused_is_named_in_our_own_words(client: Client) -> None:
    response = await client.post("/v1/facts?user=ana", summary="Ana likes nuts.\0")
    detail = "#/summary: it has a NUL character at position 15: remove it"
    assert (response.status_code, response.json()["detail"]) == (422, detail)


async def test_the_error_of_a_length_counts_characters_and_names_the_limit(client: Client) -> None:
    long = await client.post("/v1/conversations", id="x" * 5_000)
    empty = await client.get("/v1/facts?user=")

    assert long.json()["detail"] == "#/id: the text is 5,000 characters long: use at most 500"
    assert empty.json()["detail"] == "#/user: the text is 0 characters long: use at least 1"


@pytest.mark.parametrize("more", [{"after": "fact_1"}, {"history": "true"}])
async def test_a_search_of_facts_refuses_what_it_would_ignore(
    client: Client, more: dict[str, str]
) -> None:
    query = {"user": "ana", "query": "nuts", **more}
    response = await client.http.get("/v1/facts", params=query)

    assert response.status_code == 422
    assert "in one page" in response.json()["detail"]


@pytest.mark.parametrize("moment", ["2026-05-01T09:30:00", "20260501", "noon"])
async def test_a_search_refuses_a_time_without_an_offset(client: Client, moment: str) -> None:
    for name in ("since", "until"):
        response = await client.get(f"{TRIP}/recall?query=gate&{name}={moment}")
        assert response.status_code == 422
        assert f"#/{name}" in response.json()["detail"]


@pytest.mark.parametrize("moment", ["2026-05-01", "2026-05-01T09:30:00+02:00", "noon"])
async def test_the_error_of_a_time_names_it_and_how_to_write_its_offset(
    client: Client, moment: str
) -> None:
    response = await client.get(f"{TRIP}/recall?query=gate&since={moment}")

    assert response.status_code == 422
    assert response.json()["detail"] == (
        f"#/since: {moment.replace('+', ' ')!r} is not a time: use ISO 8601 with an offset, such as "
        "2026-05-01T09:30:00+02:00, and in a URL %2B for the +"
    )


async def test_every_route_has_a_name_of_its_own_and_declares_its_errors(client: Client) -> None:
    document = (await client.get("/openapi.json")).json()
    routes = [route for path in document["paths"].values() for route in path.values()]
    names = [route["operationId"] for route in routes]
    assert len(set(names)) == len(names)
    problems = [
        (status, answer["content"][MEDIA_TYPE])
        for path, item in document["paths"].items()
        for route in item.values()
        for status, answer in route["responses"].items()
        if int(status[0]) > 3 and not path.startswith(("/readyz", "/openai/", "/anthropic/"))
    ]
    assert {status for status, _ in problems} >= {"401", "403", "404", "409", "413", "429", "504"}
    for status, problem in problems:
        assert problem["schema"] == {"$ref": "#/components/schemas/Problem"}
        for code, example in problem["examples"].items():
            name = example["$ref"].rpartition("/")[2]
            value = document["components"]["examples"][name]["value"]
            assert (str(value["status"]), value["type"]) == (status, f"{URN}{code}")


def test_the_errors_of_the_library_are_declared_with_their_statuses() -> None:
    every = declare(*(code for _, _, code in KINDS))
    for _, status, code in KINDS:
        assert code in every[status]["content"][MEDIA_TYPE]["examples"]


@pytest.mark.parametrize("texts", [["one"], ["one", "two", "three"], ["one", "2"]])
async def test_a_key_that_is_used_again_for_another_request_is_refused_and_nothing_is_written(
    client: Client, memory: Memory, texts: list[str]
) -> None:
    headers = {"idempotency-key": "k-1"}
    bodies = [
        {"messages": [{"role": "user", "content": text} for text in request]}
        for request in (["one", "two"], ["one", "two"], texts)
    ]
    responses = [
        await client.http.post("/v1/conversations/keyed/messages", json=body, headers=headers)
        for body in bodies
    ]
    kept = [message.text for message in await memory.conversation("keyed").messages()]

    assert [response.status_code for response in responses] == [201, 201, 409]
    assert responses[2].json()["type"].endswith(":duplicate_message")
    assert kept == ["one", "two"]


async def test_messages_sent_again_under_a_key_are_kept_once(
    client: Client, memory: Memory
) -> None:
    body = {"messages": [{"role": "user", "content": "Hi."}, {"role": "user", "content": "There?"}]}
    headers = {"idempotency-key": "k-1"}
    first = await client.http.post(f"{TRIP}/messages", json=body, headers=headers)
    again = await client.http.post(f"{TRIP}/messages", json=body, headers=headers)
    new = await client.http.post(f"{TRIP}/messages", json=body, headers={"idempotency-key": "k-2"})

    assert again.json() == first.json()
    assert [message["seq"] for message in new.json()["messages"]] == [3, 4]
    begun = [await client.http.post("/v1/conversations", json={}, headers=headers) for _ in "ab"]
    assert begun[0].json()["id"] == begun[1].json()["id"]


async def test_many_facts_of_a_user_are_saved_at_once(client: Client) -> None:
    summaries = {f"Boat {number} lies at pier {number + 40}." for number in range(24)}
    save = partial(client.post, "/v1/facts?user=ana")
    async with asyncio.TaskGroup() as group:
        saves = [group.create_task(save(summary=summary)) for summary in summaries]
    kept = await get(client, "/v1/facts")

    assert {saving.result().status_code for saving in saves} == {201}
    assert {fact["summary"] for fact in kept["facts"]} == summaries


async def test_a_replacement_that_is_sent_again_is_answered_with_the_same_fact(
    client: Client,
) -> None:
    window = (await client.post("/v1/facts?user=ana", summary="Ana likes windows.")).json()
    aisle = {"summary": "Ana prefers the aisle.", "replaces": window["id"]}
    first, again = [await client.post("/v1/facts?user=ana", **aisle) for _ in range(2)]
    other = await client.post("/v1/facts?user=ana", **aisle | {"summary": "Ana stands."})

    assert (again.status_code, again.json()) == (201, first.json())
    assert other.status_code == 422
    assert len((await get(client, "/v1/facts", history=True))["facts"]) == 2


async def test_a_fact_is_saved_once_and_replaced(client: Client) -> None:
    nuts = {"summary": "Ana is allergic to nuts.", "type": "profile", "tags": ["health"]}
    saved = await client.post("/v1/facts?user=ana", **nuts)
    again = await client.post("/v1/facts?user=ana", **nuts)
    newer = await client.post(
        "/v1/facts?user=ana", summary="Ana may eat nuts.", replaces=saved.json()["id"]
    )
    wrong = await client.post("/v1/facts?user=ana", summary=" ")
    numbered = await client.post("/v1/facts?user=ana", **nuts, valid_from=0)
    ahead = "2999-01-01T00:00:00Z"
    future = await client.post("/v1/facts?user=ana", **nuts, valid_from=ahead)

    assert (saved.status_code, saved.json()["tags"]) == (201, ["health"])
    assert again.json()["id"] == saved.json()["id"]
    facts = (await get(client, "/v1/facts"))["facts"]
    assert [fact["id"] for fact in facts] == [newer.json()["id"]]
    assert (wrong.status_code, wrong.json()["detail"][:17]) == (422, "the fact is empty")
    assert "a time as text, such as 2026" in numbered.json()["detail"]
    assert future.status_code == 422
    assert "is more than a day ahead: leave it out" in future.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/v1/conversations/trip?user=ana", None),
        ("DELETE", "/v1/users/ana", None),
        ("POST", "/v1/conversations/trip/forget?user=ana", {"message_ids": ["m-1", "m-2"]}),
    ],
)
async def test_an_erasure_while_an_observer_reads_brings_nothing_back(
    method: str, path: str, body: dict[str, Any] | None
) -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with (
        Memory.open("sqlite:///:memory:", policy=POLICY, observer=observer) as memory,
        served(create_app(memory)) as client,
    ):
        secret = "The safe is behind the blue painting. " * 20
        messages = [{"role": "user", "content": secret, "id": f"m-{n}"} for n in (1, 2)]
        messages += [{"role": "user", "content": f"And boat {n}?"} for n in range(3)]
        trip = "/v1/conversations/trip"
        await client.post(f"{trip}/messages?user=ana", messages=messages)
        async with asyncio.timeout(30):
            await observer.called.wait()
        erased = await client.http.request(method, path, json=body)
        gate.set()
        await memory.conversation("trip", user="ana").flush(everything=True)
        shown = [
            (await client.get(f"{trip}{rest}user=ana")).text
            for rest in ("/messages?", "/observations?", "/log?", "/recall?query=painting&")
        ]
        exported = (await client.get("/v1/users/ana/export")).text

    assert erased.is_success
    assert "painting" not in exported
    assert not any("painting" in text for text in shown)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{TRIP}/context?user=ana", {"system": "\ud800"}),
        (f"{TRIP}/context?user=ana", {"identity": "\ud800"}),
        (f"{TRIP}/context?user=ana", {"knowledge": ["\ud800"]}),
        ("/v1/facts?user=ana", {"summary": "x \ud800"}),
        ("/v1/facts?user=ana", {"summary": "x", "replaces": "\0"}),
        ("/v1/facts?user=ana", {"summary": "x", "valid_from": "0001-01-01T00:00:00+14:00"}),
        ("/v1/facts?user=ana", {"summary": "x", "valid_from": "9999-12-31T23:00:00-12:00"}),
        ("/v1/facts?user=ana", {"summary": "x", "valid_from": "9999-12-31T23:00:00+00:00"}),
        (f"{TRIP}/forget?user=ana", {"message_ids": ["\0"]}),
    ],
)
async def test_a_body_that_cannot_be_stored_or_shown_is_refused(
    client: Client, memory: Memory, path: str, body: dict[str, Any]
) -> None:
    await fill(client, turns=1)
    headers = {"content-type": "application/json"}
    response = await client.http.post(path, content=json.dumps(body), headers=headers)
    assert response.status_code == 422, response.text
    assert await memory.facts.list(user="ana") == ()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/conversations?tenant=%00"),
        ("GET", "/v1/conversations?after=%00"),
        ("GET", "/v1/facts?user=a&after=%00"),
        ("GET", "/v1/facts?user=%00"),
        ("GET", "/v1/usage?user=%00"),
        ("DELETE", "/v1/facts/%00?user=x"),
        ("GET", "/v1/conversations/a%00/messages"),
        ("GET", f"{TRIP}/recall?user=ana&query=x&since=0001-01-01T00:00:00%2B14:00"),
    ],
)
async def test_a_query_or_an_id_with_nul_or_beyond_the_calendar_is_refused(
    client: Client, method: str, path: str
) -> None:
    response = await client.http.request(method, path)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
