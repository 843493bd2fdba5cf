"""Names and compression of metadata files."""

from __future__ import annotations

import gzip

import pytest

from app.errors import PayloadTooLarge, SpecError
from app.spec.metadata_file import decode, encode, new_metadata_location, parse_version

TEXT = b'{"format-version":2}' * 50
PLAIN = "s3://b/t/metadata/00001-a.metadata.json"
NEW_GZIP = "s3://b/t/metadata/00001-a.gz.metadata.json"
OLD_GZIP = "s3://b/t/metadata/00001-a.metadata.json.gz"


@pytest.mark.parametrize("location", [PLAIN, NEW_GZIP, OLD_GZIP])
def test_what_is_written_is_read(location: str) -> None:
    """Both historic names mean gzip, the plain one means none, and equal input gives equal bytes."""
    stored = encode(TEXT, location)
    assert stored == encode(TEXT, location)
    assert (stored == TEXT) == (location == PLAIN)
    assert decode(stored, location) == TEXT


def test_gzip_under_a_plain_name_is_told_by_its_bytes() -> None:
    """A file whose name does not admit its compression is read all the same."""
    assert decode(gzip.compress(TEXT), PLAIN) == TEXT


def test_gzip_members_may_be_concatenated() -> None:
    """RFC 1952 files of several members are read whole."""
    assert decode(gzip.compress(TEXT) + gzip.compress(TEXT), NEW_GZIP) == TEXT * 2


def test_a_small_file_cannot_unpack_beyond_the_limit() -> None:
    """The limit holds for the unpacked size, exactly."""
    bomb = gzip.compress(b"0" * 1_000_000)
    with pytest.raises(PayloadTooLarge):
        decode(bomb, NEW_GZIP, limit=999_999)
    assert len(decode(bomb, NEW_GZIP, limit=1_000_000)) == 1_000_000


@pytest.mark.parametrize("data", [b"{}", gzip.compress(TEXT, mtime=0)[:-5], b"\x1f\x8b" + b"junk" * 10, b""])
def test_a_damaged_gzip_file_is_a_bad_document(data: bytes) -> None:
    """Never a crash."""
    with pytest.raises(SpecError):
        decode(data, NEW_GZIP)


def test_new_names_say_version_and_encoding() -> None:
    """Five digits, in the table's metadata folder or in write.metadata.path, .gz. with the gzip codec."""
    assert new_metadata_location("s3://b/t/", {}, 7, "u") == "s3://b/t/metadata/00007-u.metadata.json"
    elsewhere = {"write.metadata.path": "s3://b/m//", "write.metadata.compression-codec": "GZIP"}
    assert new_metadata_location("s3://b/t", elsewhere, 123456, "u") == "s3://b/m/123456-u.gz.metadata.json"


@pytest.mark.parametrize(
    ("location", "version"),
    [
        (PLAIN, 1),
        (NEW_GZIP, 1),
        (OLD_GZIP, 1),
        ("/t/metadata/v12.metadata.json", 12),
        ("/t/metadata/00031-5-a-b.metadata.json", 31),
        ("/t/metadata/x.metadata.json", -1),
        ("00001-a/metadata.json", -1),
        ("/t/99999999999999999999-a.metadata.json", -1),
    ],
)
def test_the_version_is_read_from_the_name(location: str, version: int) -> None:
    """-1 where the name has none."""
    assert parse_version(location) == version
