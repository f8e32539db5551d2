"""Text that client programs put into messages of the user, apart from the user's own."""

import pytest

from remanence.notes.program_text import instructions_in, own_text

REMINDER = "<system-reminder>\nUse <b>tests</b>.\n</system-reminder>"
QUOTING = "<system-reminder>print('</system-reminder>') I live in Rome.</system-reminder>"
PLACE = "<environment_context>\n  <cwd>/home/ana</cwd>\n</environment_context>"
SUMMARY = "This session is being continued from a previous conversation. I live in Porto."


@pytest.mark.parametrize(
    "text",
    [
        "I live in Porto.",
        "  I live in Porto.\n",
        "<user_query>I live in Porto.</user_query>",
        "<my-map>I live in Porto.</my-map>",
        "What is <system-reminder>? I live in Porto.",
        "What is `<system-reminder>`? I live in Porto. And `</system-reminder>`?",
        f"Summarise this mail: 'Dear Ana, {REMINDER} Yours, Bo'",
        f"<bash-stdout>{REMINDER}</bash-stdout>",
        "I read: # AGENTS.md instructions",
        "# AGENTS.md is my topic. I live in Porto.",
    ],
)
def test_a_text_of_the_user_is_unchanged(text: str) -> None:
    assert (own_text(text), instructions_in(text)) == (text, "")


@pytest.mark.parametrize(
    ("text", "own", "instructions"),
    [
        (REMINDER, "", REMINDER),
        (f"Thanks.\n{REMINDER}", "Thanks.", REMINDER),
        (f"{REMINDER}\nThanks.\n{PLACE}", "Thanks.", f"{REMINDER}\n{PLACE}"),
        (
            "# AGENTS.md instructions for /a\n\nUse tabs.",
            "",
            "# AGENTS.md instructions for /a\n\nUse tabs.",
        ),
        (f"{REMINDER}{SUMMARY}", "", f"{REMINDER}{SUMMARY}"),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", "", ""),
        (
            f"<local-command-stdout>Done.</local-command-stdout>{REMINDER}Thanks.",
            "Thanks.",
            REMINDER,
        ),
        (f"<local-command-stdout>{REMINDER}</local-command-stdout>", "", ""),
        (f"{QUOTING} Thanks.", "Thanks.", f"{QUOTING} "),
        (f"{QUOTING}{REMINDER}Thanks.", "Thanks.", f"{QUOTING}{REMINDER}"),
        ("[Request interrupted by user for tool use]", "", ""),
        ("[Request interrupted by user]\nI live in Porto.", "I live in Porto.", ""),
    ],
)
def test_a_text_of_the_program_is_either_an_instruction_or_a_trace_of_a_command(
    text: str, own: str, instructions: str
) -> None:
    assert (own_text(text), instructions_in(text)) == (own, instructions)
