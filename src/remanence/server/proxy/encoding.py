"""Decompression of answers that a provider compresses although the proxy asks for none."""

import zlib
from typing import Final

from remanence.errors import InvalidMessage

_COMPRESSED: Final = ("gzip", "x-gzip", "deflate")


class Decoder:
    """Reads the pieces of a body with this `content-encoding`, which may be empty."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._zlib = zlib.decompressobj(
            zlib.MAX_WBITS | 32
        )  # detects gzip or deflate by the header

    def decode(self, piece: bytes, max_bytes: int) -> bytes:
        """Return the decompressed piece, up to one byte more than *max_bytes*.

        Raises:
            InvalidMessage: the encoding is another one, or the piece is not of this encoding.
        """
        if self._encoding in ("", "identity"):
            return piece
        if self._encoding not in _COMPRESSED:
            raise InvalidMessage(
                f"the provider's answer is compressed ({self._encoding:.20}), which was not requested: "
                "turn off compression on the server"
            )
        try:
            return self._zlib.decompress(piece, max(0, max_bytes) + 1)
        except zlib.error as error:
            raise InvalidMessage(
                f"the provider's answer is not {self._encoding}: {error}"
            ) from error
