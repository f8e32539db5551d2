"""The configuration files of the source designs: where each setting came from, and refusals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from remanence.errors import InvalidPolicy
from remanence.settings.compat import translate
from remanence.settings.entry import Entry


def entries_of(content: dict[str, Any], file: str = "memory.json") -> Mapping[str, Entry]:
    entries = translate(content, file=Path(file))
    assert entries is not None
    return entries


def translated(content: dict[str, Any], file: str = "memory.json") -> dict[str, object]:
    return {key: entry.setting for key, entry in entries_of(content, file).items()}


def test_each_setting_is_traced_to_the_key_of_its_file() -> None:
    found = entries_of(
        {
            "agent": {"provider": "anthropic", "model": "claude-haiku-4-5"},
            "observationalMemory": {"maxMessageTokenBudget": 8_000},
            "workers": 3,
            "policy": {"keep_last": 2},
        }
    )

    assert {key: (entry.setting, entry.origin) for key, entry in found.items()} == {
        "preset": ("lango", "file memory.json"),
        "model": ("anthropic:claude-haiku-4-5", "file memory.json"),
        "workers": (3, "file memory.json"),
        "policy.tail_tokens": (
            8_000,
            "file memory.json: observationalMemory.maxMessageTokenBudget",
        ),
        "policy.tail_keep_tokens": (
            7_000,
            "file memory.json: observationalMemory.maxMessageTokenBudget",
        ),
        "policy.model": ("claude-haiku-4-5", "file memory.json: agent.model"),
        "policy.keep_last": (2, "file memory.json"),
    }


@pytest.mark.parametrize(
    ("file", "preset"),
    [
        ("lango.json", "lango"),
        (".lango/config.json", "lango"),
        ("zora/config.toml", "zora"),
        (".brain/settings.json", "brain"),
    ],
)
def test_a_file_without_a_table_is_of_the_design_that_it_or_its_folder_is_named_after(
    file: str, preset: str
) -> None:
    assert translated({}, file) == {"preset": preset}


def test_a_file_of_no_design_is_left_to_others() -> None:
    assert translate({"workers": 3}, file=Path("remanence.json")) is None


@pytest.mark.parametrize("agent", [{"provider": 3, "model": ""}, [], None, {"model": None}])
def test_a_main_agent_without_a_usable_model_is_as_none(agent: object) -> None:
    found = translated({"agent": agent, "observationalMemory": {}})

    assert found == {"preset": "lango"}


@pytest.mark.parametrize(
    ("key", "missing"), [("provider", "model"), ("model", "provider")], ids=["provider", "model"]
)
def test_half_a_model_is_refused_with_the_name_of_the_other_half(key: str, missing: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        translated({"observationalMemory": {key: "x"}})

    assert str(refused.value) == (
        f"observationalMemory.{missing} (file memory.json) is missing: name the {missing} there, "
        f"or that of the main agent as agent.{missing}"
    )


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (
            {"memory": {"compression": [1]}},
            "memory.compression=[1] (file memory.json) is not a table: write its keys",
        ),
        (
            {"observationalMemory": {"model": 3}},
            "observationalMemory.model=3 (file memory.json) is impossible: use a text",
        ),
    ],
)
def test_a_value_of_another_type_is_refused(content: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        translated(content)

    assert str(refused.value) == refusal


@pytest.mark.parametrize(("working", "times"), [(1, 90.0), (45, 2.0), (None, 0.003)])
def test_zora_waits_at_a_multiple_of_its_working_tier(working: int | None, times: float) -> None:
    keys = {"block_after_tokens": 90, "working_tier_max_tokens": working}

    found = translated({"memory": {"compression": keys}})

    assert found["policy.block_after"] == times


@pytest.mark.parametrize(
    ("threshold", "output_tokens"),
    [(1_000, 32_000), (60_000, 36_000), (106_000, 63_600), (200_000, 64_000)],
)
def test_an_answer_of_brain_is_as_long_as_its_log_needs_and_a_model_can_write(
    threshold: int, output_tokens: int
) -> None:
    found = translated({"MEMORY_CONFIG": {"reflectThresholdTokens": threshold}})

    assert found["policy.max_output_tokens"] == output_tokens
