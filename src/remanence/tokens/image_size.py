"""Image sizes, read from the first bytes of a file."""

import base64
import struct
from typing import TypeAlias

Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""

_HEADER_CHARACTERS = 64 * 1024
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_MARKERS_READ = 200


def image_size(data: str) -> Size | None:
    """Return the size of the PNG, JPEG, GIF or WebP image in base64 `data`, None if unknown.

    Only the start of `data` is decoded, so the cost does not grow with the image.
    """
    start = "".join(data[:_HEADER_CHARACTERS].split())
    try:
        size = _size(base64.b64decode(start[: len(start) // 4 * 4]))
    except (ValueError, struct.error, IndexError):
        return None
    return size if size and size[0] > 0 and size[1] > 0 else None


def _size(head: bytes) -> Size | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _pair(">II", head, 16)
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _pair("<HH", head, 6)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp_size(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg_size(head)
    return None


def _pair(layout: str, head: bytes, offset: int) -> Size:
    first, second = struct.unpack_from(layout, head, offset)
    return int(first), int(second)


def _webp_size(head: bytes) -> Size | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = _pair("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width = int.from_bytes(head[24:27], "little")
            height = int.from_bytes(head[27:30], "little")
            return width + 1, height + 1
    return None


def _jpeg_size(head: bytes) -> Size | None:
    offset = 2
    for _ in range(_JPEG_MARKERS_READ):
        if head[offset] != 0xFF:
            return None
        marker = head[offset + 1]
        if marker == 0xFF:
            offset += 1
        elif marker in _JPEG_FRAMES:
            height, width = _pair(">HH", head, offset + 5)
            return width, height
        else:
            (length,) = struct.unpack_from(">H", head, offset + 2)
            offset += 2 + length
    return None
