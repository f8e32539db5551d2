"""`remanence config path`: the file of the settings."""

from pathlib import Path

from remanence.cli.options import AsJson
from remanence.cli.output import Printer, write_json
from remanence.settings.sources import FILE_NAMES, config_file


def run(*, as_json: AsJson = False) -> None:
    """Show which file the settings are read from."""
    file = config_file(Path.cwd())
    if as_json:
        write_json({"file": file, "looked_for": FILE_NAMES})
    else:
        Printer().line(str(file) if file else f"no file: {' and '.join(FILE_NAMES)} are missing")
