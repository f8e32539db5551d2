"""Notes as text: four formats, each of which parses back to the content it shows."""

from remanence.notes.marks import day_of, one_line, usual_priority
from remanence.notes.parse import parse_notes
from remanence.notes.render import render_notes

__all__ = ["day_of", "one_line", "parse_notes", "render_notes", "usual_priority"]
