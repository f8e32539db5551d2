"""The configuration files of the three designs, as they are, and what each key changes."""

import json
from pathlib import Path

import pytest
from tests.requirements.samples import condensing, noting, tool_turn, turns
from tests.wire.dialects import Reply
from tests.wire.servers import ModelServer

from remanence import Memory, Message, Policy
from remanence.cli.settings import with_agent
from remanence.errors import InvalidPolicy
from remanence.providers.spec import parse_spec
from remanence.settings import Settings, policy_of
from remanence.settings.sources import LoadedSettings, config_file, load_settings
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector


def written(directory: Path, name: str, content: object) -> Path:
    file = directory / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def read(file: Path) -> LoadedSettings:
    return load_settings(arguments={}, file=file)


def lango(directory: Path, **keys: object) -> Policy:
    return policy_of(
        read(written(directory, "lango.json", {"observationalMemory": keys, "server": {}})).settings
    )


def zora(directory: Path, **keys: object) -> Policy:
    return policy_of(
        read(written(directory, "zora.json", {"memory": {"compression": keys}})).settings
    )


def brain(directory: Path, **keys: object) -> Policy:
    return policy_of(read(written(directory, "brain.json", {"MEMORY_CONFIG": keys})).settings)


@pytest.mark.req("C-28", "L-40", "L-41")
def test_the_six_keys_of_lango_are_read(tmp_path: Path) -> None:
    keys = {
        "enabled": True,
        "provider": "ollama",
        "model": "llama3.2",
        "messageTokenThreshold": 1_500,
        "observationTokenThreshold": 3_000,
        "maxMessageTokenBudget": 12_000,
    }
    loaded = read(written(tmp_path, "lango.json", {"observationalMemory": keys}))

    assert loaded.settings.model == "ollama:llama3.2"
    assert policy_of(loaded.settings) == Policy.lango(
        enabled=True,
        observe_tokens=1_500,
        reflect_tokens=(3_000, 3_000),
        tail_tokens=12_000,
        tail_keep_tokens=10_500,
    )
    assert loaded.origins["policy.observe_tokens"] == (
        "file lango.json: observationalMemory.messageTokenThreshold"
    )


@pytest.mark.req("L-42", "L-46")
def test_lango_is_off_unless_enabled_and_then_has_its_defaults(tmp_path: Path) -> None:
    assert lango(tmp_path) == Policy.lango()
    assert lango(tmp_path, enabled=True) == Policy.lango(enabled=True)


@pytest.mark.req("L-47")
def test_background_work_of_lango_is_configured_by_our_own_keys(tmp_path: Path) -> None:
    text = '{"preset": "lango", "workers": 1, "policy": {"enabled": true, "precompute_at": 0.5}}'
    settings = read(written(tmp_path, "remanence.json", text)).settings

    assert (settings.workers, policy_of(settings).precompute_at) == (1, 0.5)


@pytest.mark.req("L-10")
@pytest.mark.parametrize(
    ("own", "model"),
    [
        ({}, "anthropic:claude-sonnet-4-5"),
        ({"provider": "openrouter"}, "openrouter:claude-sonnet-4-5"),
        ({"model": "claude-haiku-4-5"}, "anthropic:claude-haiku-4-5"),
        ({"provider": "ollama", "model": "llama3.2"}, "ollama:llama3.2"),
    ],
)
def test_each_half_of_the_model_falls_back_to_the_main_agents(
    tmp_path: Path, own: dict[str, str], model: str
) -> None:
    agent = {"provider": "anthropic", "model": "claude-sonnet-4-5"}
    file = written(tmp_path, "lango.json", {"agent": agent, "observationalMemory": own})

    assert read(file).settings.model == model


