"""Anthropic's Messages API.

Events: https://docs.claude.com/en/docs/build-with-claude/streaming
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from remanence.server.proxy.api import ProxiedAPI, is_prompt, list_of_objects
from remanence.types import Message
from remanence.wire import anthropic
from remanence.wire.json_value import JsonObject
from remanence.wire.turns import CACHE_CONTROL, LEAD_IN
from remanence.wire.validate import MAX_CACHE_BREAKPOINTS

_TEXTS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}

_HOUR: Final = {**CACHE_CONTROL, "ttl": "1h"}
"""The breakpoint before others of an hour, as the provider lets none outlast an earlier one."""


class AnthropicAnswer:
    """A message of the model; of a streamed one citations are left out, which are never compared."""

    def __init__(self) -> None:
        self._blocks: dict[int, JsonObject] = {}
        self._pieces: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
        self.objects: list[JsonObject] = []

    def take(self, response: JsonObject) -> None:
        if response.get("type") == "message":
            self.objects = [{"role": "assistant", "content": response.get("content")}]

    def feed(self, event: JsonObject) -> None:
        match event:
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                self._blocks[index] = block
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                field = _TEXTS.get(delta.get("type", ""), "")
                if isinstance(text := delta.get(field), str):
                    self._pieces[index, field].append(text)
            case {"type": "message_stop"}:
                content = [self._block(index) for index in sorted(self._blocks)]
                self.objects = [{"role": "assistant", "content": content}]

    def _block(self, index: int) -> JsonObject:
        block = self._blocks[index]
        for field in _TEXTS.values():
            if pieces := self._pieces[index, field]:
                block[field] = "".join([block.get(field) or "", *pieces])
        text = block.pop("partial_json", "")
        return {**block, "input": json.loads(text)} if text else block


class AnthropicMessages(ProxiedAPI):
    """`POST /v1/messages`."""

    provider = "anthropic"
    text_type = "text"
    answer = AnthropicAnswer

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        return (), list_of_objects(body.get("messages"))

    def read(self, one: JsonObject) -> Message:
        return Message.from_anthropic(one)

    def render(self, message: Message) -> list[JsonObject]:
        return anthropic.render(message.role, message.content, message.name)

    def rewrite(
        self,
        body: JsonObject,
        notes: str,
        kept: Sequence[JsonObject],
        tail: Sequence[JsonObject],
    ) -> JsonObject:
        tail = _place_prompts(kept, tail)
        if not notes:
            is_headless = bool(tail) and tail[0].get("role") != "user"
            lead_in = [{"role": "user", "content": LEAD_IN}] if is_headless else []
            return {**body, "messages": [*lead_in, *tail]}
        block: JsonObject = {"type": "text", "text": notes}
        if _breakpoints({**body, "messages": tail}) < MAX_CACHE_BREAKPOINTS:
            after = {"cache_control": body.get("cache_control"), "messages": list(tail)}
            block["cache_control"] = _HOUR if _lasts_an_hour(after) else CACHE_CONTROL
        return {**body, "messages": [{"role": "user", "content": [block]}, *tail]}


def _place_prompts(kept: Sequence[JsonObject], tail: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the *kept* and the newest messages, with the kept prompts where the API allows one.

    That is a single one after the user's turn and before an answer, or at the end:
    https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
    """
    # A prompt of one turn (`clear_at`) ends with the user's next message.
    prompts = [one for one in kept if is_prompt(one) and "clear_at" not in one]
    messages = [*(one for one in kept if not is_prompt(one)), *tail]
    if not prompts:
        return messages
    first = len(messages) - len(tail)
    answers = [n for n, one in enumerate(messages) if one.get("role") == "assistant"]
    place = next((n for n in answers if n >= first and n - 1 not in answers), len(messages))
    before = messages[:place]
    while before and is_prompt(before[-1]):
        prompts.append(before.pop())
    return [*before, *_join_prompts(prompts), *messages[place:]]


def _join_prompts(prompts: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield one prompt with the texts of all, and then those that have other fields."""
    content: list[JsonObject] = []
    others: list[JsonObject] = []
    for one in prompts:
        if one.keys() <= {"role", "content"}:
            content += _content_blocks(one.get("content"))
        else:
            others.append(one)
    if content:
        yield {"role": "system", "content": content}
    yield from others


def _content_blocks(content: Any) -> list[JsonObject]:  # JSON of any kind
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _breakpoints(value: object) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(_breakpoints, value.values()))
    return sum(map(_breakpoints, value)) if isinstance(value, list) else 0


def _lasts_an_hour(value: object) -> bool:
    """Return whether a value has a breakpoint that is kept for an hour."""
    match value:
        case {"cache_control": {"ttl": "1h"}}:
            return True
        case dict():
            return any(map(_lasts_an_hour, value.values()))
        case _:
            return isinstance(value, list) and any(map(_lasts_an_hour, value))
