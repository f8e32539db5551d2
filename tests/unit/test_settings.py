import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remanence.errors import InvalidPolicy
from remanence.policy.policy import Policy
from remanence.settings import Settings, own_prices, policy_of
from remanence.settings.sources import LoadedSettings, config_file, load_settings

SET_BY_DEFAULT = [field for field in dataclasses.fields(Policy) if field.default is not None]
"""TOML has no null, so a file cannot say what the other fields have by default."""


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("REMANENCE_")]:
        monkeypatch.delenv(name)


def load(directory: Path, **arguments: object) -> LoadedSettings:
    return load_settings(arguments=arguments, file=config_file(directory))


def refusal(directory: Path, **arguments: object) -> str:
    with pytest.raises(InvalidPolicy) as caught:
        load(directory, **arguments)
    return str(caught.value)


def test_without_any_source_everything_has_its_default(tmp_path: Path) -> None:
    loaded = load(tmp_path)

    assert (loaded.settings, dict(loaded.origins)) == (Settings(), {})


def test_an_argument_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("remanence.toml").write_text(
        'url = "sqlite:///file.db"\npreset = "zora"\nworkers = 2\n'
    )
    monkeypatch.setenv("REMANENCE_URL", "sqlite:///environment.db")
    monkeypatch.setenv("REMANENCE_PRESET", "brain")

    loaded = load(tmp_path, url="sqlite:///argument.db", preset=None)

    assert loaded.settings == Settings(url="sqlite:///argument.db", preset="brain", workers=2)
    assert loaded.origins == {
        "url": "argument",
        "preset": "environment",
        "workers": "file remanence.toml",
    }


def test_keys_of_the_policy_are_merged_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("remanence.toml").write_text(
        "[policy]\ntail_tokens = 9_000\nreflect_tokens = [3_000, 5_000]\n"
    )
    monkeypatch.setenv("REMANENCE_POLICY__TAIL_TOKENS", "7000")
    monkeypatch.setenv("REMANENCE_POLICY__SHOW_CLOCK", "false")

    loaded = load(tmp_path)

    assert loaded.settings.policy == {
        "tail_tokens": 7_000,
        "reflect_tokens": (3_000, 5_000),
        "show_clock": False,
    }
    assert loaded.origins["policy.tail_tokens"] == "environment"
    assert loaded.origins["policy.reflect_tokens"] == "file remanence.toml"
    assert policy_of(loaded.settings).tail_tokens == 7_000


def test_the_environment_writes_lists_as_json_and_nothing_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY__REFLECT_TOKENS", "[4000, 4000]")
    monkeypatch.setenv("REMANENCE_POLICY__BLOCK_AFTER", "none")

    assert load(tmp_path).settings.policy == {"reflect_tokens": (4_000, 4_000), "block_after": None}


@pytest.mark.parametrize("text", ["none", "None", "NONE"])
def test_no_value_is_written_as_none_in_any_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY__DISABLED_MESSAGES", text)

    assert load(tmp_path).settings.policy == {"disabled_messages": None}


def test_a_variable_may_name_several_models_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_MODEL", '["anthropic:claude-haiku-4-5", "openai:gpt-5-mini"]')

    assert load(tmp_path).settings.model == "anthropic:claude-haiku-4-5, openai:gpt-5-mini"


def test_a_variable_may_empty_a_text_by_the_policy_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY", '{"heading": ""}')

    assert load(tmp_path).settings.policy == {"heading": ""}


def test_what_kubernetes_tells_pods_about_a_service_called_remanence_is_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in ("REMANENCE", "REMANENCE_WORKER"):
        monkeypatch.setenv(f"{service}_SERVICE_HOST", "10.0.0.11")
        monkeypatch.setenv(f"{service}_SERVICE_PORT", "8765")
        monkeypatch.setenv(f"{service}_SERVICE_PORT_HTTP", "8765")
        monkeypatch.setenv(f"{service}_PORT", "tcp://10.0.0.11:8765")
        monkeypatch.setenv(f"{service}_PORT_8765_TCP", "tcp://10.0.0.11:8765")
        monkeypatch.setenv(f"{service}_PORT_8765_TCP_PROTO", "tcp")
        monkeypatch.setenv(f"{service}_PORT_8765_TCP_PORT", "8765")
        monkeypatch.setenv(f"{service}_PORT_8765_TCP_ADDR", "10.0.0.11")

    assert load(tmp_path).settings == Settings()


