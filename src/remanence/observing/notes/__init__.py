"""Notes as text: four formats, each of which parses back to what it shows."""

from remanence.observing.notes.marks import one_line, usual_priority
from remanence.observing.notes.parse import parse_notes
from remanence.observing.notes.render import render_notes

__all__ = ["one_line", "parse_notes", "render_notes", "usual_priority"]
