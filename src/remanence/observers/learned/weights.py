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

LANE = 32
FORMAT = 1
FILE = "weights.bin"
_LENGTH = struct.Struct("<I")
_LANE_BYTES = LANE // 8
_LIFT = 128
_LIFTED = bytes((byte + _LIFT) % 256 for byte in range(256))
"""By the byte of a signed number, that number plus `_LIFT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Rows of signed bytes, a number per head, with the scale and bias of each head."""

    rows: bytes
    scales: tuple[float, ...]
    biases: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.rows) // len(self.scales)

    def row(self, index: int) -> tuple[int, ...]:
        """Numbers of a row, in the order of the heads."""
        width = len(self.scales)
        return struct.unpack_from(f"{width}b", self.rows, index * width)

    def packed_row(self, index: int) -> int:
        """A row as one integer."""
        return pack(self.row(index))


class PackedRows(dict[str, int]):
    """Rows of a layer as integers, by the name of their feature."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        width = len(layer.scales)
        self._stride = width * _LANE_BYTES
        self._buckets = len(layer)
        self._zero = pack([_LIFT] * width)
        self._spread = bytearray(self._stride * self._buckets)
        self._spread[::_LANE_BYTES] = layer.rows.translate(_LIFTED)

    def __missing__(self, name: str) -> int:
        start = bucket(name, self._buckets) * self._stride
        lifted = int.from_bytes(self._spread[start : start + self._stride], "little")
        row = self[name] = lifted - self._zero
        return row

    def total(self, names: Iterable[str]) -> int:
        """Sum of the rows of features."""
        return sum(map(self.__getitem__, names))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Weights of all heads.

    `text` scores a line by its features, a row per bucket; `context` scores it by those scores, its
    own and its neighbours', a row per neighbour and head.
    """

    heads: tuple[str, ...]
    text: Layer
    context: Layer
    cutoffs: dict[str, float] = field(default_factory=dict)
    """By head, the score from which precision and recall are best balanced."""
    strict: dict[str, float] = field(default_factory=dict)
    """By head, the score from which nine of ten are right; heads that do not reach it are missing."""


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


def dump(weights: Weights) -> bytes:
    """Weights as the bytes of a file."""
    header = {
        "format": FORMAT,
        "heads": weights.heads,
        "cutoffs": weights.cutoffs,
        "strict": weights.strict,
        "text": {"scales": weights.text.scales, "biases": weights.text.biases},
        "context": {"scales": weights.context.scales, "biases": weights.context.biases},
        "rows": len(weights.text),
    }
    head = json.dumps(header, sort_keys=True).encode()
    body = weights.text.rows + weights.context.rows
    return zlib.compress(_LENGTH.pack(len(head)) + head + body, 9)


def parse(data: bytes) -> Weights:
    """Read the bytes of a file; raises ValueError for another format."""
    plain = zlib.decompress(data)
    (size,) = _LENGTH.unpack_from(plain)
    start = _LENGTH.size + size
    header = json.loads(plain[_LENGTH.size : start])
    if header["format"] != FORMAT:
        raise ValueError(f"weights have format {header['format']!r}, not {FORMAT}: fit them again")
    end = start + header["rows"] * len(header["heads"])
    layers = {
        name: Layer(
            rows=rows,
            scales=tuple(header[name]["scales"]),
            biases=tuple(header[name]["biases"]),
        )
        for name, rows in (("text", plain[start:end]), ("context", plain[end:]))
    }
    return Weights(
        heads=tuple(header["heads"]),
        cutoffs=header["cutoffs"],
        strict=header["strict"],
        **layers,
    )


@cache
def load() -> Weights:
    """The weights that ship with the package."""
    return parse((resources.files(__package__) / FILE).read_bytes())
