"""Bodies of requests to the service, and of its responses."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    TypeAdapter,
)

from remanence.context.context import ContextStats, Omitted
from remanence.types import Event, FactType, MessageKind, Role
from remanence.wire.json_value import JsonObject

MessageFormat = Literal["openai", "anthropic"]
RequestFormat = Literal["anthropic", "openai", "openai_responses", "gemini", "text"]

EVENT: Final = TypeAdapter(Event)
"""The JSON of an event, the same in a stream and in a webhook."""

MAX_MESSAGES: Final = 1_000
"""The most messages of a request: all are on the tape, or none."""

_NUMBER: Final = re.compile(r"\s*[-+]?[\d.]+\s*")


def _reject_number(value: object) -> object:
    if isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise ValueError("use a time as text, such as 2026-05-01T09:30:00+02:00")
    return value


def _require_utc(moment: datetime) -> datetime:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("use a time that is within the years 1 to 9999 in UTC") from None
    return moment


Moment = Annotated[AwareDatetime, BeforeValidator(_reject_number), AfterValidator(_require_utc)]
"""A time with an offset, never a number."""


def require_unicode(text: str) -> str:
    """Return a text that every database takes.

    Raises:
        ValueError: it has a NUL character or a lone surrogate.
    """
    if (position := text.find("\0")) >= 0:
        raise ValueError(f"it has a NUL character at position {position}: remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = f"{text[error.start]!r} at position {error.start}"
        raise ValueError(f"it has the lone surrogate {place}: send valid Unicode") from None
    return text


Text = Annotated[str, AfterValidator(require_unicode)]
"""A text without NUL and lone surrogates."""


def _require_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("use the name of a time zone, such as Europe/Berlin or UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_require_zone)]
"""The IANA name of a time zone that this machine knows."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewConversation(_Body):
    """A conversation to begin; without an id it gets a new one."""

    id: Text | None = None


class ConversationDocument(BaseModel):
    """A conversation: its tape ends with `last_seq`, its notes cover it up to `observed_seq`.

    `failures` is how often in a row the step that fails was tried, and `last_error` why it did.
    """

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(validation_alias=AliasChoices(AliasPath("ref", "id"), "id"))
    tenant: str = Field(validation_alias=AliasChoices(AliasPath("ref", "tenant"), "tenant"))
    user: str | None
    created_at: datetime
    last_seq: int
    observed_seq: int
    active_seq: int
    last_message_at: datetime | None
    failures: int = 0
    last_error: str | None = None


class ConversationsDocument(BaseModel):
    """A page of conversations in the order of tenant and id; go on with `after`."""

    conversations: list[ConversationDocument]
    after: str | None = Field(description="The `after` of the next page; null at the end.")


class NewMessages(_Body):
    """Messages in the format of a provider; each may have an `id` and a `created_at` of its own.

    The same message under the same id is kept once, so a request may be repeated.
    """

    messages: list[JsonObject] = Field(
        max_length=MAX_MESSAGES,
        examples=[[{"role": "user", "content": "My flight is LH 454.", "id": "m-1"}]],
    )
    format: MessageFormat = "openai"


class MessageDocument(BaseModel):
    """A message on the tape; `rendered` is what a provider would get for it."""

    seq: int
    id: str | None
    role: Role
    kind: MessageKind
    created_at: datetime | None
    tokens: int
    text: str
    rendered: list[JsonObject] = []


class MessagesDocument(BaseModel):
    """Messages in the order of the tape."""

    messages: list[MessageDocument]


class ContextBody(_Body):
    """Additions of the caller to a context; see `conversation.context` of the library."""

    system: Text = ""
    identity: Text = ""
    knowledge: list[Text] = []
    recall: Text | None = None
    channel: Text | None = Field(default=None, max_length=100)
    model: Text | None = None
    format: RequestFormat = "anthropic"


class ContextDocument(BaseModel):
    """A context: the fields of a provider's request, its tokens, and what it leaves out."""

    request: JsonObject
    stats: ContextStats
    omitted: list[Omitted]


class FlushBody(_Body):
    """Background work to do at once; by default that which is due."""

    everything: bool = Field(
        default=False, description="Also work that is not due yet: observe all messages."
    )
    retry: bool = Field(
        default=False,
        description="Also steps that failed and wait, and messages left without notes by failures.",
    )


class ForgetBody(_Body):
    """Messages and facts to forget by id, or a query that only finds candidates."""

    message_ids: list[Text] = []
    facts: list[Text] = []
    query: Text | None = None
    everywhere: bool = Field(
        default=False, description="Look for the query in all conversations of the user."
    )


class ChatBody(_Body):
    """A turn; without a text or message, the unanswered message on the tape is answered."""

    text: Text | None = Field(default=None, description="What the user says.")
    message: JsonObject | None = Field(
        default=None,
        description="Instead of a text, a message in the form of `format`, with images or files.",
        examples=[{"role": "user", "content": "Which gate?", "id": "m-7"}],
    )
    format: MessageFormat = "openai"
    stream: StrictBool = Field(default=False, description="Answer as server-sent events.")
    user: Text | None = Field(default=None, description="The user of the conversation.")
    tenant: Text | None = Field(
        default=None, description="The tenant; by default `default`, or that of the key."
    )
    channel: Text | None = Field(
        default=None,
        max_length=100,
        description="The channel of the user, such as `whatsapp`; `web` needs no hint.",
    )
    identity: Text | None = Field(
        default=None, max_length=4_000, description="Instead of the server's `--identity`."
    )
    timezone: TimeZone | None = Field(
        default=None,
        description='The user\'s time zone, by which days such as "tomorrow" are reckoned.',
        examples=["Europe/Berlin"],
    )


class TextDocument(BaseModel):
    """A piece of an answer, the data of an event `text`."""

    text: str


class ToolCallDocument(BaseModel):
    """A call of a tool, the data of an event `tool_call`; `arguments` is JSON as text."""

    id: str
    name: str
    arguments: str


class ToolResultDocument(BaseModel):
    """The result of a tool, the data of an event `tool_result`."""

    id: str
    text: str
    is_error: bool


class UsageDocument(BaseModel):
    """Usage of model calls; input includes tokens read from and written to the cache."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None


class ReplyDocument(BaseModel):
    """The answer; `complete` is false if it was cut off at the output limit."""

    conversation: str
    text: str
    complete: bool
    usage: UsageDocument
    calls: list[UsageDocument]


class FactDocument(BaseModel):
    """A fact; it is valid while `valid_to` is null; its source is `conversation` with two seqs."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    summary: str
    type: FactType
    tags: tuple[str, ...]
    conversation: str | None
    first_seq: int | None
    last_seq: int | None
    created_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None


class FactsDocument(BaseModel):
    """Facts of one user, the last written first, or for a query the best match first."""

    facts: list[FactDocument]
    after: str | None = Field(description="The `after` of the next page; null at the end.")


class NewFact(_Body):
    """A fact to save; it supersedes one that it contradicts, and the one with the id `replaces`.

    With a `conversation` it comes from there, and is erased with it or with its newest messages.
    """

    summary: Text = Field(examples=["Ana is allergic to nuts."])
    type: FactType = "knowledge"
    tags: list[Text] = []
    valid_from: Moment | None = None
    replaces: Text | None = None
    conversation: Text | None = None
