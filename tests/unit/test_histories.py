"""Reading a history of many conversations."""

import json

from remanence.cli.histories import HistoryReader


def test_the_last_times_of_a_bounded_number_of_conversations_are_known() -> None:
    reader = HistoryReader(
        name="t.jsonl",
        source="t.jsonl",
        tenant="default",
        conversation=None,
        user=None,
        max_message_bytes=1_000,
    )
    line = {"role": "user", "content": "Which gate?", "created_at": "2024-05-01T10:00:00Z"}
    dated = [{**line, "conversation": f"c{number}"} for number in range(12_000)]
    undated = [{**line, "conversation": name, "created_at": None} for name in ("c0", "c11999")]
    lines = (f"{json.dumps(each)}\n".encode() for each in (*dated, *undated))

    *_, old, new = [read.message for chunk in reader.chunks(lines) for read in chunk]
    assert (old.created_at is None, new.created_at is None) == (True, False)
