"""Memory as tools for a model, in a chat or any agent loop.

```python
chat = Chat(conversation, model="anthropic:claude-haiku-4-5", tools=memory_tools(conversation))

tools = memory_tools(conversation)
definitions = [tool.to_openai() for tool in tools]
answer = await next(tool for tool in tools if tool.name == call.name).handler(call.arguments)
```
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, get_args

from remanence.conversation import Conversation, require_conversation
from remanence.errors import InvalidArgument, RemanenceError, WrongUser
from remanence.notes.redact import redact
from remanence.recall.snippets import redact_snippet
from remanence.types import ErrorText, Fact, FactType, Hit, Receipt, Role, Tag, Tool
from remanence.wire.json_value import JsonObject

Arguments: TypeAlias = Mapping[str, Any]  # as a model filled in the schema
Handler: TypeAlias = Callable[[Arguments], Awaitable[str]]

MAX_HITS = 20
DEFAULT_HITS = 5
RECALL_TOKENS = 2_000
MAX_CANDIDATES = 40
PAGE = 500
_FORGET = "memory_forget"
_LIMIT: JsonObject = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_HITS,
    "default": DEFAULT_HITS,
}
_TEXTS: JsonObject = {"type": "array", "items": {"type": "string"}}
_NOTHING = "No fact was found. Try other words, or no query for what was learned last."
_NONE = "Nothing is known about the user yet."
_NOT_FOUND = "Nothing was found beyond the messages that you see already."
_REST = ". Messages that say it stay: find them with a query, and forget them by their ids."


def memory_tools(conversation: Conversation) -> tuple[Tool, ...]:
    """Return `memory_search`, `memory_save`, `memory_forget` and `recall` for one conversation.

    The first three work on the facts of the conversation's user only; `memory_forget` also erases
    messages, in all of the user's conversations.

    Raises:
        TypeError: *conversation* is not async.
    """
    require_conversation(conversation)
    calls = _Calls(conversation)
    return (
        _tool(
            "memory_search",
            "Search what is known about the user from past conversations. Use it before you "
            "say that you do not know something about them.",
            calls.search,
            required=[],
            query=_text("What to look for; without it, what was learned last."),
            limit=_LIMIT,
        ),
        _tool(
            "memory_save",
            "Keep a fact about the user for later conversations: who they are, what they "
            "prefer, what was decided. Never keep passwords or keys.",
            calls.save,
            required=["summary"],
            summary=_text("One sentence that is understood without this conversation."),
            type=_choice(FactType),
            tags=_TEXTS,
            replaces=_text("The id of a fact that this one corrects."),
        ),
        _tool(
            _FORGET,
            "Forget what the user asks you to, for good. First call it with a query: it lists "
            "facts and messages that say it. Then call it with their ids, those that are meant.",
            calls.forget,
            required=[],
            query=_text("What is to be forgotten; nothing is erased yet."),
            id=_text("The id of one fact."),
            facts=_TEXTS,
            messages=_TEXTS,
            conversation=_text(
                "The only conversation to look in, or that of the messages if it is another."
            ),
        ),
        _tool(
            "recall",
            "Look up what was said earlier in this conversation, word for word where needed, "
            "and facts about the user. Answers name the messages they come from.",
            calls.recall,
            required=["query"],
            query=_text("What to look for."),
            limit=_LIMIT,
            since=_text("Only from this day or time on, such as 2026-05-31."),
            until=_text("Only before this day or time."),
            tag=_choice(Tag),
            role=_choice(Role),
        ),
    )


class _Calls:
    """The handlers of the tools."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def search(self, given: Mapping[str, Any]) -> str:  # as the schema says, or not
        user, tenant = await self._owner()
        known, limit = self._conversation.facts, _number(given, "limit")
        if (query := _optional(given, "query")) is None:
            facts = await known.list(user=user, tenant=tenant, limit=limit)
        else:
            facts = await known.search(query, user=user, tenant=tenant, limit=limit)
        nothing = _NONE if query is None else _NOTHING
        return "\n".join(_fact_line(fact) for fact in facts) or nothing

    async def save(self, given: Mapping[str, Any]) -> str:  # as above
        user, tenant = await self._owner()
        replaces = _optional(given, "replaces")
        if replaces is not None:
            old = await self._conversation.facts.get(replaces, user=user, tenant=tenant)
            if old is None or old.valid_to is not None:
                raise InvalidArgument(
                    f"replaces {replaces!r:.80} is the id of no current fact: memory_search lists "
                    "facts with their ids"
                )
        fact = await self._conversation.facts.save(
            _string(given, "summary"),
            user=user,
            tenant=tenant,
            type=_chosen(given, "type", FactType) or "knowledge",
            tags=_strings(given, "tags"),
            replaces=replaces,
            conversation=self._conversation.id,
        )
        return f"Kept: {fact.summary} (id: {fact.id})"

    async def forget(self, given: Mapping[str, Any]) -> str:  # as above
        user, tenant = await self._owner()
        known = await self._conversation.facts.list(user=user, tenant=tenant, history=True)
        facts = [*_strings(given, "facts"), *_strings(given, "id")]
        messages = _strings(given, "messages")
        if (query := _optional(given, "query")) is not None:
            if facts or messages:
                raise InvalidArgument(
                    "a query only finds what is meant: call memory_forget again with the ids alone"
                )
            said_in = await self._conversation_of(given)
            everywhere = said_in is self._conversation
            found = await said_in.forget(query=query, everywhere=everywhere)
            return self._candidates(found, known)
        if not facts and not messages:
            raise InvalidArgument("id is missing: give a query first, then the ids that it found")
        named = {fact.id: fact for fact in known if fact.id in facts}
        for fact_id in facts:
            if fact_id not in named:
                return f"There is no fact with the id {fact_id!r}: search for it first."
        said_in = await self._conversation_of(given)
        try:
            receipt = await said_in.forget(*messages, facts=facts)
        except InvalidArgument as error:
            raise InvalidArgument(
                f"{error}; messages of another conversation need its id as conversation, "
                "one conversation for each call"
            ) from error
        await self._erase_listings({*facts, *messages, *receipt.facts, *receipt.message_ids})
        gone = ", ".join((*facts, *receipt.message_ids))
        said = not messages and any(fact.first_seq for fact in named.values())
        return f"Forgotten: {gone}{_REST if said else ''}"

    async def _erase_listings(self, forgotten: Collection[str]) -> None:
        """Erase the results of `memory_forget` in this conversation that list one of these ids."""
        tools: dict[str, str] = {}
        ids, listings, after = set(forgotten), [], 0
        while page := await self._conversation.messages(after=after, limit=PAGE):
            for message in page:
                tools |= {call.id: call.name for call in message.tool_calls}
                results = [
                    each for each in message.tool_results if tools.get(each.call_id) == _FORGET
                ]
                if message.id and any(_lists_any(result.text, ids) for result in results):
                    listings.append(message.id)
                    ids.add(message.id)  # a later listing may repeat this one
            after = page[-1].seq
        if listings:
            await self._conversation.forget(*listings)

    async def _conversation_of(self, given: Mapping[str, Any]) -> Conversation:  # as above
        name = _optional(given, "conversation")
        if name is None:
            return self._conversation
        other = self._conversation.sibling(name)
        try:
            state = await other.state()
        except WrongUser:  # answered like one that does not exist, as the model need not know
            state = None
        if not state or not state.last_seq or state.owner != await self._conversation.owner():
            raise InvalidArgument(
                f"the user has no conversation {name!r:.80}: use one from the results"
            )
        return other

    def _candidates(self, found: Receipt, known: Sequence[Fact]) -> str:
        lines = [_fact_line(fact) for fact in known if fact.id in found.facts]
        for place in found.messages[:MAX_CANDIDATES]:
            is_other = place.conversation != self._conversation.id
            of = f", conversation: {place.conversation}" if is_other else ""
            lines.append(f"- message {place.seq}: {redact(place.text)} (id: {place.id}{of})")
        if more := len(found.messages[MAX_CANDIDATES:]):
            lines.append(f"- and {more} more messages: ask for it in more words")
        return "\n".join(lines) or "Nothing says that."

    async def recall(self, given: Mapping[str, Any]) -> str:  # as above
        query = _string(given, "query")
        hits = await self._conversation.recall(
            query,
            limit=_number(given, "limit"),
            max_tokens=RECALL_TOKENS,
            since=_moment(given, "since"),
            until=_moment(given, "until"),
            tag=_chosen(given, "tag", Tag),
            role=_chosen(given, "role", Role),
            unseen=True,
        )
        return "\n".join(_hit_line(hit, query) for hit in hits) or _NOT_FOUND

    async def _owner(self) -> tuple[str, str]:
        owner = await self._conversation.owner()
        if owner is None:
            raise InvalidArgument(
                "this conversation has no user to keep facts for: name one in the program, as in "
                'memory.conversation(id, user="ana")'
            )
        return owner.user, owner.tenant


