"""Spans of background steps and model calls, without texts of messages or errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode

from remanence.errors import ModelError
from remanence.telemetry.logs import current_request, request_id
from remanence.types import ConversationRef, Purpose, Usage

BUCKETS_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)

_PROVIDERS: Final = {"bedrock": "aws.bedrock", "google": "gcp.gemini", "mistral": "mistral_ai"}
"""Providers that have another name in the semantic conventions."""

_MAX_PROXIED: Final = 100
_proxied_models: set[str] = set()
"""Names that clients of the proxies chose, and that label metrics: each is a series of the process."""

_CHAT: Final = {"gen_ai.operation.name": "chat"}

_tracer = trace.get_tracer("remanence")
_meter = metrics.get_meter("remanence")
_duration = _meter.create_histogram(
    "gen_ai.client.operation.duration",
    unit="s",
    explicit_bucket_boundaries_advisory=BUCKETS_SECONDS,
)


def model_attributes(model: str) -> dict[str, str]:
    """Return the provider and name of a model as attributes of the semantic conventions."""
    provider, colon, name = model.partition(":")
    return {
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider) if colon else "_OTHER",
        "gen_ai.request.model": name if colon else model,
    }


def call_attributes(usage: Usage) -> dict[str, str]:
    """Return the labels of a call for metrics; `other` is the model of a proxied call beyond a limit."""
    model = usage.model
    if usage.purpose == "proxy" and model not in _proxied_models:
        if len(_proxied_models) < _MAX_PROXIED:
            _proxied_models.add(model)
        else:
            model = f"{model.partition(':')[0]}:other"
    return {**model_attributes(model), "remanence.purpose": usage.purpose}


class Cause(NamedTuple):
    """The request that caused work: its id and span."""

    request: str
    span: SpanContext


_cause: ContextVar[Cause | None] = ContextVar("remanence_cause", default=None)


def current_cause() -> Cause | None:
    """Return the current request, as the cause of later work."""
    cause = Cause(current_request(), trace.get_current_span().get_span_context())
    return cause if cause.span.is_valid or cause.request != "-" else None


@contextmanager
def caused_by(cause: Cause | None) -> Iterator[None]:
    """Link the spans of steps in the block to a request, and add its id to their log records."""
    if cause is None:
        yield
        return
    token = _cause.set(cause)
    try:
        with request_id(cause.request):
            yield
    finally:
        _cause.reset(token)


@contextmanager
def current_span(name: str, **options: Any) -> Iterator[Span]:  # passed on as they are
    """Trace a block; errors are recorded by reason or type only, as their text may be private."""
    with _tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False, **options
    ) as span:
        try:
            yield span
        except Exception as error:
            reason = error.reason if isinstance(error, ModelError) else type(error).__name__
            _fail(span, reason)
            raise


@contextmanager
def step_span(step: str, conversation_id: str) -> Iterator[None]:
    """Trace a background step as a separate trace, linked to the request that caused it."""
    cause = _cause.get()
    links = [Link(cause.span)] if cause is not None and cause.span.is_valid else []
    context = None if cause is None else Context()
    attributes = {"gen_ai.conversation.id": conversation_id}
    with current_span(f"remanence.{step}", context=context, links=links, attributes=attributes):
        yield


def begin_call(model: str, purpose: Purpose, conversation: ConversationRef | None) -> Span:
    """Begin the span of a model call, which `end_call` ends."""
    attributes = {**_CHAT, **model_attributes(model), "remanence.purpose": purpose}
    if conversation is not None:
        attributes["gen_ai.conversation.id"] = conversation.id
    name = f"chat {attributes['gen_ai.request.model']}"
    return _tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)


def end_call(span: Span, usage: Usage) -> None:
    """End the span of a model call with its usage, and record the duration."""
    attributes = {**_CHAT, **model_attributes(usage.model)}
    if usage.outcome != "ok":
        attributes["error.type"] = usage.outcome
        _fail(span, usage.outcome)
    span.set_attributes(
        {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        }
    )
    span.end()
    _duration.record(usage.duration_seconds, attributes)


def _fail(span: Span, reason: str) -> None:
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)