@pytest.mark.req("B-36", "B-37", "B-38", "B-51", "L-09", "L-67")
@pytest.mark.filterwarnings("ignore:The model .* is deprecated")  # it is the document's choice
async def test_the_models_of_the_settings_are_the_ones_that_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = " ".join(f"w{n}" for n in range(60))
    async with ModelServer().running() as server:
        server.script(*[Reply(f"[NOTE Fact] user: {n} {words}") for n in range(40)])
        monkeypatch.setenv("ANTHROPIC_API_KEY", "zz-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        settings = Settings(
            url="sqlite:///:memory:",
            preset="brain",
            observer_model="anthropic:claude-haiku-4-5-20251001",
            reflector_model="anthropic:claude-sonnet-4-20250514",
            policy={"observe_tokens": 300, "tail_tokens": 900, "reflect_tokens": (100,)},
        )
        async with Memory.open(settings=settings, clock=FixedClock()) as memory:
            chat = memory.conversation("c")
            for number in range(8):
                text = f"{number} " + " ".join(f"w{n}" for n in range(200))
                await chat.append(Message.user(text), Message.assistant(f"ok {text}"))
                await chat.flush()
            notes = (*await chat.reflections(), *await chat.observations())
        bodies = [received.body for received in server.received]

    models = {body["model"] for body in bodies}
    assert models == {"claude-haiku-4-5-20251001", "claude-sonnet-4-20250514"}
    assert all(0 < body["max_tokens"] <= 32_000 for body in bodies)
    assert all("w59" in segment.text for segment in notes)


@pytest.mark.req("L-09", "L-14", "Z-64")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "lango.json",
            {
                "observationalMemory": {
                    "enabled": True,
                    "provider": "anthropic",
                    "model": "claude-haiku-4-5",
                    "messageTokenThreshold": 300,
                }
            },
        ),
        (
            "zora.json",
            {
                "memory": {
                    "compression": {
                        "model": "anthropic:claude-haiku-4-5",
                        "working_tier_max_tokens": 300,
                    }
                }
            },
        ),
    ],
)
async def test_the_model_of_a_file_writes_the_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: object
) -> None:
    async with ModelServer().running() as server:
        server.script(*[Reply("#1-2 [NOTE Fact] user: said by the model")] * 9)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "zz-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        file = written(tmp_path, name, content)
        async with Memory.open("sqlite:///:memory:", settings=file) as memory:
            chat = memory.conversation("c")
            await chat.append(*turns(6, tokens=150, counter="split"))
            await chat.flush()
            notes = await chat.observations()
        models = {received.body["model"] for received in server.received}

    assert models == {"claude-haiku-4-5"}
    assert "said by the model" in notes[0].text


@pytest.mark.req("L-41")
@pytest.mark.parametrize("key", ["provider", "model"])
def test_half_a_model_without_a_main_agent_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidPolicy, match=r"observationalMemory\.\w+ .* is missing"):
        lango(tmp_path, **{key: "ollama"})


@pytest.mark.req("C-28", "Z-27", "Z-59", "Z-60", "Z-61", "Z-62", "Z-63", "Z-64", "Z-65", "Z-66")
def test_the_keys_of_zora_are_read_from_toml(tmp_path: Path) -> None:
    text = """
[memory.compression]
enabled = true
working_tier_max_tokens = 15_000
session_tier_max_tokens = 6_000
cross_session_tier_max_tokens = 2_000
chunk_size = 10
model = "google:gemini-2.5-flash"
async_buffer = false
block_after_tokens = 45_000

[memory.daily_notes]
directory = "notes"
"""
    settings = read(written(tmp_path, "config.toml", text)).settings

    assert settings.model == "google:gemini-2.5-flash"
    assert policy_of(settings) == Policy.zora(
        observe_tokens=15_000,
        tail_tokens=15_000,
        tail_keep_tokens=10_000,
        reflect_tokens=(6_000,),
        facts_tokens=2_000,
        observe_slice_messages=10,
        precompute_at=None,
        block_after=3.0,
    )