def _tool(
    name: str, description: str, call: Handler, *, required: list[str], **properties: JsonObject
) -> Tool:
    async def handler(given: Arguments | str) -> str:
        try:
            return await call(_arguments(given, known=properties))
        except RemanenceError as error:
            return ErrorText(f"Error: {error}")

    parameters = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return Tool(name=name, description=description, parameters=parameters, handler=handler)


def _arguments(given: Arguments | str, *, known: Collection[str]) -> Arguments:
    """Return the arguments of a call, which some providers send as a JSON string.

    Raises:
        InvalidArgument: they are no JSON object, or one of them is not *known*.
    """
    value: object = given
    if isinstance(given, str):
        try:
            value = json.loads(given or "{}")
        except ValueError as error:
            raise InvalidArgument(
                f"arguments {given!r:.80} are not JSON: give a JSON object"
            ) from error
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"arguments {given!r:.80} are not an object: give a JSON object")
    if unknown := [name for name in value if name not in known]:
        raise InvalidArgument(f"argument {unknown[0]!r:.80} is unknown: use {', '.join(known)}")
    return value


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _choice(literal: object) -> JsonObject:
    return {"type": "string", "enum": list(get_args(literal))}


def _string(given: Mapping[str, Any], name: str) -> str:  # as above
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgument(f"{name} {value!r:.80} is not a text: give a text")
    if value is None or not value.strip():
        raise InvalidArgument(f"{name} is missing: give a text")
    return value


