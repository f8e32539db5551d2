"""A dict of bounded size."""

from remanence.recent import Recent


def test_beyond_the_bound_what_was_written_longest_ago_goes() -> None:
    recent: Recent[str, int] = Recent(2)

    for number, key in enumerate("abac"):
        recent[key] = number

    assert recent == {"a": 2, "c": 3}
