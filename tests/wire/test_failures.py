import asyncio
import logging
from datetime import timedelta
from email.utils import format_datetime
from typing import Literal

import pytest
from tests.wire.dialects import Ending, Reply
from tests.wire.reach import KEY, Wire
from tests.wire.servers import Compressed, Fail, ModelServer, Raw, Step

from remanence.clock import SystemClock
from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions, open_model
from remanence.providers.clients import MAX_ANSWER_BYTES
from remanence.providers.function import MAX_ANSWER_CHARACTERS

TOO_LONG = {
    "anthropic": Fail(400, "prompt is too long: 210000 tokens > 200000", "invalid_request_error"),
    "openai": Fail(400, "This is too much.", "context_length_exceeded"),
}


async def failure_of(wire: Wire, ask: ModelRequest, *steps: Step) -> ModelError:
    wire.server.script(*steps)
    with pytest.raises(ModelError) as caught:
        await wire.open().complete(ask)
    assert len(wire.server.received) == 1
    return caught.value


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "bad_request"),
        (401, "auth"),
        (403, "auth"),
        (404, "unknown_model"),
        (413, "too_long"),
        (422, "bad_request"),
        (429, "rate_limit"),
        (500, "server"),
        (502, "server"),
        (503, "overloaded"),
        (529, "overloaded"),
    ],
)
async def test_a_status_becomes_a_reason_and_is_tried_once(
    wire: Wire, ask: ModelRequest, status: int, reason: str
) -> None:
    error = await failure_of(wire, ask, Fail(status))

    assert error.reason == reason
    assert str(error).startswith(wire.name)
    assert error.retry_after_seconds is None


async def test_a_request_that_does_not_fit_the_model_is_told_apart(
    wire: Wire, ask: ModelRequest
) -> None:
    error = await failure_of(wire, ask, TOO_LONG[wire.provider])

    assert error.reason == "too_long"


async def test_a_server_that_says_so_in_words_alone_is_understood(
    wire: Wire, ask: ModelRequest
) -> None:
    words = "the request exceeds the available context size, try increasing it"

    error = await failure_of(wire, ask, Fail(400, words))

    assert error.reason == "too_long"
    assert words in str(error)


async def test_a_request_that_is_refused_for_want_of_credit_is_one_of_quota(
    wire: Wire, ask: ModelRequest
) -> None:
    words = "Your credit balance is too low to access the Anthropic API."

    error = await failure_of(wire, ask, Fail(400, words))

    assert error.reason == "quota"
    assert words in str(error)


async def test_the_pause_that_a_provider_asks_for_is_told_in_seconds(
    wire: Wire, ask: ModelRequest
) -> None:
    error = await failure_of(wire, ask, Fail(429, headers={"retry-after": "7"}))

    assert (error.reason, error.retry_after_seconds) == ("rate_limit", 7)


async def test_milliseconds_that_a_provider_asks_to_wait_go_before_its_seconds(
    wire: Wire, ask: ModelRequest
) -> None:
    asked = {"retry-after-ms": "250500", "retry-after": "251"}
    error = await failure_of(wire, ask, Fail(429, headers=asked))

    assert error.retry_after_seconds == 250.5