@pytest.mark.req("Z-59", "Z-64", "Z-65")
def test_zora_without_keys_has_its_defaults(tmp_path: Path) -> None:
    assert zora(tmp_path, enabled=True, async_buffer=True) == Policy.zora()
    assert zora(tmp_path, block_after_tokens=60_000) == Policy.zora()
    assert not zora(tmp_path, enabled=False).enabled


@pytest.mark.req("B-31", "C-25")
@pytest.mark.parametrize("wrapped", [True, False])
def test_the_names_of_memory_config_are_read(tmp_path: Path, wrapped: bool) -> None:
    names = {
        "keepLastMessages": 8,
        "keepLastToolSummaries": 3,
        "observeThresholdTokens": 20_000,
        "reflectThresholdTokens": 30_000,
        "reflectMinIntervalMinutes": 15,
    }
    file = written(tmp_path, "memory.json", {"MEMORY_CONFIG": names} if wrapped else names)

    assert policy_of(read(file).settings) == Policy.brain(
        keep_last=8,
        keep_last_tool_results=3,
        observe_tokens=20_000,
        tail_tokens=20_000,
        reflect_tokens=(30_000,),
        reflect_min_interval_seconds=900.0,
    )


@pytest.mark.req("X-21")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"observationalMemory": {"messageTokenTreshold": 1}},
            r"observationalMemory\.messageTokenTreshold .* did you mean messageTokenThreshold\?",
        ),
        (
            {"memory": {"compression": {"chunksize": 1}}},
            r"memory\.compression\.chunksize .* did you mean chunk_size\?",
        ),
        (
            {"MEMORY_CONFIG": {"keepLastMessage": 1}},
            r"MEMORY_CONFIG\.keepLastMessage .* did you mean keepLastMessages\?",
        ),
        (
            {"observationalMemory": {"xyzzy": 1}},
            r"known are enabled, provider, model",
        ),
        (
            {"observationalMemory": {"enabled": "yes"}},
            r"observationalMemory\.enabled='yes' .* use true or false",
        ),
        (
            {"memory": {"compression": {"chunk_size": -1}}},
            r"chunk_size=-1 .* use 0 or more",
        ),
        (
            {"MEMORY_CONFIG": {"keepLastMessages": True}},
            r"keepLastMessages=True .* use a whole number",
        ),
    ],
)
def test_an_unknown_key_or_a_bad_value_is_refused_by_name(
    tmp_path: Path, content: object, message: str
) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        read(written(tmp_path, "memory.json", content))


@pytest.mark.req("L-42", "L-46", "Z-59")
@pytest.mark.parametrize(
    ("name", "content", "policy"),
    [
        ("lango.json", {}, Policy.lango()),
        ("lango.json", {"server": {"port": 1}}, Policy.lango()),
        ("lango.json", {"observationalMemory": None}, Policy.lango()),
        ("zora.json", {}, Policy.zora()),
        ("config.json", {"memory": {"daily_notes": {"directory": "notes"}}}, Policy.zora()),
        ("config.json", {"memory": {"compression": None}}, Policy.zora()),
        ("remanence.json", {}, Policy()),
    ],
)
def test_a_file_without_its_section_has_the_defaults_of_its_design(
    tmp_path: Path, name: str, content: object, policy: Policy
) -> None:
    assert policy_of(read(written(tmp_path, name, content)).settings) == policy


