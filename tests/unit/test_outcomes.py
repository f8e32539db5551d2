"""What of a tool's output is read as a row."""

import json

import pytest

from remanence import Message
from remanence.observers.extractive.outcomes import rows_of_tools


@pytest.mark.parametrize(
    ("output", "rows"),
    [
        ("2 passed\n\n=====\nelapsed 3.1 s", ["2 passed", "elapsed 3.1 s"]),
        ({"id": 7, "status": "sent", "link": "https://example.org"}, ["id 7, status sent"]),
        ({"error": {"code": "E42"}, "trace": "at main"}, ["error code E42"]),
        ({"error": True, "message": "no room"}, ["error true, message no room"]),
        (
            {"exit_code": 1, "stdout": "collected 3 items\n1 failed, 2 passed\n"},
            ["exit code 1", "collected 3 items", "1 failed, 2 passed"],
        ),
        (["first line\nsecond line", 4], ["first line", "second line", "4"]),
        ({"orders": [{"id": 1}, {"id": 2}]}, ["id 1", "id 2"]),
        (None, []),
    ],
)
def test_the_rows_of_an_output_are_its_lines_or_the_fields_of_its_objects(
    output: object, rows: list[str]
) -> None:
    text = output if isinstance(output, str) else json.dumps(output)
    message = Message.tool("c1", text)

    assert [row.text for row in rows_of_tools(message, {}) if row is not None] == rows
