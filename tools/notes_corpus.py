"""Read, check, count, split and compare the labelled conversations of `data/notes`."""

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from remanence.observers.learned.features import Line, Role

ROOT = Path(__file__).parents[1] / "data" / "notes"
REGISTERS = ("friend", "assistant", "coding", "support", "family", "study", "business")
UNSEEN_REGISTERS = ("care", "leisure")
LOOK_ALIKES = "stated"
CHANGES = "changes"
ANSWERS = "answers"
RULES = "rules"
TASKS = "tasks"
EVERYDAY = "everyday"
HASTY = "hasty"
PLAIN = "plain"
MESSAGES = "messages"
TYPICAL = "typical"
COMMON = "common"
STYLE = "style"
FORGETTING = "forgetting"
FITTED_REGISTERS = (
    *("memory", "texts", "team", TASKS, "tools"),
    *(ANSWERS, RULES, LOOK_ALIKES, CHANGES, EVERYDAY, HASTY, PLAIN, MESSAGES, TYPICAL, STYLE),
    *(COMMON, FORGETTING),
)
"""Written later, for labels that are rare elsewhere; nothing of them is set aside, nor of `plans`."""
TALKS = ("talks", "talks_2", "talks_3")
"""Conversations of which the second half was written in sight of the scores: harder than others."""
TAGS = ("dec", "pref", "fact", "issue", "next", "out")
ABOUT = ("person", "advice", "quote", "trans", "fiction", "world")
FLAGS = ("inst", "con", "open", "remember", "forget", "corr", "rep", "end")
TIMES = ("past", "fut", "habit")
SLOTS = frozenset(
    [
        "name",
        "age",
        "birthday",
        "home",
        "origin",
        "nationality",
        "language",
        "family",
        "partner",
        "child",
        "friend",
        "pet",
        "job",
        "employer",
        "school",
        "studies",
        "salary",
        "phone",
        "email",
        "address",
        "account",
        "code",
        "health",
        "allergy",
        "diet",
        "medication",
        "like",
        "dislike",
        "hobby",
        "routine",
        "goal",
        "plan",
        "event",
        "travel",
        "vehicle",
        "possession",
        "project",
        "tool",
        "style",
        "belief",
        "contact",
        "skill",
        "other",
    ]
)
SPEAKERS: dict[str, Role] = {"u": "user", "a": "assistant", "t": "tool"}
_LINE = re.compile(r"([uat+/]) ([0-3]) ([a-z: -]+) \| (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A labelled sentence with its place; `marked` has the ⟦⟧ of its fact, `text` has not."""

    path: Path
    number: int
    conversation: str
    kind: str
    speaker: str
    said_at: datetime
    worth: int
    labels: frozenset[str]
    marked: str
    first: str
    """The text of the first sentence of its message."""
    is_dependent: bool | None = None
    """Whether it says little without the sentences around it; None where nobody marked it."""

    @property
    def text(self) -> str:
        return _unmarked(self.marked)

    @property
    def language(self) -> str:
        return self.path.parent.name

    @property
    def register(self) -> str:
        return self.path.stem

    @property
    def slot(self) -> str | None:
        return next((x.removeprefix("fact:") for x in self.labels if x.startswith("fact:")), None)


def read(root: Path = ROOT) -> list[Sentence]:
    """Sentences of all first labels, in the order of their files; raises ValueError at a bad line."""
    sentences: list[Sentence] = []
    for path in paths(root):
        found, errors = parse(path)
        if errors:
            raise ValueError("\n".join(errors))
        sentences += found
    return sentences


def paths(root: Path) -> list[Path]:
    return sorted(p for p in root.glob("*/*.txt") if p.parent.name != "second")


def parse(path: Path) -> tuple[list[Sentence], list[str]]:
    """Sentences of a file, and an error for each line that breaks the format."""
    sentences: list[Sentence] = []
    errors: list[str] = []
    dependent = _dependent(path)
    conversation, speaker, first, date = "", "", "", None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            if line.startswith("# "):
                conversation, speaker, date = line.split()[1], "", None
            elif line.startswith("@ "):
                date = datetime.strptime(line[2:].strip(), "%Y-%m-%d %H:%M %z")
            elif line.strip():
                kind, worth, labels, text = _fields(line)
                if kind in SPEAKERS:
                    speaker, first = kind, _unmarked(text)
                if not (conversation and date and speaker):
                    errors.append(f"{path}:{number}: comes before `# id`, `@ date` or a message")
                    continue
                sentences.append(
                    Sentence(
                        path=path,
                        number=number,
                        conversation=conversation,
                        kind=kind,
                        speaker=speaker,
                        said_at=date,
                        worth=worth,
                        labels=labels,
                        marked=text,
                        first=first,
                        is_dependent=None
                        if dependent is None or speaker == "t"
                        else number in dependent,
                    )
                )
        except ValueError as error:
            errors.append(f"{path}:{number}: {error}: {line!r}")
    return sentences, errors


def _dependent(path: Path) -> frozenset[int] | None:
    """The lines of a file whose sentences were marked as dependent, if somebody read it for that."""
    marks = path.parents[1] / "dependent" / path.parent.name / path.name
    return frozenset(map(int, marks.read_text("utf-8").split())) if marks.exists() else None


def _fields(line: str) -> tuple[str, int, frozenset[str], str]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError("not `kind worth labels | text`")
    kind, worth, words, text = match.groups()
    labels = frozenset() if words == "-" else frozenset(words.split())
    _validate(int(worth), labels, text)
    return kind, int(worth), labels, text


def _validate(worth: int, labels: frozenset[str], text: str) -> None:
    facts = {label for label in labels if label.startswith("fact:")}
    unknown = labels - {*TAGS, *ABOUT, *FLAGS, *TIMES} - {f"fact:{slot}" for slot in SLOTS}
    rules = {
        f"unknown labels {sorted(unknown)}": unknown,
        "more than one tag": len(labels & set(TAGS)) > 1,
        "more than one of those about whom": len(labels & set(ABOUT)) > 1,
        "more than one time": len(labels & set(TIMES)) > 1,
        "more than one fact": len(facts) > 1,
        "⟦ without ⟧": text.count("⟦") != text.count("⟧"),
        "a span without a fact": "⟦" in text and not facts,
        "a fact of quoted, translated, invented or general text, or of advice": facts
        and labels & {"quote", "trans", "fiction", "world", "advice"},
        "worth 0 with a label that is worth keeping": worth == 0
        and labels & {"dec", "inst", "con", "remember"},
    }
    broken = [name for name, is_broken in rules.items() if is_broken]
    if broken:
        raise ValueError(", ".join(broken))


def held_out(sentences: Sequence[Sentence]) -> frozenset[str]:
    """Names of the units that no fit and no reader sees: the unseen registers, a tenth of the others.

    A unit is a conversation, or a turn of a list of single ones. Those of a language come in the
    order of a hash of their names, until a tenth of its sentences is reached.
    """
    sizes = Counter(unit(s) for s in sentences)
    held = {unit(s) for s in sentences if s.register in UNSEEN_REGISTERS}
    for language in {s.language for s in sentences}:
        seen = [s for s in sentences if s.language == language and s.register in REGISTERS]
        quota, taken = len(seen) / 10, 0
        for name in sorted({unit(s) for s in seen}, key=_hash):
            if taken + sizes[name] <= quota * 1.2:
                held.add(name)
                taken += sizes[name]
            if taken >= quota:
                break
    return frozenset(held)


def unit(sentence: Sentence) -> str:
    """The conversation of a sentence; for single messages, with their first sentence."""
    single = sentence.conversation.endswith("-single")
    return f"{sentence.conversation}:{sentence.first}" if single else sentence.conversation


def _unmarked(text: str) -> str:
    return text.replace("⟦", "").replace("⟧", "")


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def lines_of(unit: Sequence[Sentence]) -> list[Line]:
    """Lines of a unit, as the learned scores read them."""
    messages: list[tuple[Role, list[str]]] = []
    for sentence in unit:
        if sentence.kind in SPEAKERS or not messages:
            messages.append((SPEAKERS[sentence.speaker], []))
        messages[-1][1].append(sentence.text)
    return list(lines(messages))


def lines(messages: Iterable[tuple[Role, Iterable[str]]]) -> Iterator[Line]:
    """Yield the lines of a conversation, given the texts of each message in order.

    The lines that a line refers to refer to no others.
    """
    last: Line | None = None
    for role, texts in messages:
        own = [Line(text, role) for text in texts]
        for number, line in enumerate(own):
            yield line._replace(reply_to=last, opening=own[0] if number else None)
        last = own[-1] if own else last


def check() -> int:
    errors = [error for path in paths(ROOT) for error in parse(path)[1]]
    if not errors:
        errors = _untagged(read())
    print(
        "\n".join(errors) or f"{sum(len(parse(p)[0]) for p in paths(ROOT)):,} sentences, no error"
    )
    return bool(errors)


def _untagged(sentences: Sequence[Sentence]) -> list[str]:
    """An error for each fact without a tag, in the part that is fitted."""
    apart = held_out(sentences)
    return [
        f"{s.path}:{s.number}: a fact without a tag"
        for s in sentences
        if s.slot and not s.labels & set(TAGS) and unit(s) not in apart
    ]


def stats() -> int:
    sentences = read()
    apart = held_out(sentences)
    for language in sorted({s.language for s in sentences}):
        part = [s for s in sentences if s.language == language]
        worth = Counter(s.worth for s in part)
        held = sum(unit(s) in apart for s in part)
        registers = Counter(s.register for s in part)
        print(
            f"{language}: {len(part):,} sentences, {held:,} set aside,"
            f" worth 0/1/2/3 {'/'.join(str(worth[w]) for w in range(4))},"
            f" {', '.join(f'{name} {count}' for name, count in sorted(registers.items()))}"
        )
    labels = Counter(label for s in sentences for label in s.labels)
    print(f"{len(sentences):,} sentences;", ", ".join(f"{k} {n}" for k, n in labels.most_common()))
    return 0


def split() -> int:
    sentences = read()
    apart = held_out(sentences)
    for sentence in sentences:
        part = "held" if unit(sentence) in apart else "fit"
        print(f"{part}\t{sentence.path.relative_to(ROOT)}:{sentence.number}")
    return 0


def blind() -> int:
    """Write what is set aside to `blind/` without labels, numbered for a second annotator."""
    sentences = read()
    apart = held_out(sentences)
    asked = {s.conversation for s in sentences if unit(s) in apart}
    lines: dict[Path, list[str]] = {}
    for s in sentences:
        if s.conversation in asked:
            number = s.number if unit(s) in apart else "-"
            lines.setdefault(s.path, []).append(f"{number}\t{s.kind}\t{s.text}\n")
    for path, rows in lines.items():
        target = ROOT.parents[1] / "blind" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(rows), "utf-8")
    return 0


