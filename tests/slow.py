"""Which values of a parametrized test the everyday run takes; `make slow` takes the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def slow_except(values: Iterable[Any], everyday: Collection[Any]) -> list[ParameterSet]:
    """All values as parameters, those marked `slow` that the everyday run leaves out."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[] if value in everyday else [pytest.mark.slow],
        )
        for value in values
    ]
