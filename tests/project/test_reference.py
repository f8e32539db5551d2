"""The reference pages name what the code has, and links between pages lead somewhere."""

import dataclasses
import importlib
import inspect
import re
import runpy
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import get_type_hints

import pytest

import remanence
from remanence import Conversation, Memory, Policy, Settings
from remanence.cli.config_commands import attribute_meanings
from remanence.facts.tags import CORRECTION, HOME, SPEAKER, WISH
from remanence.facts.wishes import INSTRUCTION, PREFERENCE
from remanence.policy.schedule import HEADING_TOKENS, MIN_HEADED_TOKENS, observation_target

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("**/*.md")]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def names_in(section: str) -> set[str]:
    """The names that stand first in the rows of a section of the page on public names."""
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    found = re.search(rf"^# ?{section}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"the page has no section {section!r}"
    return set(re.findall(r"^\| `([^`]+)` \|", found[1], re.MULTILINE))


def public_members(documented: type) -> set[str]:
    return {name for name in vars(documented) if not name.startswith("_")}


def test_every_public_name_is_documented_and_no_other() -> None:
    assert names_in("Public names") == set(remanence.__all__)


def typed_attributes(documented: type) -> set[str]:
    return set(re.findall(r"self\.([a-z]\w*): ", inspect.getsource(documented)))


def test_every_method_and_attribute_of_a_conversation_is_documented_and_no_other() -> None:
    members = public_members(Conversation)

    assert names_in("# Conversation") == members | typed_attributes(Conversation)
    assert set(re.findall(r"self\.([a-z]\w*) = ", inspect.getsource(Conversation))) == set()


def test_every_method_and_typed_attribute_of_a_memory_is_documented_and_no_other() -> None:
    assert names_in("# Memory") == public_members(Memory) | typed_attributes(Memory)


def test_every_public_method_and_property_has_a_docstring() -> None:
    public = [getattr(remanence, name) for name in remanence.__all__]
    kinds = [kind for kind in public if isinstance(kind, type)]
    members = [
        (f"{kind.__name__}.{name}", member)
        for kind in kinds
        for name, member in vars(kind).items()
        if not name.startswith("_")
    ]

    assert [
        name
        for name, member in members
        if isinstance(member, FunctionType | classmethod | property) and not member.__doc__
    ] == []


def annotated_in(module: str) -> Iterator[object]:
    """Yield the classes and functions that a module offers, with the methods of the classes."""
    loaded = importlib.import_module(module)
    for name in getattr(loaded, "__all__", vars(loaded)):
        value = getattr(loaded, name)
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type) and value.__module__.startswith("remanence"):
            yield value
            yield from map(inspect.unwrap, filter(inspect.isroutine, vars(value).values()))


@pytest.mark.parametrize(
    "module",
    ["remanence", "remanence.providers.connections", *sorted(names_in("# Further modules"))],
)
def test_the_type_hints_of_public_names_can_be_resolved(module: str) -> None:
    for annotated in annotated_in(module):
        get_type_hints(annotated)


def test_every_module_that_is_documented_is_there() -> None:
    named = names_in("# Further modules")

    assert named
    assert [name for name in named if find_spec(name) is None] == []


def test_the_page_of_settings_is_what_the_code_says() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "settings_page.py"))

    assert tool["PAGE"].read_text(encoding="utf-8") == tool["page"](), (
        "write it anew: python -m tools.settings_page"
    )


@pytest.mark.parametrize("documented", [Policy, Settings])
def test_the_page_of_settings_names_every_field(documented: type) -> None:
    text = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")

    assert [
        field.name
        for field in dataclasses.fields(documented)
        if f"\n| `{field.name}` |" not in text
    ] == []


@pytest.mark.parametrize("tag", [HOME, SPEAKER, CORRECTION, WISH, INSTRUCTION, PREFERENCE])
def test_the_page_on_facts_names_each_tag_of_the_embedded_extractor(tag: str) -> None:
    text = (DOCS / "howto" / "facts.md").read_text(encoding="utf-8")

    assert f"`{tag}" in text.partition("gives the tags")[2].partition("`made_by`")[0]


def test_the_meaning_of_note_ratio_has_the_limits_that_short_sources_have() -> None:
    whole = MIN_HEADED_TOKENS - HEADING_TOKENS
    meaning = attribute_meanings(Policy)["note_ratio"]

    assert f"at least min({MIN_HEADED_TOKENS}, source + {HEADING_TOKENS})" in meaning
    assert f"a source below {whole + 1} tokens may be noted in full" in meaning
    policy = Policy(note_ratio=0.2, min_note_tokens=0)
    targets = [observation_target(policy, tokens) for tokens in (9, whole, 300, 1_000)]
    assert targets == [9 + HEADING_TOKENS, MIN_HEADED_TOKENS, MIN_HEADED_TOKENS, 200]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        place = (page.parent / target) if target else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(f"{target}#{anchor}")

    assert broken == []


def test_the_index_names_every_page() -> None:
    index = DOCS / "README.md"
    linked = {
        (DOCS / target).resolve() for target, _ in LINK.findall(index.read_text(encoding="utf-8"))
    }

    assert {page for page in DOCS.glob("**/*.md") if page.resolve() not in linked} == {index}


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page have."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_page_on_metrics_names_every_metric_and_no_other() -> None:
    files = (ROOT / "src" / "remanence" / "telemetry").glob("*.py")
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    made = set(re.findall(r'(?:_meter\.create_\w+|_gauge)\(\s*"([^"]+)"', source))
    page = (DOCS / "metrics.md").read_text(encoding="utf-8").partition("## Traces")[0]
    rows = re.findall(r"^\| (`(?:remanence|gen_ai)\..*?`) \| ", page, re.MULTILINE)
    named: set[str] = set()
    for row in rows:
        first, *more = re.findall(r"`([^`]+)`", row)
        named |= {first, *(first.rpartition(".")[0] + name for name in more)}

    assert named == made
