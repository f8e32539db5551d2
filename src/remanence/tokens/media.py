"""Token counts of images and files; their base64 data is never counted as text."""

import base64
import codecs
import math
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from remanence.tokens.image_size import Size, image_size
from remanence.types import FilePart, ImagePart
from remanence.wire.content import payload

ImageCount: TypeAlias = Callable[[ImagePart], int]

_CLAUDE_PIXELS_PER_TOKEN = 750
_CLAUDE_LONGEST_EDGE = 1568
_CLAUDE_IMAGE_TOKENS = 1_600

_OPENAI_SQUARE = 2_048
_OPENAI_SHORTEST_EDGE = 768
_OPENAI_TILE = 512
_OPENAI_TILE_TOKENS = 170
_OPENAI_BASE_TOKENS = 85
_OPENAI_IMAGE_TOKENS = 1_445

_PAGE_TEXT_TOKENS = 800
_PDF_BYTES_PER_PAGE = 60_000
_AUDIO_BYTES_PER_TOKEN = 1_600
_DOCUMENT_BYTES_PER_TOKEN = 12
_UNSEEN_FILE_TOKENS = 1_500
_HEAD_BYTES = 4_096

_PDF_PAGE = re.compile(rb"/Type\s*/Page\b")
_MAX_OBJECT_BYTES = 50_000_000
_TEXT_TYPE = re.compile(
    r"text/|application/(?:.*[+.-])?(?:json|xml|yaml|toml|javascript|typescript|sql|csv|sh)\b"
)


def claude_image(image: ImagePart) -> int:
    """Count a token per 750 pixels after scaling edges to 1568; at most 1600, also if unknown."""
    size = _size(image)
    if size is None:
        return _CLAUDE_IMAGE_TOKENS
    width, height = _scale(size, min(1.0, _CLAUDE_LONGEST_EDGE / max(size)))
    return min(math.ceil(width * height / _CLAUDE_PIXELS_PER_TOKEN), _CLAUDE_IMAGE_TOKENS)


def openai_image(image: ImagePart) -> int:
    """Count 85 tokens, plus 170 per tile of 512 pixels after OpenAI's high-detail scaling."""
    size = _size(image)
    if size is None:
        return _OPENAI_IMAGE_TOKENS
    size = _scale(size, min(1.0, _OPENAI_SQUARE / max(size)))
    width, height = _scale(size, min(1.0, _OPENAI_SHORTEST_EDGE / min(size)))
    tiles = math.ceil(width / _OPENAI_TILE) * math.ceil(height / _OPENAI_TILE)
    return _OPENAI_BASE_TOKENS + _OPENAI_TILE_TOKENS * tiles


def file_tokens(file: FilePart, *, text: Callable[[str], int], image: ImageCount) -> int:
    """Count text files as text, PDFs by page (text and image), and other files by size."""
    inline = payload(file)
    media_type = inline.kind if inline else (file.media_type or "").lower()
    if media_type.startswith("image/"):
        return image(ImagePart(data=inline.data if inline else None))
    if inline is None:
        return _UNSEEN_FILE_TOKENS
    content = _decode(inline.data)
    if media_type == "application/pdf" or content.startswith(b"%PDF-"):
        pages = _count_pages(content) or math.ceil(len(content) / _PDF_BYTES_PER_PAGE)
        return pages * (_PAGE_TEXT_TOKENS + image(ImagePart()))
    if media_type.startswith("audio/"):
        return math.ceil(len(content) / _AUDIO_BYTES_PER_TOKEN)
    if _TEXT_TYPE.match(media_type) or _is_text(content):
        return text(content.decode(errors="replace"))
    return math.ceil(len(content) / _DOCUMENT_BYTES_PER_TOKEN)


def _count_pages(content: bytes) -> int:
    """Count the page objects of a PDF, also those in compressed streams of objects."""
    pages, room = len(_PDF_PAGE.findall(content)), _MAX_OBJECT_BYTES
    for piece in content.split(b"endstream"):
        _, is_found, rest = piece.rpartition(b"/ObjStm")
        stream = rest.partition(b"stream")[2].lstrip(b"\r\n")
        if is_found and room > 0:
            with suppress(zlib.error):  # encrypted, or compressed in another way
                objects = zlib.decompressobj().decompress(stream, room)
                pages += len(_PDF_PAGE.findall(objects))
                room -= len(objects)
    return pages


def _size(image: ImagePart) -> Size | None:
    if image.width and image.height:
        return image.width, image.height
    inline = payload(image)
    return None if inline is None else image_size(inline.data)


def _scale(size: Size, factor: float) -> Size:
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data + "=" * (-len(data) % 4))
    except ValueError:
        return data.encode(errors="replace")


def _is_text(content: bytes) -> bool:
    head = content[:_HEAD_BYTES]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head
