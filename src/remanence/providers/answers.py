"""Conversion of a provider's response to an answer with its usage."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from pydantic_ai.messages import ModelResponse, TextPart

from remanence.costs.prices import price
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers.meter import UnusableAnswer
from remanence.types import Usage

_PROBLEMS: Final = {
    "bad_answer": "reported an error in its answer",
    "empty": "returned no text",
    "refused": "refused to answer",
}


def to_answer(
    response: ModelResponse,
    request: ModelRequest,
    *,
    name: str,
    streamed: bool,
    duration_seconds: float,
    at: datetime,
) -> ModelAnswer:
    """Return the text blocks of a response, joined by line breaks, and its usage.

    Raises:
        UnusableAnswer: `refused`, `empty` or `bad_answer`.
    """
    blocks = (part.content for part in response.parts if isinstance(part, TextPart))
    text = "\n".join(filter(None, blocks))
    complete = _is_complete(response, streamed=streamed)
    problem = _problem(response, text)
    usage = Usage(
        conversation=request.conversation,
        user=request.user,
        purpose=request.purpose,
        model=name,
        # pydantic-ai has already included cache reads and writes.
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cache_read_tokens=response.usage.cache_read_tokens,
        cache_write_tokens=response.usage.cache_write_tokens,
        cost_usd=None if response.usage.cost is None else float(response.usage.cost),
        duration_seconds=duration_seconds,
        outcome=problem or ("ok" if complete else "cut_off"),
        at=at,
    )
    if usage.cost_usd is None:
        usage = replace(usage, cost_usd=price(name, usage))
    if problem is not None:
        raise UnusableAnswer(problem, f"{name} {_PROBLEMS[problem]}", usage=usage)
    return ModelAnswer(text=text, complete=complete, usage=usage)


def _problem(response: ModelResponse, text: str) -> str | None:
    if response.finish_reason == "content_filter":
        return "refused"
    if response.finish_reason == "error":
        return "bad_answer"
    return None if text.strip() else "empty"


def _is_complete(response: ModelResponse, *, streamed: bool) -> bool:
    """Return whether the answer is complete; a stream without a finish reason was cut off."""
    if streamed and "finish_reason" not in (response.provider_details or {}):
        return False
    return response.finish_reason in ("stop", None) and response.state == "complete"
