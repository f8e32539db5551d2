"""Instructions and summaries that coding agents put into messages of the user, at the proxies."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
from tests.server.conftest import Client, served
from tests.slow import slow_except
from tests.wire.dialects import Reply
from tests.wire.servers import ModelServer

from remanence import Memory, Policy, count_tokens
from remanence.server.app import create_app
from remanence.server.proxy.api import read_units
from remanence.server.proxy.instructions import keep_instructions
from remanence.server.proxy.responses import OpenAIResponses

Body = dict[str, Any]  # JSON

CHAT = "openai/v1/chat/completions"
RESPONSES = "openai/v1/responses"
MESSAGES = "anthropic/v1/messages"
PATHS = [CHAT, RESPONSES, MESSAGES]
NAMED = {"x-remanence-conversation": "trip", "x-remanence-user": "ana"}
LONG = "The boat to the island leaves from pier {0} and takes {0} minutes in good weather. "
RULES = "<system-reminder>\nContents of CLAUDE.md: never push to main.\n</system-reminder>\n"
AGENTS = "# AGENTS.md instructions for /home/ana\n\nAlways answer in Portuguese."
PLACE = "<environment_context>\n  <cwd>/home/ana</cwd>\n</environment_context>"
CLAUDE_SUMMARY = (
    "This session is being continued from a previous conversation that ran out of context.\n"
    "Summary: TODO-3 is open. Go on without asking the user any further questions."
)
CODEX_SUMMARY = (
    "Another language model started to solve this problem and produced a summary of its thinking "
    "process. TODO-3 is open. Never ask the user any further questions."
)
COMMAND = [
    "<local-command-caveat>Caveat: DO NOT respond to these messages.</local-command-caveat>",
    "<command-name>/compact</command-name>\n<command-args></command-args>",
    "<local-command-stdout>Always compacted.</local-command-stdout>",
]


@pytest.fixture
async def proxy(memory: Memory, upstream: ModelServer) -> AsyncIterator[Client]:
    app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
    async with served(app) as client:
        yield client


async def ask(proxy: Client, path: str, history: Sequence[Body]) -> httpx2.Response:
    field = "input" if path == RESPONSES else "messages"
    body = {"model": "m", "max_tokens": 900, field: history}
    response = await proxy.http.post(path, json=body, headers=NAMED)
    assert response.headers["x-remanence-memory"] == "on"
    return response


def user(path: str, *texts: str) -> Body:
    kind = "input_text" if path == RESPONSES else "text"
    return {"role": "user", "content": [{"type": kind, "text": text} for text in texts]}


def noted() -> Body:
    return {"role": "assistant", "content": "[Fact] noted"}


async def observe(memory: Memory) -> None:
    (state,) = await memory.conversations()
    await memory.conversation(state.ref.id, tenant=state.ref.tenant, user="ana").flush()


async def talk(
    proxy: Client, memory: Memory, path: str, texts: Sequence[Sequence[str]], turns: int = 12
) -> list[Body]:
    """Send turns whose first messages begin with *texts*, and return the history."""
    history: list[Body] = []
    for number in range(turns):
        before = texts[number] if number < len(texts) else ()
        history.append(user(path, *before, LONG.format(number) * 2))
        await ask(proxy, path, history)
        history.append(noted())
        await observe(memory)
    return history


def sent_to(upstream: ModelServer, path: str, at: int = -1) -> list[Body]:
    sent: list[Body] = upstream.received[at].body["input" if path == RESPONSES else "messages"]
    return sent


def texts_of(sent: Sequence[Body]) -> list[str]:
    contents = [one["content"] for one in sent]
    blocks = [[{"text": one}] if isinstance(one, str) else one for one in contents]
    return [block["text"] for content in blocks for block in content]


@pytest.mark.parametrize("path", slow_except(PATHS, [MESSAGES]))
@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ([RULES], [RULES]),
        ([AGENTS, PLACE], [AGENTS, PLACE]),
        ([f"{LONG}\n{RULES}{PLACE}"], [f"{RULES}{PLACE}"]),
        ([RULES, CLAUDE_SUMMARY], [RULES, CLAUDE_SUMMARY]),
        ([AGENTS, CODEX_SUMMARY], [AGENTS, CODEX_SUMMARY]),
    ],
    ids=["reminder", "agents", "within a text", "summary of claude", "summary of codex"],
)
async def test_instructions_of_the_users_program_are_sent_on_behind_notes(
    proxy: Client,
    upstream: ModelServer,
    memory: Memory,
    path: str,
    texts: list[str],
    kept: list[str],
) -> None:
    history = await talk(proxy, memory, path, [texts])
    for _ in range(2):
        await ask(proxy, path, [*history, user(path, "And now?")])
        history += [user(path, "And now?"), noted()]

    before, sent = sent_to(upstream, path, -2), sent_to(upstream, path)
    assert len(before) < len(history) - 10
    assert texts_of(before)[1 : len(kept) + 1] == kept
    assert before[1]["role"] == "user"
    shown = before[2:-1]
    assert shown == history[-len(shown) - 4 : -4]
    assert sent[: len(before) - 1] == before[:-1]


async def test_a_summary_of_the_client_is_neither_in_notes_nor_a_source_of_wishes(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    await talk(proxy, memory, MESSAGES, [[RULES, CLAUDE_SUMMARY]])

    (state,) = await memory.conversations()
    tape = memory.conversation(state.ref.id, tenant=state.ref.tenant, user="ana")
    notes = " ".join(block.text for block in (await tape.context()).system)
    assert "TODO-3" not in notes
    assert "further questions" not in notes
    assert "main" not in notes


async def test_traces_of_commands_are_neither_facts_nor_sent_on_behind_notes(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = await talk(proxy, memory, MESSAGES, [COMMAND, ["I live in Porto."]])
    (state,) = await memory.conversations()
    tape = memory.conversation(state.ref.id, tenant=state.ref.tenant, user="ana")
    await tape.end()
    await ask(proxy, MESSAGES, [*history, user(MESSAGES, "And now?")])

    facts = await memory.facts.list(user="ana", tenant=state.ref.tenant)
    assert [fact.summary for fact in facts] == ["I live in Porto."]
    assert "ompact" not in json.dumps(sent_to(upstream, MESSAGES))


@pytest.mark.parametrize("role", ["user", "system"])
async def test_of_equal_instructions_the_newest_is_sent_on_behind_notes(
    proxy: Client, upstream: ModelServer, memory: Memory, role: str
) -> None:
    plan, act = [f"<system-reminder>{mode}.</system-reminder>" for mode in ("Plan", "Act")]
    history: list[Body] = []
    for number in range(12):
        if number in (1, 2, 3):
            history.append({"role": role, "content": act if number == 2 else plan})
        history.append(user(CHAT, LONG.format(number) * 2))
        await ask(proxy, CHAT, history)
        history.append(noted())
        await observe(memory)

    await ask(proxy, CHAT, [*history, user(CHAT, "And now?")])

    sent = texts_of(sent_to(upstream, CHAT))
    assert [text for text in sent if "<system" in text] == [act, plan]


async def test_instructions_behind_the_first_answer_are_sent_on_up_to_a_limit_the_newest_first(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """Such as files, which would fill the window."""
    files = [f"<system-reminder>File {n}: {'x = 1; ' * 900}</system-reminder>" for n in range(6)]
    rules = RULES.replace("main", "main, " * 5_000)

    history = await talk(proxy, memory, MESSAGES, [[rules], *([file] for file in files)])
    await ask(proxy, MESSAGES, [*history, user(MESSAGES, "And now?")])

    sent = texts_of(sent_to(upstream, MESSAGES))
    assert [text for text in sent if "<system" in text] == [rules, *files[-3:]]


async def test_instructions_of_the_users_program_take_room_from_the_messages(
    upstream: ModelServer,
) -> None:
    policy = Policy(
        max_context_tokens=4_000,
        observe_tokens=100,
        tail_tokens=2_000,
        tail_keep_tokens=1_200,
        reflect_tokens=(500, 1_000),
        keep_last=2,
    )
    rules = RULES.replace("main", "main, " * 900)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        app = create_app(memory, anthropic_url=upstream.url)
        async with served(app) as proxy:
            history = await talk(proxy, memory, MESSAGES, [[rules]], turns=24)
            upstream.script(Reply("Pier 1."))
            long = user(MESSAGES, *(f"{LONG.format(n)}" * 10 for n in range(9)))
            response = await ask(proxy, MESSAGES, [*history, long])
            sent = json.dumps(sent_to(upstream, MESSAGES))

    assert rules in texts_of(sent_to(upstream, MESSAGES))
    assert "excerpt" in response.headers["x-remanence-omitted"]
    assert len(sent) < 4 * 4_000


async def test_of_instructions_that_have_no_room_the_older_ones_go_too_and_are_named(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """An older one may be what the newer one takes back."""
    plan = "<system-reminder>Plan mode is on.</system-reminder>"
    long = f"<system-reminder>{'Plan mode is off. ' * 1_200}</system-reminder>"
    act = "<system-reminder>Act.</system-reminder>"
    history = await talk(proxy, memory, MESSAGES, [[RULES], [plan], [long], [act]])

    response = await ask(proxy, MESSAGES, [*history, user(MESSAGES, "And now?")])

    sent = texts_of(sent_to(upstream, MESSAGES))
    assert [text for text in sent if "<system" in text] == [RULES, act]
    assert response.headers["x-remanence-omitted"] == "3-3 over_budget, 5-5 over_budget"


async def test_instructions_before_the_first_answer_are_sent_on_up_to_a_limit_the_first_ones_first(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    file = f"<system-reminder>{'x = 1; ' * 40_000}</system-reminder>"
    history = await talk(proxy, memory, MESSAGES, [[RULES, file]])

    response = await ask(proxy, MESSAGES, [*history, user(MESSAGES, "And now?")])

    sent = texts_of(sent_to(upstream, MESSAGES))
    assert [text for text in sent if "<system" in text] == [RULES]
    assert response.headers["x-remanence-omitted"] == "1-1 over_budget"


async def test_the_first_of_equal_instructions_is_sent_on_if_the_last_has_no_room(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    rules = RULES.replace("main", "main, " * 4_000)
    history = await talk(proxy, memory, MESSAGES, [[rules], [], [rules]])

    response = await ask(proxy, MESSAGES, [*history, user(MESSAGES, "And now?")])

    assert rules in texts_of(sent_to(upstream, MESSAGES))
    assert "x-remanence-omitted" not in response.headers


async def test_the_user_and_the_model_of_chat_completions_take_turns(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """As templates of many models demand."""
    rules = [[f"<system-reminder>Rule {number}.</system-reminder>"] for number in range(6)]
    history = await talk(proxy, memory, CHAT, rules)

    await ask(proxy, CHAT, [*history, user(CHAT, "And now?")])

    sent = sent_to(upstream, CHAT)
    assert [one["role"] for one in sent] == ["system", *["user", "assistant"] * 3, "user"]
    assert texts_of(sent)[1:7] == [rule for (rule,) in rules]
    assert {"role": "user", "content": [*sent[1]["content"][6:]]} in history


async def test_a_reminder_is_not_searched_for_and_what_is_recalled_stays_at_the_users_words(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    texts = [["The locker of the harbour has the code QF-7781."], ["The ferry is called Medusa."]]
    history = await talk(proxy, memory, MESSAGES, texts)
    reminder = "<system-reminder>What is the code of the locker?</system-reminder>"
    history.append(user(MESSAGES, "What is the name of the ferry?", reminder))
    for _ in range(2):
        await ask(proxy, MESSAGES, history)
        history += [noted(), user(MESSAGES, reminder)]

    first, second = [sent_to(upstream, MESSAGES, at)[1:] for at in (-2, -1)]
    assert "Medusa" in json.dumps(first[-1])
    assert "QF-7781" not in json.dumps(first[-1])
    assert second == [*first, *history[-4:-2]]


async def test_instructions_among_the_messages_that_are_sent_take_room_only_once(
    upstream: ModelServer,
) -> None:
    policy = Policy.default(max_context_tokens=8_000)
    rules = RULES.replace("main", "main, " * 2_400)
    asked = user(MESSAGES, LONG.format(3) * 20)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        app = create_app(memory, anthropic_url=upstream.url)
        async with served(app) as proxy:
            history = [user(MESSAGES, rules, "Hello."), noted(), asked, noted(), asked]
            response = await ask(proxy, MESSAGES, history)

    assert sent_to(upstream, MESSAGES) == history
    assert "x-remanence-omitted" not in response.headers


async def test_instructions_whose_message_leaves_a_full_window_take_room_all_the_same(
    upstream: ModelServer,
) -> None:
    policy = Policy.default(max_context_tokens=8_000, observe_tokens=100_000)
    rules = RULES.replace("main", "main, " * 900)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        app = create_app(memory, anthropic_url=upstream.url)
        async with served(app) as proxy:
            history = [user(MESSAGES, rules, "Hello."), noted()]
            for number in range(30):
                history += [user(MESSAGES, LONG.format(number) * 15), noted()]
            await ask(proxy, MESSAGES, [*history, user(MESSAGES, "And now?")])

    sent = sent_to(upstream, MESSAGES)
    assert rules in texts_of(sent)
    assert count_tokens(json.dumps(sent)) < 8_000


OLDER, NEWER = [{"type": "compaction", "id": f"cmp_{n}", "encrypted_content": "g"} for n in (1, 2)]


async def test_the_newest_compaction_of_openai_is_sent_on_behind_notes(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """It stands for a past that no notes have, in a form that only OpenAI can read."""
    history = [user(RESPONSES, "Book the hotel."), OLDER]
    for number in range(12):
        history.append(user(RESPONSES, LONG.format(number) * 2))
        await ask(proxy, RESPONSES, history)
        history += [noted(), NEWER] if number == 1 else [noted()]
        await observe(memory)
    await ask(proxy, RESPONSES, [*history, user(RESPONSES, "And now?")])

    before, sent = sent_to(upstream, RESPONSES, -2), sent_to(upstream, RESPONSES)
    assert len(sent) < len(history) - 10
    assert before[1] == sent[1] == NEWER
    assert OLDER not in sent


def test_a_reference_to_a_compaction_is_sent_on_like_the_item() -> None:
    reference = {"type": "item_reference", "id": "cmp_1"}
    history = [user(RESPONSES, "Book the hotel."), reference, user(RESPONSES, "And a boat.")]
    units = read_units(OpenAIResponses(), history, {"cmp_1": OLDER})

    assert keep_instructions(units).objects == [reference]