@pytest.mark.req("C-28")
def test_zoras_camel_case_is_read_like_its_other_spelling(tmp_path: Path) -> None:
    camel: dict[str, object] = {
        "workingTierMaxTokens": 15_000,
        "sessionTierMaxTokens": 6_000,
        "crossSessionTierMaxTokens": 2_000,
        "compressionChunkSize": 10,
        "compressionModel": "google:gemini-2.5-flash",
        "asyncBuffer": False,
        "blockAfterTokens": 45_000,
    }
    snake: dict[str, object] = {
        "working_tier_max_tokens": 15_000,
        "session_tier_max_tokens": 6_000,
        "cross_session_tier_max_tokens": 2_000,
        "chunk_size": 10,
        "model": "google:gemini-2.5-flash",
        "async_buffer": False,
        "block_after_tokens": 45_000,
    }

    assert zora(tmp_path, **camel) == zora(tmp_path, **snake) != Policy.zora()
    with pytest.raises(InvalidPolicy, match=r"chunkSize and .*chunk_size .* keep one of them"):
        zora(tmp_path, chunkSize=10, chunk_size=10)


@pytest.mark.req("L-41", "Z-66")
def test_null_stands_for_the_default_and_whole_numbers_may_have_a_point(tmp_path: Path) -> None:
    assert zora(tmp_path, model=None, block_after_tokens=None) == Policy.zora()
    assert lango(tmp_path, provider=None, model=None, messageTokenThreshold=1_000.0) == (
        Policy.lango()
    )
    with pytest.raises(InvalidPolicy, match=r"messageTokenThreshold=1000.5 .* whole number"):
        lango(tmp_path, messageTokenThreshold=1_000.5)


@pytest.mark.req("L-40")
def test_a_byte_order_mark_and_comments_are_read_over(tmp_path: Path) -> None:
    marked = tmp_path / "lango.json"
    marked.write_text('{"observationalMemory": {"enabled": true}}', encoding="utf-8-sig")
    commented = r"""// of the host
{
  "observationalMemory": {
    "provider": "ollama", /* on
    this machine */
    "model": "a//b, \\", // see http://x
  },
}
"""

    assert policy_of(read(marked).settings).enabled
    assert read(written(tmp_path, "lango.jsonc", commented)).settings.model == "ollama:a//b, \\"
    with pytest.raises(InvalidPolicy, match=r"lango.jsonc is not JSON: .* line 3"):
        read(written(tmp_path, "lango.jsonc", "// one\n{\n oops }"))


@pytest.mark.req("L-09", "L-67")
def test_gemini_is_a_name_of_googles_models(tmp_path: Path) -> None:
    keys = {"provider": "gemini", "model": "gemini-2.5-flash"}
    settings = read(written(tmp_path, "lango.json", {"observationalMemory": keys})).settings

    assert settings.model is not None
    assert parse_spec(settings.model).name == "google:gemini-2.5-flash"


@pytest.mark.req("L-10")
def test_the_window_is_that_of_the_main_agents_model(tmp_path: Path) -> None:
    agent = {"provider": "gemini", "model": "gemini-2.5-pro"}
    own = {"provider": "ollama", "model": "llama3.2"}
    file = written(tmp_path, "lango.json", {"agent": agent, "observationalMemory": own})

    assert policy_of(read(file).settings) == Policy.lango(model="gemini-2.5-pro")


@pytest.mark.req("L-10")
def test_the_model_of_a_chat_is_the_main_agents_where_the_settings_name_no_other() -> None:
    model = "anthropic:claude-haiku-4-5"
    named = Settings(preset="lango", model="ollama:llama3.2", policy={"model": "gpt-5"})

    assert with_agent(Settings(preset="lango"), model) == Settings(
        preset="lango", model=model, policy={"model": "claude-haiku-4-5"}
    )
    assert with_agent(Settings(), model) == Settings(policy={"model": "claude-haiku-4-5"})
    assert with_agent(named, model) == named
    chain = with_agent(Settings(preset="lango"), "openai:gpt-4.1", "ollama:llama3.2", model)
    assert (chain.policy, chain.model) == ({"model": "llama3.2"}, "openai:gpt-4.1")


