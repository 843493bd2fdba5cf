"""Names and compression of metadata files."""

from __future__ import annotations

import gzip
import sys
import time
import zlib
from pathlib import Path

import duckdb
import pytest
from duckdb_extensions import import_extension
from pyiceberg.table import StaticTable

from app.errors import PayloadTooLarge, SpecError, ValidationFailed
from app.iceberg.json.chunked_text import Text
from app.iceberg.metadata_file import (
    COMPRESSION,
    check_codec,
    decode,
    encode,
    most_unpacked,
    new_metadata_location,
    parse_version,
)
from app.iceberg.table import compose_table_metadata
from tests.iceberg.documents import parsed, snapshot, with_history

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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


@pytest.mark.parametrize("location", [PLAIN, NEW_GZIP, OLD_GZIP])
def test_a_text_in_chunks_is_stored_alike(location: str) -> None:
    """Plain as it is, gzip as one member that ordinary readers unpack to the very text."""
    text = Text.composed([b"[", *(TEXT * 3 for _ in range(3)), b"]"])
    stored = encode(text, location)
    assert decode(stored, location) == text.joined()
    if location == PLAIN:
        assert stored == text.joined()
    else:
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        assert unpacker.decompress(stored) == gzip.decompress(stored) == text.joined()
        assert unpacker.eof and not unpacker.unused_data


@pytest.fixture
def spliced(tmp_path: Path) -> Path:
    """The metadata file of a table with 3,000 snapshots, from chunks."""
    metadata = parsed(with_history(*(snapshot(n, n - 1 or None, n) for n in range(1, 3001))))
    file = tmp_path / "metadata" / "00001-a.gz.metadata.json"
    file.parent.mkdir()
    text = compose_table_metadata(metadata)
    assert isinstance(text, Text) and len(text.chunks) > 5
    file.write_bytes(encode(text, str(file)))
    return file


def test_pyiceberg_reads_spliced_files(spliced: Path) -> None:
    """All of it."""
    assert [item.snapshot_id for item in StaticTable.from_metadata(str(spliced)).metadata.snapshots] == [
        *range(1, 3001)
    ]


def test_duckdb_reads_spliced_files(spliced: Path, tmp_path: Path) -> None:
    """All of it."""
    config = {"extension_directory": str(tmp_path / "extensions"), "autoinstall_known_extensions": "false"}
    with duckdb.connect(config=config) as connection:
        for name in ("avro", "httpfs", "iceberg"):
            import_extension(name, con=connection)
            connection.execute(f"LOAD {name}")
        counted = f"SELECT count(*), max(snapshot_id) FROM iceberg_snapshots('{spliced}')"
        assert connection.execute(counted).fetchall() == [(3000, 3000)]


def test_gzip_under_a_plain_name_is_told_by_its_bytes() -> None:
    """A file whose name does not admit its compression is read all the same."""
    assert decode(gzip.compress(TEXT), PLAIN) == TEXT


def test_gzip_members_may_be_concatenated() -> None:
    """RFC 1952 files of several members are read whole."""
    assert decode(gzip.compress(TEXT) + gzip.compress(TEXT), NEW_GZIP) == TEXT * 2


def test_many_members_are_read_in_time_that_the_length_says() -> None:
    """A foreign file of a megabyte may be fifty thousand empty members: others must not wait for it."""
    data = gzip.compress(b"") * 50_000 + gzip.compress(b"{}")
    began = time.process_time()
    assert decode(data, "v1.gz.metadata.json", limit=2) == b"{}"
    assert time.process_time() - began < 2


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
        ("/t/metadata/v12.zstd.metadata.json", 12),
        ("/t/metadata/00031-5-a-b.metadata.json", 31),
        ("/t/metadata/x.metadata.json", -1),
        ("00001-a/metadata.json", -1),
        ("/t/99999999999999999999-a.metadata.json", -1),
    ],
)
def test_the_version_is_read_from_the_name(location: str, version: int) -> None:
    """-1 where the name has none."""
    assert parse_version(location) == version


def test_a_foreign_file_unpacks_to_a_bounded_multiple() -> None:
    """400 KB of gzip that would become 400 MB are given up on after 80 MB; small files may unpack to 16 MB."""
    stored = gzip.compress(b" " * 400_000_000, 6)
    most = most_unpacked(len(stored))
    assert most < 85_000_000
    with pytest.raises(PayloadTooLarge, match=f"unpacks to more than {most} bytes"):
        decode(stored, NEW_GZIP, limit=most)
    assert most_unpacked(1_000) == 16 << 20


@pytest.mark.parametrize("location", [PLAIN, NEW_GZIP, "s3://b/t/metadata/00001-a.zstd.metadata.json"])
def test_zstd_is_read_whatever_the_name(location: str) -> None:
    """Also in several frames; other catalogs write it."""
    assert decode(zstd.compress(TEXT), location) == TEXT
    assert decode(zstd.compress(TEXT) + zstd.compress(TEXT), location) == TEXT * 2


def test_zstd_cannot_unpack_beyond_the_limit() -> None:
    """As for gzip, exactly."""
    bomb = zstd.compress(b"0" * 1_000_000)
    with pytest.raises(PayloadTooLarge):
        decode(bomb, PLAIN, limit=999_999)
    assert len(decode(bomb, PLAIN, limit=1_000_000)) == 1_000_000


@pytest.mark.parametrize("data", [zstd.compress(TEXT)[:-2], b"\x28\xb5\x2f\xfd" + b"junk" * 10, b"\x28\xb5\x2f\xfd"])
def test_a_damaged_zstd_file_is_a_bad_document(data: bytes) -> None:
    """The error names the codec."""
    with pytest.raises(SpecError, match="zstd"):
        decode(data, PLAIN)


def test_many_frames_are_read_in_time_that_the_length_says() -> None:
    """A megabyte of empty frames does not hold the others up."""
    data = zstd.compress(b"") * 50_000 + zstd.compress(b"{}")
    began = time.process_time()
    assert decode(data, PLAIN, limit=2) == b"{}"
    assert time.process_time() - began < 2


@pytest.mark.parametrize("codec", ["none", "gzip", "GZIP", "None"])
def test_supported_codecs_pass(codec: str) -> None:
    """In any letter case, as Java reads them."""
    check_codec({COMPRESSION: codec})


@pytest.mark.parametrize("codec", ["zstd", "lz4", "", "gzip ", "snappy"])
def test_another_codec_is_refused_when_it_is_introduced(codec: str) -> None:
    """It would be ignored; what a table has already is left alone."""
    with pytest.raises(ValidationFailed, match=r"compression-codec: .* one of: none, gzip"):
        check_codec({COMPRESSION: codec}, {COMPRESSION: "gzip"})
    check_codec({COMPRESSION: codec}, {COMPRESSION: codec})
