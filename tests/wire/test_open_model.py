import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.wire.scripts import Script, failed

from remanence.errors import InvalidArgument, ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions, open_model
from remanence.providers.spec import parse_spec
from remanence.testing import FixedClock
from remanence.tokens import count_tokens


async def test_a_function_is_a_model_whose_tokens_are_estimated(ask: ModelRequest) -> None:
    clock = FixedClock()

    async def shout(request: ModelRequest) -> str:
        return request.prompt.upper()

    answer = await open_model(shout, clock=clock).complete(ask)

    assert (answer.text, answer.complete) == ("USER: MY FLIGHT IS LH 454", True)
    assert answer.usage.input_tokens == count_tokens(ask.stable) + count_tokens(ask.prompt)
    assert answer.usage.output_tokens == count_tokens(answer.text)
    assert (answer.usage.cost_usd, answer.usage.at) == (None, clock.now())


async def test_a_model_comes_back_as_it_is() -> None:
    model = open_model(Script())

    assert open_model(model) is model


async def test_a_functions_error_is_a_failed_call_that_keeps_its_text_to_itself(
    ask: ModelRequest,
) -> None:
    async def leaky(request: ModelRequest) -> str:
        raise LookupError("no account for sk-secret")

    with pytest.raises(ModelError, match="LookupError") as caught:
        await open_model(leaky).complete(ask)

    assert caught.value.reason == "failed"
    assert "sk-secret" not in str(caught.value)


async def test_a_function_that_returns_nothing_is_empty(ask: ModelRequest) -> None:
    with pytest.raises(ModelError) as caught:
        await open_model(Script(" ")).complete(ask)

    assert caught.value.reason == "empty"


async def test_a_function_that_does_not_end_is_stopped(ask: ModelRequest) -> None:
    async def never(request: ModelRequest) -> str:
        await asyncio.Event().wait()
        return "unreached"

    with pytest.raises(ModelError) as caught:
        await open_model(never, options=ModelOptions(timeout_seconds=0.05)).complete(ask)

    assert caught.value.reason == "timeout"


async def test_the_pieces_that_a_function_yields_are_one_answer(ask: ModelRequest) -> None:
    async def pieces(request: ModelRequest) -> AsyncIterator[str]:
        for piece in ("Gate ", "", "B42."):
            yield piece

    answer = await open_model(pieces).complete(ask)

    assert answer.text == "Gate B42."
    assert answer.usage.estimated
    assert answer.usage.output_tokens == count_tokens("Gate B42.")


@pytest.mark.parametrize(
    ("piece", "reason"), [(7, "bad_answer"), ("x" * 9_000_000, "bad_answer"), ("", "empty")]
)
async def test_a_piece_that_is_none_fails_the_call(
    ask: ModelRequest, piece: Any, reason: str
) -> None:
    async def pieces(request: ModelRequest) -> AsyncIterator[str]:
        yield piece

    with pytest.raises(ModelError) as caught:
        await open_model(pieces).complete(ask)

    assert caught.value.reason == reason


async def test_the_time_limit_counts_all_pieces_and_the_function_is_closed(
    ask: ModelRequest,
) -> None:
    closed = []

    async def endless(request: ModelRequest) -> AsyncIterator[str]:
        try:
            while True:
                await asyncio.sleep(0.01)
                yield "more "
        finally:
            closed.append(True)

    with pytest.raises(ModelError) as caught:
        await open_model(endless, options=ModelOptions(timeout_seconds=0.1)).complete(ask)

    assert (caught.value.reason, closed) == ("timeout", [True])