def test_a_variable_may_hold_the_whole_policy_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY", '{"tail_tokens": 9000, "keep_last": 2}')
    monkeypatch.setenv("REMANENCE_POLICY__TAIL_TOKENS", "7000")

    assert load(tmp_path).settings.policy == {"tail_tokens": 7_000, "keep_last": 2}


def test_an_empty_variable_counts_as_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_URL", "")

    assert load(tmp_path).settings.url == Settings().url


def test_a_json_file_says_the_same_as_a_toml_file(tmp_path: Path) -> None:
    tmp_path.joinpath("remanence.json").write_text('{"workers": 3, "policy": {"keep_last": 2}}')

    assert load(tmp_path).settings == Settings(workers=3, policy={"keep_last": 2})


def test_a_variable_names_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("remanence.toml").write_text("workers = 2\n")
    tmp_path.joinpath("other.toml").write_text("workers = 7\n")
    monkeypatch.setenv("REMANENCE_CONFIG", "other.toml")

    loaded = load(tmp_path)

    assert loaded.settings.workers == 7
    assert loaded.origins == {"workers": "file other.toml"}


@pytest.mark.parametrize("field", SET_BY_DEFAULT, ids=lambda field: field.name)
def test_every_field_of_the_policy_can_be_set_in_a_file(
    tmp_path: Path, field: "dataclasses.Field[object]"
) -> None:
    value = field.default
    text = f'"{value}"' if isinstance(value, str) else str(value).lower()
    text = str(list(value)) if isinstance(value, tuple) else text
    tmp_path.joinpath("remanence.toml").write_text(f"[policy]\n{field.name} = {text}\n")

    settings = load(tmp_path).settings

    assert settings.policy == {field.name: value}
    assert policy_of(settings) == Policy()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tail_tokens = 1", "tail_tokens (file remanence.toml) is unknown: did you mean policy.ta"),
        (
            "[polcy]\ntail_tokens = 9000",
            "polcy (file remanence.toml) is unknown: did you mean policy?",
        ),
        (
            'model = ["anthropic:x", 5]',
            "(file remanence.toml) is impossible: use the name of a model, a list of names, or None",
        ),
        ("model = []", "model=[] (file remanence.toml) is impossible: use the name of a model, a"),
        ("[policy]\ntail_tokns = 1", "policy.tail_tokns (file remanence.toml) is unknown: did you"),
        (
            "[policy]\nxyzzy = 1",
            "policy.xyzzy (file remanence.toml) is unknown: remove it; 'remanence config",
        ),
        ('[policy]\ntail_tokens = "x"', "policy.tail_tokens='x' (file remanence.toml) is impossi"),
        ("policy = 3", "policy=3 (file remanence.toml) is not a table"),
        (
            'preset = "lngo"',
            "preset='lngo' (file remanence.toml) is impossible: use 'default' or 'l",
        ),
        ("workers = -1", "workers=-1 (file remanence.toml) is impossible: use 0 or more"),
        ("workers = ", "remanence.toml is not TOML: "),
        (
            '[[budgets]]\nscope = "week"\nhard_usd = 5',
            "impossible: table 1 scope='week': input should be 'conversation', 'user' or 'day'",
        ),
        (
            '[[budgets]]\nscope = "day"\nhard_usd = 5\nsoft_us = 3',
            "a table has no 'soft_us': did you mean soft_usd?",
        ),
        (
            "budgets = 5",
            "budgets=5 (file remanence.toml) is impossible: use a list, each of Budget",
        ),
        ('prices = ["m 1"]', "prices='m 1' is impossible: write 'openai:my-model 0.2 0.8'"),
        ('prices = ["m 1 nan"]', "dollars per million tokens"),
        ("[policy]\nreflect_tokens = [{a = 1}]", "use a list, each of a whole number"),
    ],
)
def test_a_bad_file_is_refused_with_key_value_source_and_remedy(
    tmp_path: Path, text: str, expected: str
) -> None:
    tmp_path.joinpath("remanence.toml").write_text(text)

    assert expected in refusal(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "REMANENCE_FOO",
            "1",
            "REMANENCE_FOO (environment) is unknown: remove it; 'remanence config show' then ",
        ),
        (
            "REMANENCE_POLICY__FOO",
            "1",
            "REMANENCE_POLICY__FOO (environment) is unknown: remove it; ",
        ),
        ("REMANENCE_API_KEY", "1", "REMANENCE_API_KEY (environment) is unknown: remove it; "),
        ("REMANENCE_PORT", "8765", "REMANENCE_PORT (environment) is unknown: did you mean "),
        ("REMANENCE_TAIL", "3", "did you mean REMANENCE_POLICY__TAIL_TOKENS?"),
        ("REMANENCE_TAIL_KEEP", "3", "did you mean REMANENCE_POLICY__TAIL_KEEP_TOKENS?"),
        ("REMANENCE_KEEP", "3", "did you mean REMANENCE_POLICY__KEEP_LAST?"),
        ("REMANENCE_TAIL_TOKENS", "1", "did you mean REMANENCE_POLICY__TAIL_TOKENS?"),
        ("REMANENCE_URLL", "x", "REMANENCE_URLL (environment) is unknown: did you mean REMANENCE_"),
        (
            "REMANENCE_POLICY__TAIL",
            "1",
            "REMANENCE_POLICY__TAIL (environment) is unknown: did you mean REMANENCE_POLICY__",
        ),
        (
            "REMANENCE_POLICY__KEEP_LAST",
            "few",
            "REMANENCE_POLICY__KEEP_LAST='few' (environment) is impossible: use a whole number",
        ),
        ("REMANENCE_POLICY__REFLECT_TOKENS", "1,2", "REMANENCE_POLICY__REFLECT_TOKENS='1,2' (env"),
        (
            "REMANENCE_WORKERS",
            "-1",
            "REMANENCE_WORKERS='-1' (environment) is impossible: use 0 or more",
        ),
        (
            "REMANENCE_CONFIG",
            "none.toml",
            "REMANENCE_CONFIG='none.toml' is not a file: name a TOML",
        ),
    ],
)
def test_a_bad_variable_is_refused_with_its_name_value_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(name, value)

    assert expected in refusal(tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tail_tokns", "policy.tail_tokns is unknown: did you mean tail_tokens?"),
        ("tail_token", "policy.tail_token is unknown: did you mean tail_tokens?"),
        ("xyzzy", "policy.xyzzy is unknown: known are enabled, "),
    ],
)
def test_settings_made_in_code_with_an_unknown_field_are_refused_with_the_nearest_one(
    name: str, expected: str
) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Settings(policy={name: 1})

    assert str(refused.value).startswith(expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tail_tokens": "1"}, "tail_tokens='1' is impossible: use a whole number"),
        ({"note_ratio": 2.0}, "note_ratio=2.0 is impossible: use a share between 0 and 1"),
        ({"tail_keep_tokens": 9_000}, "tail_keep_tokens=9000 is impossible: it must be below"),
    ],
)
def test_settings_refuse_impossible_values_of_their_policy_when_they_are_made(
    changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Settings(policy=changes)

    assert str(refused.value).startswith(expected)


def test_an_unknown_keyword_is_a_type_error_wherever_it_is_written() -> None:
    for make in (Policy, Settings, Policy.default, Policy.zora, Policy().replace):
        with pytest.raises(TypeError, match="nope"):
            make(nope=1)  # type: ignore[call-arg]  # what is tested


def test_a_file_that_is_no_object_is_refused(tmp_path: Path) -> None:
    tmp_path.joinpath("remanence.json").write_text("[1]")

    assert "remanence.json holds [1]: write an object of settings" in refusal(tmp_path)


def test_settings_alone_load_neither_pydantic_nor_the_database() -> None:
    code = (
        "import sys; from remanence.settings import Settings; Settings(); "
        "print(sorted({'pydantic', 'apsw'} & set(sys.modules)))"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["workers", "daily_keep_days"])
def test_the_environment_takes_a_zero_where_settings_take_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"REMANENCE_{name.upper()}", "0")

    loaded = load_settings(arguments={}, file=config_file(tmp_path))

    assert loaded.settings == Settings(**{name: 0})  # type: ignore[arg-type]  # a field by name