@pytest.mark.req("X-21")
def test_our_own_keys_beside_a_designs_table_hold(tmp_path: Path) -> None:
    content = {
        "observationalMemory": {"enabled": True},
        "url": "sqlite:///lango.db",
        "daily_directory": "notes",
        "policy": {"keep_last": 2},
    }
    loaded = read(written(tmp_path, "lango.json", content))

    assert loaded.settings.url == "sqlite:///lango.db"
    assert loaded.settings.daily_directory == "notes"
    assert policy_of(loaded.settings) == Policy.lango(enabled=True, keep_last=2)
    assert loaded.origins["url"] == loaded.origins["policy.keep_last"] == "file lango.json"


@pytest.mark.req("X-21")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"observationalMemory": {}, "memory": {"compression": {}}},
            r"holds observationalMemory and memory\.compression: keep the one",
        ),
        (
            {"observationalMemory": {"messageTokenThreshold": 9}, "policy": {"observe_tokens": 5}},
            r"policy\.observe_tokens=5 and observationalMemory\.messageTokenThreshold=9 .* the same",
        ),
        (
            {"observationalMemory": {}, "preset": "zora"},
            r"preset='zora' .* contradicts the file, which says 'lango'",
        ),
        ({"observationalMemory": {}, "policy": 3}, r"policy=3 .* is not a table"),
        ({"observationalMemory": [1]}, r"observationalMemory=\[1\] .* is not a table"),
        (
            {"observationalMemory": {"maxMessageTokenBudget": 0}},
            r"observationalMemory\.maxMessageTokenBudget=0 .* it sets policy\.tail_tokens",
        ),
        (
            {"memory": {"compression": {"workingTierMaxTokens": 0, "blockAfterTokens": 9}}},
            r"memory\.compression\.workingTierMaxTokens=0 .* it sets policy\.observe_tokens",
        ),
        (
            {"memory": {"compression": {"block_after_tokens": 9_000}}},
            r"memory\.compression\.block_after_tokens=9000 .* it sets policy\.block_after",
        ),
        (
            {"memory": {"compression": {"model": "gemini-2.5-flash"}}},
            r"memory\.compression\.model='gemini-2.5-flash' .* write provider:model",
        ),
        (
            {"MEMORY_CONFIG": {"reflectThresholdTokens": 120_000}},
            r"MEMORY_CONFIG\.reflectThresholdTokens=120000 .* it sets policy\.",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_in_the_words_of_the_file(
    tmp_path: Path, content: object, message: str
) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        read(written(tmp_path, "memory.json", content))


@pytest.mark.req("B-31", "C-21")
def test_a_larger_log_may_be_reflected_in_a_longer_answer(tmp_path: Path) -> None:
    policy = brain(tmp_path, reflectThresholdTokens=60_000)

    assert policy == Policy.brain(reflect_tokens=(60_000,), max_output_tokens=36_000)


def test_a_variable_may_name_such_a_file_and_other_variables_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "lango.json", {"observationalMemory": {"enabled": True}})
    monkeypatch.setenv("REMANENCE_CONFIG", "lango.json")
    monkeypatch.setenv("REMANENCE_POLICY__OBSERVE_TOKENS", "700")

    loaded = load_settings(arguments={}, file=config_file(tmp_path))

    assert policy_of(loaded.settings) == Policy.lango(enabled=True, observe_tokens=700)
    assert loaded.origins["policy.enabled"] == "file lango.json: observationalMemory.enabled"
    assert loaded.origins["policy.observe_tokens"] == "environment"


@pytest.mark.req("L-40", "L-43")
async def test_a_memory_opened_with_the_file_works_as_it_says(tmp_path: Path) -> None:
    keys = {"enabled": True, "messageTokenThreshold": 300}
    file = written(tmp_path, "lango.json", {"observationalMemory": keys})
    observer = ScriptedObserver()
    async with Memory.open("sqlite:///:memory:", settings=file, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(3, tokens=101, counter="cjk"))
        await chat.flush()

    assert len(observer.requests) == 1