def second_labels() -> dict[tuple[str, str, int], tuple[int, frozenset[str]]]:
    """Worth and labels by language, register and line, of `second/`: a `number worth labels` a line."""
    labels = {}
    for path in sorted((ROOT / "second").glob("*/*.txt")):
        for line in path.read_text("utf-8").splitlines():
            number, worth, *words = line.split()
            labels[path.parent.name, path.stem, int(number)] = int(worth), frozenset(words) - {"-"}
    return labels


def agreement() -> int:
    """Print the weighted kappa of worth and the F1 of each label, between first and second labels."""
    first = {(s.language, s.register, s.number): (s.worth, s.labels) for s in read()}
    pairs = [(first[key], labels) for key, labels in second_labels().items() if key in first]
    if not pairs:
        print("no second labels")
        return 1
    worths = [(a, b) for (a, _), (b, _) in pairs]
    print(f"{len(pairs):,} sentences with two labels, worth: weighted kappa {_kappa(worths):.2f}")
    _print_f1("worth 2 or 3", [(a > 1, b > 1) for a, b in worths])
    facts = frozenset(f"fact:{slot}" for slot in SLOTS)
    _print_f1("any fact", [(bool(a & facts), bool(b & facts)) for (_, a), (_, b) in pairs])
    for label in (*TAGS, *ABOUT, *FLAGS, *TIMES, *sorted(facts)):
        _print_f1(label, [(label in a, label in b) for (_, a), (_, b) in pairs])
    return 0


def _print_f1(label: str, pairs: list[tuple[bool, bool]]) -> None:
    both = sum(a and b for a, b in pairs)
    total = sum(a + b for a, b in pairs)
    print(f"  {label}: F1 {2 * both / total if total else 1.0:.2f} ({both} by both)")


def _kappa(pairs: list[tuple[int, int]]) -> float:
    a, b = Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
    observed = sum((x - y) ** 2 for x, y in pairs) / len(pairs)
    expected = sum((i - j) ** 2 * a[i] * b[j] for i in a for j in b) / len(pairs) ** 2
    return 1 - observed / expected if expected else 1.0


COMMANDS = {f.__name__: f for f in (check, stats, split, blind, agreement)}

if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in COMMANDS]:
        raise SystemExit(f"usage: notes_corpus.py {'|'.join(COMMANDS)}")
    raise SystemExit(COMMANDS[sys.argv[1]]())