@pytest.mark.parametrize(
    ("field", "value", "text", "remedy"),
    [
        ("workers", -1, "-1", "use 0 or more"),
        ("lease_seconds", 0.0, "0.0", "use a positive number"),
        ("durability", "fast", '"fast"', "use 'full' or 'normal'"),
        ("policy.note_ratio", 1.5, "1.5", "use a share between 0 and 1"),
        ("policy.enabled", "maybe", '"maybe"', "use true or false"),
        ("policy.tail_keep_tokens", 8_000, "8000", "it must be below tail_tokens=8,000"),
        ("policy.observe_max_tokens", 0, "0", "use a positive number, or None"),
    ],
)
def test_a_value_is_refused_with_the_same_remedy_wherever_it_was_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    field: str,
    value: object,
    text: str,
    remedy: str,
) -> None:
    table, _, name = field.rpartition(".")
    with pytest.raises(InvalidPolicy) as in_code:
        (Policy if table else Settings)(**{name: value})  # type: ignore[arg-type]  # by name
    file = tmp_path / "remanence.toml"
    file.write_text(f"[{table}]\n{name} = {text}\n" if table else f"{name} = {text}\n")
    in_file = refusal(tmp_path)
    file.unlink()
    written = text.strip('"')
    variable = "REMANENCE_" + field.upper().replace(".", "__")
    monkeypatch.setenv(variable, written)
    in_environment = refusal(tmp_path)

    assert str(in_code.value).startswith(f"{name}={value!r} is impossible: {remedy}")
    shared = str(in_code.value).partition(": ")[2]
    assert in_file == f"{field}={value!r} (file remanence.toml) is impossible: {shared}"
    assert in_environment == f"{variable}={written!r} (environment) is impossible: {shared}"


