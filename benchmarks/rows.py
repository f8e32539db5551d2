"""One line of the table of figures: what was measured, beside its reference and its target."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["ok", "missed", "for comparison", "not measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure. `target` is the most that it may be, or the least where `at_least` is set."""

    what: str
    measured: float | None
    unit: str = ""
    target: float | None = None
    at_least: bool = False
    reference: str = ""
    detail: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the figure meets its target."""
        if self.measured is None:
            return "not measured"
        if self.target is None:
            return "for comparison"
        met = self.measured >= self.target if self.at_least else self.measured <= self.target
        return "ok" if met else "missed"

    @property
    def bound(self) -> str:
        """The target as the table writes it."""
        if self.target is None:
            return ""
        return f"{'≥' if self.at_least else '≤'} {self.target:g}{_unit(self.unit)}"

    @property
    def figure(self) -> str:
        """The measured figure as the table writes it."""
        if self.measured is None:
            return ""
        places = 0 if self.measured >= 1_000 else 1 if self.measured >= 20 else 2
        return f"{self.measured:,.{places}f}{_unit(self.unit)}"


def show(rows: Iterable[Row]) -> None:
    """Print rows, one line each."""
    for row in rows:
        bound = f"  (target {row.bound}: {row.verdict})" if row.target is not None else ""
        print(f"{row.what}: {row.figure}{bound}{f'  {row.detail}' if row.detail else ''}")


def as_markdown(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table."""
    head = ["| what | reference | target | measured | |", "|---|---|---|---|---|"]
    lines = [
        f"| {row.what} | {row.reference} | {row.bound} | {_measured(row)} | {row.verdict} |"
        for row in rows
    ]
    return "\n".join([*head, *lines])


def as_json(rows: Sequence[Row]) -> str:
    """Rows as a JSON list."""
    values = [{**asdict(row), "verdict": row.verdict} for row in rows]
    return json.dumps(values, ensure_ascii=False, indent=2)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which *share* of the values lie (nearest rank)."""
    ascending = sorted(values)
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def _measured(row: Row) -> str:
    if not row.figure:
        return row.detail
    return f"{row.figure}{f' ({row.detail})' if row.detail else ''}"


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