async def test_functions_and_models_may_stand_in_one_chain(ask: ModelRequest) -> None:
    spare = open_model(Script("from the spare"))

    answer = await open_model([Script(failed("server")), spare]).complete(ask)

    assert answer.text == "from the spare"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpt-4o",
        "openai:",
        ":gpt-4o",
        "openai:m@http://",
        "openai:m@http://[1",
        "openai:gpt-5-mini, gpt-4o",
        "openai:gpt-5-mini,",
        "openai:m@http://host/v1, gpt-4o",
        "http://127.0.0.1:8000/v1",
        "openai:http://user:secret@127.0.0.1:8000/v1",
    ],
)
def test_a_name_that_is_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ModelError, match=r"ollama:llama3\.2") as caught:
        open_model(text)

    assert caught.value.reason == "unknown_model"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("openai:m@127.0.0.1:8000/v1", "write openai:m@http://127.0.0.1:8000/v1"),
        ("openai:m@localhost", "write openai:m@http://localhost/v1"),
        ("openai:m@gateway", "write openai:m@http://gateway/v1"),
        ("openai:m@my-gateway/api", "write openai:m@http://my-gateway/api"),
        ("openai:m@user:secret@gateway", "write openai:m@http://gateway/v1"),
        ("openai:m@v100-box", "write openai:m@http://v100-box/v1"),
        ("openai:m@llm.gpu1", "write openai:m@http://llm.gpu1/v1"),
        ("openai:m@gpu:8000", "write openai:m@http://gpu:8000/v1"),
        ("ollama:llama3.2@user:secret@[::1]:11434", "write ollama:llama3.2@http://[::1]:11434/v1"),
        ("openai:m@models.example.com/api", "write openai:m@http://models.example.com/api"),
    ],
)
def test_an_address_without_a_scheme_is_refused_with_the_name_to_write(
    text: str, remedy: str
) -> None:
    with pytest.raises(ModelError) as caught:
        open_model(text)

    assert caught.value.reason == "unknown_model"
    assert str(caught.value).endswith(remedy)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        "model@latest",
        "model@default",
        "model@v1.2",
        "m@20240101",
        "m@preset/my-preset",
        "@cf/meta/llama-3",
        "workers-ai/@cf/meta/llama-3",
    ],
)
def test_a_name_with_an_at_sign_is_a_name(model: str) -> None:
    assert parse_spec(f"openai:{model}").model == model


def test_a_misspelt_provider_is_refused_with_the_known_one() -> None:
    with pytest.raises(ModelError, match=r"did you mean anthropic:claude-haiku-4-5\?") as caught:
        open_model("antropic:claude-haiku-4-5")

    assert caught.value.reason == "unknown_model"


async def test_what_is_no_model_is_refused() -> None:
    nothing: Any = None  # as a program without a type checker may pass

    with pytest.raises(InvalidArgument, match="value of type NoneType is not a model"):
        open_model(nothing)


@pytest.mark.parametrize(
    "setting",
    [
        {"timeout_seconds": 0},
        {"attempts": 0},
        {"parallel": 0},
        {"requests_per_minute": 0},
        {"tokens_per_minute": -1},
        {"cooldown_seconds": -1},
    ],
)
def test_options_out_of_range_are_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        ModelOptions(**setting)


def test_a_named_model_without_the_extra_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['openai'] = None\n"
        "from remanence.providers import open_model\n"
        "open_model('openai:gpt-4o-mini')"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )

    assert "MissingExtra" in run.stderr
    assert "pip install '.[models]' in a checkout" in run.stderr


def test_opening_a_function_loads_no_provider() -> None:
    program = (
        "import sys\n"
        "from remanence.providers import open_model\n"
        "open_model(lambda request: None)\n"
        "print(sorted({'pydantic_ai', 'openai', 'anthropic', 'httpx2'} & set(sys.modules)))"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )

    assert run.stdout.strip() == "[]"


async def raises(request: ModelRequest) -> str:
    raise ValueError("no quota for sk-abcdefgh, gsk_ab1***yz or nvapi-Zq9kk4Xw8Lm2Rt5Yb7 today")


async def gives_a_number(request: ModelRequest) -> str:
    return 5  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (raises, r"raised ValueError: no quota for \[secret\], \[secret\] or \[secret\] today"),
        (gives_a_number, "returned a int: return a str"),
        (lambda request: "Gate B42.", "is not async: use async def"),
    ],
)
async def test_a_function_that_does_not_answer_is_told_why(
    ask: ModelRequest, function: Callable[[ModelRequest], Awaitable[str]], told: str
) -> None:
    with pytest.raises(ModelError, match=told):
        await open_model(function).complete(ask)
