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
from operator import attrgetter

LANE = 32
FORMAT = 3
FILE = "weights.bin"
_LENGTH = struct.Struct("<I")
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


_HEADER = ("heads", "scales", "biases", "cutoffs", "strict")


def dump(weights: Weights) -> bytes:
    """Weights as the bytes of a file."""
    header = {"format": FORMAT, **{name: getattr(weights, name) for name in _HEADER}}
    head = json.dumps(header, sort_keys=True).encode()
    width = len(weights.heads)
    columns = b"".join(weights.rows[at::width] for at in range(width))
    plain = _LENGTH.pack(len(head)) + head + columns
    # Where most numbers are not 0, none foretells the next: looking for repetitions only costs space.
    packings = (zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY), zlib.compressobj(9))
    return min((each.compress(plain) + each.flush() for each in packings), key=len)


def parse(data: bytes) -> Weights:
    """Read the bytes of a file; raises ValueError for another format."""
    plain = zlib.decompress(data)
    (size,) = _LENGTH.unpack_from(plain)
    start = _LENGTH.size + size
    header = json.loads(plain[_LENGTH.size : start])
    if (found := header.pop("format")) != FORMAT:
        raise ValueError(f"weights have format {found!r}, not {FORMAT}: fit them again")
    lists = {name: tuple(header[name]) for name in ("heads", "scales", "biases")}
    columns, width = plain[start:], len(lists["heads"])
    rows, buckets = bytearray(len(columns)), len(columns) // width
    for at in range(width):
        rows[at::width] = columns[at * buckets : (at + 1) * buckets]
    return Weights(rows=bytes(rows), **{**header, **lists})


@cache
def load(file: str = FILE) -> Weights:
    """Weights that ship with the package, by the name of their file."""
    return parse((resources.files(__package__) / file).read_bytes())


@cache
def checksum() -> str:
    """Return eight hexadecimal digits, which change with any weights that ship with the package."""
    files = resources.files(__package__).iterdir()
    found = sorted((file for file in files if file.name.endswith(".bin")), key=attrgetter("name"))
    return f"{zlib.crc32(b''.join(file.read_bytes() for file in found)):08x}"