def test_values_that_contradict_a_default_are_named_as_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY__TAIL_TOKENS", "100")

    assert refusal(tmp_path).startswith(
        "REMANENCE_POLICY__TAIL_TOKENS='100' (environment) is impossible: tail_keep_tokens=1500 is"
    )


def test_a_number_in_a_file_is_a_number_and_may_have_a_point(tmp_path: Path) -> None:
    file = tmp_path / "remanence.toml"
    file.write_text("workers = 2.0\n")
    assert load(tmp_path).settings.workers == 2

    file.write_text('workers = "2"\n')
    assert "workers='2' (file remanence.toml) is impossible: use a whole number" in refusal(
        tmp_path
    )


@pytest.mark.parametrize("key", ["model", "observer_model", "reflector_model"])
def test_several_models_may_be_a_list_in_a_file(key: str, tmp_path: Path) -> None:
    file = tmp_path / "remanence.toml"
    file.write_text(f'{key} = ["anthropic:claude-haiku-4-5", "openai:gpt-5-mini"]\n')

    assert getattr(load(tmp_path).settings, key) == "anthropic:claude-haiku-4-5, openai:gpt-5-mini"


@pytest.mark.parametrize("value", ["[]", "[1, 2]"])
def test_a_list_of_models_that_names_none_is_refused(value: str, tmp_path: Path) -> None:
    (tmp_path / "remanence.toml").write_text(f"model = {value}\n")

    assert refusal(tmp_path).startswith(f"model={value} (file remanence.toml) is impossible")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy.default(), "is a Policy: use a dict .* as policy= of Memory.open$"),
        (5, "^policy=5 is impossible: use a dict$"),
    ],
)
def test_a_policy_in_place_of_its_changes_is_refused_in_one_line(
    policy: Any, expected: str
) -> None:
    with pytest.raises(InvalidPolicy, match=expected) as refused:
        Settings(policy=policy)

    assert len(str(refused.value)) < 120


def test_a_price_counts_for_a_model_wherever_it_is_called() -> None:
    assert own_prices(["openai:m@http://127.0.0.1:8000/v1 0.2 0.8"]) == {"openai:m": (0.2, 0.8)}


def test_equal_settings_have_equal_hashes() -> None:
    one, other = Settings(policy={"tail_tokens": 24_000}), Settings(policy={"tail_tokens": 24_000})

    assert {one, other} == {one}
