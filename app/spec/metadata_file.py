"""Metadata files: their names and their compression (table spec: Appendix C and F, naming of gzip files).

Two historic names mean gzip: `x.gz.metadata.json` (written here) and `x.metadata.json.gz` (read only).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from isal import isal_zlib

from app.errors import PayloadTooLarge, SpecError
from app.spec.location import join, strip_trailing_slash
from app.spec.text import LEVEL, Text

METADATA_PATH = "write.metadata.path"
COMPRESSION = "write.metadata.compression-codec"

MOST_RATIO = 200
"""How many times its own size a foreign gzip file may unpack to. Metadata is packed to a tenth or a twentieth."""
FREE_BYTES = 16 << 20
"""What it may unpack to at any rate."""

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + isal_zlib.MAX_WBITS
# What is left behind the end of a member is copied: with the whole rest at once, a file of tiny members takes minutes.
_GZIP_BLOCK = 16 << 10
# Its type hints call this class an instance.
_Damaged = cast(type[Exception], isal_zlib.error)
_VERSION = re.compile(r"v?(\d{1,9})(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


def is_gzip_name(location: str) -> bool:
    """Whether the file's name says that its content is gzip."""
    name = location.rsplit("/", 1)[-1]
    return name.endswith((".gz.metadata.json", ".metadata.json.gz"))


def is_gzip(data: bytes) -> bool:
    """Whether the content of a stored file is gzip."""
    return data.startswith(_GZIP_MAGIC)


def most_unpacked(size: int) -> int:
    """Bytes that a file of `size` bytes may unpack to when anybody may have written it."""
    return max(MOST_RATIO * size, FREE_BYTES)


def encode(metadata: bytes | Text, location: str) -> bytes:
    """The bytes to store at `location`: gzip, of one member, if its name says so."""
    if not is_gzip_name(location):
        return metadata if isinstance(metadata, bytes) else metadata.joined()
    if isinstance(metadata, Text):
        return b"".join(metadata.deflated().member())
    packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _GZIP)
    return packer.compress(metadata) + packer.flush()


def decode(data: bytes, location: str, *, limit: int | None = None) -> bytes:
    """The JSON text of a stored file. Gzip is told by the name or by its first bytes, whatever the name.

    `limit` bounds the decompressed size in bytes (PayloadTooLarge). SpecError when the content is damaged.
    """
    if not is_gzip(data):
        if is_gzip_name(location):
            raise SpecError(f"Not a gzip file in spite of its name: {location}")
        return data
    out: list[bytes] = []
    view, at, size = memoryview(data), 0, 0
    try:
        while at < len(view):  # gzip members may be concatenated
            unpacker = isal_zlib.decompressobj(_GZIP)
            while not unpacker.eof:
                if at == len(view):
                    raise SpecError(f"Truncated gzip file: {location}")
                block = view[at : at + _GZIP_BLOCK]
                out.append(unpacker.decompress(block, 0 if limit is None else limit - size + 1))
                size += len(out[-1])
                if limit is not None and size > limit:
                    raise PayloadTooLarge(f"Metadata file unpacks to more than {limit} bytes: {location}")
                at += len(block)
            at -= len(unpacker.unused_data)
    except _Damaged as error:
        raise SpecError(f"Damaged gzip file: {location}") from error
    return b"".join(out)


def new_metadata_location(location: str, properties: Mapping[str, str], version: int, uuid: str) -> str:
    """A never-used name for the next metadata file of a table or view at `location`.

    In `write.metadata.path` if set, else in `<location>/metadata`; `.gz.metadata.json` with the gzip codec.
    """
    suffix = ".gz.metadata.json" if properties.get(COMPRESSION, "none").lower() == "gzip" else ".metadata.json"
    folder = properties.get(METADATA_PATH)
    name = f"{version:05d}-{uuid}{suffix}"
    if folder:
        return f"{strip_trailing_slash(folder)}/{name}"
    return join(location, "metadata", name)


def parse_version(location: str) -> int:
    """The version in a metadata file's name (`00012-...`, or `v12` as file-based catalogs write); -1 without one."""
    found = _VERSION.fullmatch(location.rsplit("/", 1)[-1])
    return int(found.group(1)) if found else -1
