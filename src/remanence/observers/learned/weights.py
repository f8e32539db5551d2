"""The fitted weights: rows of small integers, one number per head, and how they are stored.

The numbers of a row stand in one Python integer, `LANE` bits each, so that adding two integers adds
all heads at once, exactly and alike on every machine.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import accumulate
from operator import attrgetter

LANE = 32
FORMAT = 4
FILE = "weights.bin"
LENGTH_BYTES = 4
"""Bytes of the length of the header, before it."""
_LANE_BYTES = LANE // 8
_LIFT = 128
_LIFTED = bytes((byte + _LIFT) % 256 for byte in range(256))
"""By the byte of a signed number, that number plus `_LIFT`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Rows of signed bytes, a number per head, by bucket; with the scale and bias of each head."""

    heads: tuple[str, ...]
    rows: bytes
    scales: tuple[float, ...]
    biases: tuple[float, ...]
    cutoffs: dict[str, float] = field(default_factory=dict)
    """By head, the score from which precision and recall are best balanced."""
    strict: dict[str, float] = field(default_factory=dict)
    """By head, the score from which nine of ten are right; heads that do not reach it are missing."""

    @property
    def buckets(self) -> int:
        return len(self.rows) // len(self.heads)

    def row(self, name: str) -> tuple[int, ...]:
        """Numbers of a feature, in the order of the heads."""
        width = len(self.heads)
        return struct.unpack_from(f"{width}b", self.rows, bucket(name, self.buckets) * width)


class PackedRows(dict[str, int]):
    """Rows as integers, by the name of their feature."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self._numbers = weights.rows
        self._buckets, self._width = weights.buckets, len(weights.heads)
        self._zero = pack([_LIFT] * self._width)

    def __missing__(self, name: str) -> int:
        row = self[name] = self.sum_of((name,))
        return row

    def total(self, names: Iterable[str]) -> int:
        """Sum of the rows of features, which are remembered."""
        return sum(map(self.__getitem__, names))

    def sum_of(self, names: Iterable[str]) -> int:
        """Sum of the rows of features that need not be remembered."""
        total, width, spread = 0, self._width, bytearray(self._width * _LANE_BYTES)
        for name in names:
            start = bucket(name, self._buckets) * width
            spread[::_LANE_BYTES] = self._numbers[start : start + width].translate(_LIFTED)
            total += int.from_bytes(spread, "little") - self._zero
        return total


def bucket(feature: str, buckets: int) -> int:
    """The row of a feature in a table of so many rows."""
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % buckets


def pack(row: Sequence[int]) -> int:
    """A row of signed numbers as one integer."""
    packed = 0
    for number in reversed(row):
        packed = (packed << LANE) + number
    return packed


def unpack(packed: int, width: int) -> tuple[int, ...]:
    """The numbers of a packed row, or of a sum of packed rows."""
    signs = _signs(width)
    signed = (packed + signs) ^ signs  # each lane in two's complement
    return struct.unpack(f"<{width}i", signed.to_bytes(width * _LANE_BYTES, "little"))


@cache
def _signs(width: int) -> int:
    return pack([1 << (LANE - 1)] * width)


def parse(data: bytes) -> Weights:
    """Read the bytes of a file, as `dump` of `tools/weights_file.py` writes them.

    Raises:
        ValueError: they have another format.
    """
    plain = zlib.decompress(data)
    start = LENGTH_BYTES + int.from_bytes(plain[:LENGTH_BYTES], "little")
    header = json.loads(plain[LENGTH_BYTES:start])
    if (found := header.pop("format")) != FORMAT:
        raise ValueError(f"weights have format {found!r}, not {FORMAT}: fit them again")
    lists = {name: tuple(header[name]) for name in ("heads", "scales", "biases")}
    width, buckets = len(lists["heads"]), header.pop("buckets")
    columns, middle = bytearray(width * buckets), (start + len(plain)) // 2
    for place, number in zip(accumulate(plain[start:middle]), plain[middle:], strict=True):
        columns[place - 1] = number
    rows = bytearray(len(columns))
    for at in range(width):
        rows[at::width] = columns[at * buckets : (at + 1) * buckets]
    return Weights(rows=bytes(rows), **{**header, **lists})


@cache
def load(file: str = FILE) -> Weights:
    """Weights that ship with the package, by the name of their file."""
    return parse((resources.files(__package__) / file).read_bytes())


@cache
def packed_rows(file: str) -> PackedRows:
    """The rows of weights that ship with the package, each remembered once it was used."""
    return PackedRows(load(file))


@cache
def checksum() -> str:
    """Return eight hexadecimal digits, which change with any weights that ship with the package."""
    files = resources.files(__package__).iterdir()
    found = sorted((file for file in files if file.name.endswith(".bin")), key=attrgetter("name"))
    return f"{zlib.crc32(b''.join(file.read_bytes() for file in found)):08x}"
