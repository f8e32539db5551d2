"""Write docs/reference/settings.md from the docstrings and defaults of `Policy` and `Settings`."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from remanence import Policy, Settings
from remanence.cli.config_commands import attribute_meanings
from remanence.types import Budget

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
PRESETS = {"lango": Policy.lango(), "zora": Policy.zora(), "brain": Policy.brain()}

HEAD = """\
# Settings

`python -m tools.settings_page` generates this page from the code. `remanence config show` prints the values in use and where each
came from. [The command line](cli.md#remanence-config-show) describes the sources, their formats and their order.

In a file, fields of `Settings` are top-level keys, and fields of the policy are keys of the table `[policy]`. In the environment
they are `REMANENCE_URL` and `REMANENCE_POLICY__TAIL_TOKENS`. Commands read both automatically. `Memory.open` reads neither unless
it is given a file: `Memory.open(settings="remanence.toml")` reads that file and the variables, which take precedence. In Python:

```python
from remanence import Policy, Settings

settings = Settings(url="sqlite:///memory.db", preset="zora", policy={"tail_tokens": 24_000})
policy = Policy.zora(tail_tokens=24_000)
```

Impossible values are refused when a policy or settings are created, with the name, the value and the remedy.
"""

BUDGET = """
## Budget

`Settings.budgets` and `Memory.open(budgets=[...])` take `Budget` objects; see [costs](../howto/costs.md#budgets).
"""


def shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case "" | ():
            return "empty"
        case dict():
            return "empty"
        case tuple():
            return "`[" + ", ".join(f"{item:,}" for item in value) + "]`"
        case bool():
            return f"`{str(value).lower()}`"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,g}"
        case _:
            return f"`{value}`"


def default_of(field: "dataclasses.Field[object]") -> str:
    if field.default_factory is not dataclasses.MISSING:
        return shown(field.default_factory())
    return "required" if field.default is dataclasses.MISSING else shown(field.default)


def rows(documented: type) -> Iterator[str]:
    meanings = attribute_meanings(documented)
    for field in dataclasses.fields(documented):
        yield f"| `{field.name}` | {default_of(field)} | {meanings[field.name]} |"


def policy_rows() -> Iterator[str]:
    meanings, standard = attribute_meanings(Policy), Policy()
    for field in dataclasses.fields(Policy):
        usual = getattr(standard, field.name)
        others = ", ".join(
            f"{name} {shown(value)}"
            for name, policy in PRESETS.items()
            if (value := getattr(policy, field.name)) != usual
        )
        yield f"| `{field.name}` | {shown(usual)} | {others} | {meanings[field.name]} |"


def page() -> str:
    """The whole page."""
    table = "| field | default | what it counts |\n|---|---|---|\n"
    wide = "| field | default | other presets | what it counts |\n|---|---|---|---|\n"
    parts = [
        HEAD,
        "\n## Policy\n\n" + wide + "\n".join(policy_rows()) + "\n",
        "\n## Settings\n\n" + table + "\n".join(rows(Settings)) + "\n",
        BUDGET + "\n" + table + "\n".join(rows(Budget)) + "\n",
    ]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