def _strings(given: Mapping[str, Any], name: str) -> list[str]:  # as above
    value = given.get(name) or ()
    return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]


def _optional(given: Mapping[str, Any], name: str) -> str | None:  # as above
    return _string(given, name) if given.get(name) else None


def _number(given: Mapping[str, Any], name: str) -> int:  # as above
    value = given.get(name)
    if value is None:
        return DEFAULT_HITS
    if isinstance(value, bool) or value not in range(1, MAX_HITS + 1):
        raise InvalidArgument(
            f"{name} {value!r:.80} is not a whole number from 1 to {MAX_HITS}: give one"
        )
    return int(value)


def _chosen(given: Mapping[str, Any], name: str, literal: object) -> Any:  # one of its choices
    value, choices = _optional(given, name), get_args(literal)
    if value is not None and value not in choices:
        raise InvalidArgument(f"{name} {value!r:.80} is unknown: use {', '.join(choices)}")
    return value


def _moment(given: Mapping[str, Any], name: str) -> datetime | None:  # as above
    value = _optional(given, name)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidArgument(
            f"{name}={value!r} is not a date: write one such as 2026-05-31"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _fact_line(fact: Fact) -> str:
    return f"- [{fact.type}] {fact.summary} ({fact.valid_from:%Y-%m-%d}, id: {fact.id})"


def _lists_any(listing: str, ids: Collection[str]) -> bool:
    """Return whether a list of facts and messages has one of these ids."""
    return any(f"id: {each}{end}" in listing for each in ids for end in (")", ", conversation: "))


def _hit_line(hit: Hit, query: str) -> str:
    text = redact_snippet(hit.snippet, hit.text, query)
    day = f"{hit.at:%Y-%m-%d} " if hit.at else ""
    if hit.kind == "fact":
        return f"- {day}fact (id: {hit.source_id}): {text}"
    last = f"-{hit.last_seq}" if hit.last_seq != hit.first_seq else ""
    kind = f"{hit.role} message" if hit.role else "note of message"
    speaker = f" by {hit.speaker}" if hit.speaker not in (None, hit.role) else ""
    return f"- {day}{kind} {hit.first_seq}{last}{speaker}: {text}"
