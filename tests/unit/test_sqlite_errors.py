import apsw
import pytest

from remanence.errors import DuplicateMessage, NotADatabase, StoreError, StoreUnavailable
from remanence.stores.sqlite.errors import translate_error

PATH = "some/memory.db"


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (apsw.BusyError(), StoreUnavailable, "end that process"),
        (apsw.LockedError(), StoreUnavailable, "end that process"),
        (apsw.FullError(), StoreUnavailable, "/var/tmp): free some"),
        (apsw.ReadOnlyError(), StoreUnavailable, "make the file and its directory writable"),
        (apsw.PermissionsError(), StoreUnavailable, "make the file and its directory writable"),
        (apsw.CantOpenError(), StoreUnavailable, "check that its directory exists"),
        (apsw.IOError("disk I/O error"), StoreUnavailable, "check the disk and its free space"),
        (apsw.NotADBError(), NotADatabase, "name another file"),
        (apsw.CorruptError("malformed"), StoreError, "restore a backup"),
        (UnicodeDecodeError("utf-8", b"\xc8", 0, 1, "invalid"), StoreError, "restore a backup"),
        (apsw.ConstraintError("UNIQUE"), StoreError, "UNIQUE"),
    ],
)
def test_what_sqlite_reports_names_the_file_and_a_remedy(
    error: Exception, kind: type[Exception], remedy: str
) -> None:
    answer = translate_error(error, PATH)

    assert type(answer) is kind
    assert repr(PATH) in str(answer)
    assert remedy in str(answer)
    assert "nothing was written" not in str(answer)  # an import or an erasure has several steps
    assert answer.__cause__ is error


def test_text_that_is_not_unicode_is_named() -> None:
    error = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    assert "surrogates not allowed" in str(translate_error(error, PATH))


@pytest.mark.parametrize("error", [DuplicateMessage("x"), ValueError("x")])
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    assert translate_error(error, PATH) is error