@pytest.mark.parametrize("pause", ["1000000000000", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_the_longest_pause_is_a_week(wire: Wire, ask: ModelRequest, pause: str) -> None:
    error = await failure_of(wire, ask, Fail(429, headers={"retry-after": pause}))

    assert error.retry_after_seconds == 7 * 86_400


async def test_the_pause_may_be_given_as_a_date(wire: Wire, ask: ModelRequest) -> None:
    hence = format_datetime(SystemClock().now() + timedelta(hours=1), usegmt=True)

    error = await failure_of(wire, ask, Fail(429, headers={"retry-after": hence}))

    assert error.retry_after_seconds is not None
    assert 3_000 < error.retry_after_seconds <= 3_600


async def test_a_refused_connection_is_a_connection_failure(
    wire: Wire, ask: ModelRequest, refusing_port: int
) -> None:
    spec = wire.spec.replace(str(wire.server.port), str(refusing_port))
    spec = spec.replace("http://", "http://ana:secret-word@")

    with pytest.raises(ModelError) as caught:
        await open_model(spec, options=ModelOptions(attempts=1)).complete(ask)

    assert caught.value.reason == "connection"
    assert f"127.0.0.1:{refusing_port}" in str(caught.value)
    assert "secret-word" not in str(caught.value)


async def test_a_server_that_fails_is_named_by_its_address(wire: Wire, ask: ModelRequest) -> None:
    error = await failure_of(wire, ask, Fail(500, "cuda out of memory"))

    assert error.reason == "server"
    assert f"127.0.0.1:{wire.server.port} (HTTP 500)" in str(error)
    assert "cuda" not in str(error)  # such texts may repeat what was sent


@pytest.mark.parametrize("trouble", ["reset", "broken off"])
async def test_a_connection_that_breaks_is_a_connection_failure(
    wire: Wire, ask: ModelRequest, trouble: Step
) -> None:
    error = await failure_of(wire, ask, trouble)

    assert error.reason == "connection"


@pytest.mark.parametrize("trouble", ["slow header", "stall"])
async def test_an_answer_that_does_not_come_ends_in_a_timeout(
    wire: Wire, ask: ModelRequest, trouble: Step
) -> None:
    wire.server.script(trouble)

    with pytest.raises(ModelError) as caught:
        await wire.open(timeout_seconds=0.3).complete(ask)

    assert caught.value.reason == "timeout"
    assert "0.3 s" in str(caught.value)


@pytest.mark.parametrize("trouble", ["garbage", "ends early"])
async def test_an_answer_that_is_not_json_is_a_bad_answer(
    whole_wire: Wire, ask: ModelRequest, trouble: Step
) -> None:
    error = await failure_of(whole_wire, ask, trouble)

    assert error.reason == "bad_answer"


async def test_a_web_page_instead_of_an_answer_is_a_failure_of_the_server(
    wire: Wire, ask: ModelRequest
) -> None:
    """As a gateway or a login sends it, with the status 200: no message is the cause of it."""
    error = await failure_of(wire, ask, "no json")

    assert error.reason == "server"
    assert str(error).endswith("the answer is a web page: check the address")


@pytest.mark.parametrize(
    "document",
    ["<html>\udcff\udcfe oops", "[" * 100_000, "9" * 5_000, "7", "null"],
    ids=["no UTF-8", "deeply nested", "a huge number", "a number", "null"],
)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_answer_that_cannot_be_decoded_is_a_bad_answer_of_each_provider(
    server: ModelServer, ask: ModelRequest, *, provider: str, stream: bool, document: str
) -> None:
    options = ModelOptions(attempts=1, stream=stream)
    url = server.url if provider == "anthropic" else f"{server.url}/v1"
    server.script(Raw((document,)))

    with pytest.raises(ModelError, match="not of its protocol") as caught:
        await open_model(f"{provider}:my-model@{url}", options=options).complete(ask)

    assert caught.value.reason == "bad_answer"
    assert "oops" not in str(caught.value)


async def test_a_stream_that_ends_early_is_a_connection_failure(
    stream_wire: Wire, ask: ModelRequest
) -> None:
    error = await failure_of(stream_wire, ask, "ends early")

    assert error.reason == "connection"


async def test_a_stream_without_events_is_empty(stream_wire: Wire, ask: ModelRequest) -> None:
    error = await failure_of(stream_wire, ask, "garbage")

    assert error.reason in {"bad_answer", "empty"}


async def test_an_error_inside_a_stream_has_its_reason(
    stream_wire: Wire, ask: ModelRequest
) -> None:
    error = await failure_of(stream_wire, ask, "error event")

    assert error.reason == "overloaded"


@pytest.mark.parametrize("text", ["", "  \n "])
async def test_an_answer_without_text_is_empty(wire: Wire, ask: ModelRequest, text: str) -> None:
    error = await failure_of(wire, ask, Reply(text))

    assert error.reason == "empty"


@pytest.mark.parametrize("thinking", ["", "The gate"])
async def test_an_output_limit_that_leaves_no_text_is_named(
    wire: Wire, ask: ModelRequest, thinking: str
) -> None:
    error = await failure_of(wire, ask, Reply("", thinking=thinking, ending="length"))

    assert error.reason == "cut_off"
    assert "raise max_output_tokens" in str(error)


@pytest.mark.parametrize("ending", ["refusal", "filter"])
async def test_a_refusal_is_no_answer(wire: Wire, ask: ModelRequest, ending: Ending) -> None:
    error = await failure_of(wire, ask, Reply("I will not do that.", ending=ending))

    assert error.reason == "refused"


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_a_key_that_the_provider_repeats_is_neither_raised_nor_logged(
    wire: Wire, ask: ModelRequest, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    model = wire.open()
    wire.server.script(Fail(status, "the key {key} is not good"))

    with pytest.raises(ModelError) as caught:
        await model.complete(ask)
    logging.getLogger("test").error("failed", exc_info=caught.value)

    assert KEY in str(wire.server.received[0].headers)
    assert KEY not in caplog.text
    assert KEY not in f"{caught.value} {caught.value!r} {model!r} {vars(caught.value)}"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_a_password_in_a_base_url_is_not_told(server: ModelServer, ask: ModelRequest) -> None:
    url = server.url.replace("http://", "http://ana:open-sesame@")
    model = open_model(f"openai:my-model@{url}/v1", options=ModelOptions(attempts=1))
    server.script(Fail(400, "bad user ana:open-sesame"))

    with pytest.raises(ModelError) as caught:
        await model.complete(ask)

    assert "open-sesame" not in f"{caught.value!r} {model.name} {model!r}"


@pytest.mark.parametrize("name", ["anthropic:claude-haiku-4-5", "openai:gpt-4o-mini"])
def test_a_missing_key_is_told_when_the_model_is_opened(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = name.partition(":")[0].upper() + "_API_KEY"
    monkeypatch.delenv(variable)

    with pytest.raises(ModelError, match=variable) as caught:
        open_model(name)

    assert caught.value.reason == "auth"


def test_an_unknown_provider_is_told_when_the_model_is_opened() -> None:
    with pytest.raises(ModelError, match="nobody:great-model") as caught:
        open_model("nobody:great-model")

    assert caught.value.reason == "unknown_model"


async def test_a_key_that_went_away_is_told_by_the_call(
    ask: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model("anthropic:claude-haiku-4-5")
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY") as caught:
        await model.complete(ask)

    assert caught.value.reason == "auth"


async def test_an_answer_that_drips_in_ends_with_the_time_of_a_call(
    wire: Wire, ask: ModelRequest
) -> None:
    wire.server.script("drip")
    with pytest.raises(ModelError) as caught:
        async with asyncio.timeout(60):
            await wire.open(timeout_seconds=0.3).complete(ask)

    assert caught.value.reason == "timeout"


async def test_an_answer_without_end_is_not_read_beyond_a_bound(
    wire: Wire, ask: ModelRequest
) -> None:
    wire.server.script("flood")
    with pytest.raises(ModelError) as caught:
        await wire.open().complete(ask)

    assert caught.value.reason == "bad_answer"
    assert "16,777,216 bytes" in str(caught.value)
    assert len(wire.server.received) == 1


async def test_a_function_that_returns_more_than_any_model_writes_has_failed(
    ask: ModelRequest,
) -> None:
    async def endless(_request: ModelRequest) -> str:
        return "a" * (MAX_ANSWER_CHARACTERS + 1)

    with pytest.raises(ModelError, match="more than the limit of 8,000,000"):
        await open_model(endless).complete(ask)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_compressed_answer_is_read(
    wire: Wire, ask: ModelRequest, encoding: Literal["gzip", "deflate"]
) -> None:
    wire.server.script(Compressed(encoding, Reply("Gate B42."), padding_bytes=200_000))
    answer = await wire.open().complete(ask)

    assert answer.text == "Gate B42."


async def test_a_small_body_that_decompresses_to_a_large_one_is_not_read_beyond_a_bound(
    wire: Wire, ask: ModelRequest
) -> None:
    wire.server.script(Compressed(padding_bytes=MAX_ANSWER_BYTES))
    with pytest.raises(ModelError) as caught:
        await wire.open().complete(ask)

    assert caught.value.reason == "bad_answer"
    assert "16,777,216 bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("step", "words"),
    [(Compressed("br"), "'br', which was not requested"), (Compressed(is_broken=True), "not gzip")],
    ids=["unknown", "broken"],
)
async def test_an_answer_that_cannot_be_decompressed_is_a_bad_answer(
    wire: Wire, ask: ModelRequest, step: Step, words: str
) -> None:
    wire.server.script(step)
    with pytest.raises(ModelError, match=words) as caught:
        await wire.open().complete(ask)

    assert caught.value.reason == "bad_answer"


async def test_events_before_the_start_of_a_message_are_a_bad_answer(
    server: ModelServer, ask: ModelRequest
) -> None:
    server.script("late start")
    with pytest.raises(ModelError) as caught:
        await Wire(provider="anthropic", stream=True, server=server).open().complete(ask)

    assert caught.value.reason == "bad_answer"