@pytest.mark.req("L-41", "L-44", "L-45")
async def test_each_threshold_of_lango_changes_what_happens(tmp_path: Path) -> None:
    async def outcome(**keys: int) -> tuple[int, int, int]:
        policy = lango(tmp_path, enabled=True, **keys)
        observer, reflector = (
            ScriptedObserver([noting(200)] * 60),
            ScriptedReflector([condensing(100)] * 60),
        )
        async with Memory.open(
            "sqlite:///:memory:", policy=policy, observer=observer, reflector=reflector
        ) as memory:
            chat = memory.conversation("a")
            for message in turns(120, tokens=101, counter="cjk"):
                await chat.append(message)
                await chat.flush()
            context = await chat.context()
        return len(observer.requests), len(reflector.requests), len(context.messages)

    usual = await outcome()
    assert (await outcome(messageTokenThreshold=2_000))[0] < usual[0]
    assert (await outcome(observationTokenThreshold=1_000))[1] > usual[1]
    assert (await outcome(maxMessageTokenBudget=4_000))[2] < usual[2]


@pytest.mark.req("B-31", "C-25")
async def test_each_name_of_memory_config_changes_what_happens(tmp_path: Path) -> None:
    async def outcome(**keys: int) -> tuple[int, int, int, int]:
        policy = brain(tmp_path, **{"observeThresholdTokens": 500, **keys})
        observer, reflector = (
            ScriptedObserver([noting(200)] * 60),
            ScriptedReflector([condensing(100)] * 60),
        )
        clock = FixedClock()
        async with Memory.open(
            "sqlite:///:memory:", policy=policy, observer=observer, reflector=reflector, clock=clock
        ) as memory:
            chat = memory.conversation("a")
            for number in range(40):
                await chat.append(*tool_turn(number, f"{number} " + "r" * 400))
                await chat.flush()
                clock.advance(60)
            context = await chat.context()
        whole = [r for m in context.messages for r in m.tool_results if len(r.text) > 300]
        return len(observer.requests), len(reflector.requests), len(context.messages), len(whole)

    usual = await outcome(reflectThresholdTokens=300)
    assert (await outcome(reflectThresholdTokens=300, observeThresholdTokens=4_000))[0] < usual[0]
    assert (await outcome(reflectThresholdTokens=40_000))[1] < usual[1]
    assert (await outcome(reflectThresholdTokens=300, reflectMinIntervalMinutes=1))[1] > usual[1]
    assert (await outcome(reflectThresholdTokens=300, keepLastMessages=30))[2] > usual[2]
    assert (await outcome(reflectThresholdTokens=300, keepLastToolSummaries=0))[3] < usual[3]


@pytest.mark.req("Z-60", "Z-61", "Z-63", "Z-65")
async def test_each_limit_of_zora_changes_what_happens(tmp_path: Path) -> None:
    async def outcome(**keys: int | bool) -> tuple[int, int, int, int]:
        policy = zora(tmp_path, **{"working_tier_max_tokens": 3_000, **keys})
        observer, reflector = (
            ScriptedObserver([noting(150)] * 60),
            ScriptedReflector([condensing(100)] * 60),
        )
        async with Memory.open(
            "sqlite:///:memory:", policy=policy, observer=observer, reflector=reflector
        ) as memory:
            chat = memory.conversation("a")
            ready = 0
            for message in turns(120, tokens=100, counter="split"):
                await chat.append(message)
                state = await chat.flush()
                ready = max(ready, state.observed_seq - state.active_seq)
            context = await chat.context()
        return len(observer.requests), len(reflector.requests), len(context.messages), ready

    usual = await outcome()
    assert (await outcome(chunk_size=5))[0] > usual[0]
    assert (await outcome(session_tier_max_tokens=400))[1] > usual[1]
    assert (await outcome(working_tier_max_tokens=6_000))[2] > usual[2]
    assert (await outcome(async_buffer=False))[3] < usual[3]
