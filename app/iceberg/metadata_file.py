"""Metadata files: their names and their compression (table spec: Appendix C and F, naming of gzip files).

Two historic names mean gzip: `x.gz.metadata.json` (written here) and `x.metadata.json.gz` (read only). Files in zstd
come from other catalogs and are read only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Protocol, cast

from isal import isal_zlib

from app.errors import PayloadTooLarge, SpecError, ValidationFailed
from app.iceberg.json.chunked_text import LEVEL, Text
from app.iceberg.location import join, strip_trailing_slash

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

METADATA_PATH = "write.metadata.path"
COMPRESSION = "write.metadata.compression-codec"
CODECS = ("none", "gzip")
"""What this server writes, and every reader reads."""

MOST_RATIO = 200
"""How many times its own size a foreign packed file may unpack to. Metadata is packed to a tenth or a twentieth."""
FREE_BYTES = 16 << 20
"""What it may unpack to at any rate."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP = 16 + isal_zlib.MAX_WBITS
# What is left behind the end of a member or frame is copied: with the whole rest at once, a file of tiny ones takes
# minutes.
_BLOCK = 16 << 10
# Its type hints call this class an instance.
_Damaged = cast(type[Exception], isal_zlib.error)
_VERSION = re.compile(r"v?(\d{1,9})(?:-[^/]*)?(?:\.(?:gz|zstd?))?\.metadata\.json(?:\.gz)?")


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


def is_gzip_name(location: str) -> bool:
    """Whether the file's name says that its content is gzip."""
    name = location.rsplit("/", 1)[-1]
    return name.endswith((".gz.metadata.json", ".metadata.json.gz"))


def is_packed(data: bytes) -> bool:
    """Whether the content of a stored file is gzip or zstd."""
    return data.startswith((_GZIP_MAGIC, _ZSTD_MAGIC))


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
    """The JSON text of a stored file. Gzip and zstd are told by the first bytes, whatever the name.

    `limit` bounds the decompressed size in bytes (PayloadTooLarge). SpecError when the content is damaged, or no gzip
    in spite of its name.
    """
    if data.startswith(_ZSTD_MAGIC):
        return _unpacked(data, location, limit, "zstd", zstd.ZstdDecompressor, -1)
    if data.startswith(_GZIP_MAGIC):
        return _unpacked(data, location, limit, "gzip", _gzip_unpacker, 0)
    if is_gzip_name(location):
        raise SpecError(f"Not a gzip file in spite of its name: {location}")
    return data


def _gzip_unpacker() -> _Unpacker:
    return isal_zlib.decompressobj(_GZIP)


def _unpacked(
    data: bytes, location: str, limit: int | None, codec: str, unpacker_of: Callable[[], _Unpacker], unbounded: int
) -> bytes:
    """`unbounded` is what tells an unpacker that its output may be of any length."""
    out: list[bytes] = []
    view, at, size = memoryview(data), 0, 0
    try:
        while at < len(view):  # gzip members and zstd frames may be concatenated
            unpacker = unpacker_of()
            while not unpacker.eof:
                if at == len(view):
                    raise SpecError(f"Truncated {codec} file: {location}")
                block = view[at : at + _BLOCK]
                out.append(unpacker.decompress(block, unbounded if limit is None else limit - size + 1))
                size += len(out[-1])
                if limit is not None and size > limit:
                    raise PayloadTooLarge(f"Metadata file unpacks to more than {limit} bytes: {location}")
                at += len(block)
            at -= len(unpacker.unused_data)
    except (_Damaged, zstd.ZstdError) as error:
        raise SpecError(f"Damaged {codec} file: {location}") from error
    return b"".join(out)


def check_codec(properties: Mapping[str, str], present: Mapping[str, str] | None = None) -> None:
    """ValidationFailed when the properties ask for a compression of metadata files that this server does not write.

    What `present`, the table's own properties, holds already is let pass: tables of other catalogs bring it along.
    """
    codec = properties.get(COMPRESSION)
    if codec is None or codec.lower() in CODECS or (present is not None and present.get(COMPRESSION) == codec):
        return
    raise ValidationFailed(f"Unsupported {COMPRESSION}: {codec!r}. It must be one of: {', '.join(CODECS)}")


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
