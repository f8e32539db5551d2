"""From a provider's response to an answer with its usage."""

from datetime import datetime

from pydantic_ai.messages import ModelResponse

from remanence.errors import ModelError
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.types import Usage


def to_answer(
    response: ModelResponse,
    request: ModelRequest,
    *,
    name: str,
    streamed: bool,
    duration_seconds: float,
    at: datetime,
) -> ModelAnswer:
    """The text and usage of a response.

    Raises:
        ModelError: `refused`, `empty` or `bad_answer`.
    """
    if response.finish_reason == "content_filter":
        raise ModelError("refused", f"{name} refused to answer")
    if response.finish_reason == "error":
        raise ModelError("bad_answer", f"{name} reported an error in its answer")
    text = response.text or ""
    complete = _is_complete(response, streamed=streamed)
    if not text.strip():
        raise ModelError("empty", f"{name} returned no text")
    usage = Usage(
        conversation=request.conversation,
        user=request.user,
        purpose=request.purpose,
        model=name,
        # pydantic-ai has already added what was read from and written to the cache.
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cache_read_tokens=response.usage.cache_read_tokens,
        cache_write_tokens=response.usage.cache_write_tokens,
        cost_usd=_cost_usd(response),
        duration_seconds=duration_seconds,
        outcome="ok" if complete else "cut_off",
        at=at,
    )
    return ModelAnswer(text=text, complete=complete, usage=usage)


def _is_complete(response: ModelResponse, *, streamed: bool) -> bool:
    """Whether the model ended by itself; a stream that ends without a reason was cut off."""
    if streamed and "finish_reason" not in (response.provider_details or {}):
        return False
    return response.finish_reason in ("stop", None) and response.state == "complete"


def _cost_usd(response: ModelResponse) -> float | None:
    """The price by the table that pydantic-ai brings along; None for a model it does not list."""
    if response.usage.cost is not None:
        return float(response.usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None
