"""Spark's Iceberg runtime made from Python packages alone, for machines that reach no Maven repository.

`snowpark-connect-deps-iceberg` carries the Iceberg runtime for Spark 3.5 without the HTTP client and the JSON library
that the official jar holds under `org.apache.iceberg.shaded`. The jar of `sagemaker-feature-store-pyspark` holds both,
and the AWS SDK, with every name prefixed by `smfs.shaded`. Two jars without that prefix complete the runtime.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

_RUNTIME = "snowpark_connect_deps_iceberg/jars/iceberg-spark-runtime-3.5_2.12-*.jar"
_DONOR = "feature_store_pyspark/jars/sagemaker-feature-store-spark-sdk-3.5.jar"
_PREFIX = "smfs/shaded/"
_SHADED = "org/apache/iceberg/shaded/"
_AWS = ("software/amazon/awssdk/", "org/apache/hc/", "org/reactivestreams/")

_UTF8 = 1
_BYTES_AFTER_TAG = (
    dict.fromkeys((7, 8, 16, 19, 20), 2)
    | {15: 3}
    | dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4)
    | dict.fromkeys((5, 6), 8)
)
"""Sizes of the constants that are copied as they are (class file format, section 4.4)."""
_TWO_SLOTS = (5, 6)
"""Long and double constants count twice in the pool."""


def jars(environment: Path, *, s3: bool) -> list[Path]:
    """What `spark.jars` needs, from the packages installed in a virtual environment; `s3` adds the AWS SDK."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    (runtime,) = packages.glob(_RUNTIME)
    donor = packages / _DONOR
    built = environment / "jars"
    built.mkdir(exist_ok=True)
    with zipfile.ZipFile(runtime) as archive:
        present = set(archive.namelist())
    needed = [
        runtime,
        _rewritten(donor, built / "shim.jar", lambda name: name.startswith(_SHADED) and name not in present),
    ]
    if s3:
        needed.append(_rewritten(donor, built / "awssdk.jar", lambda name: name.startswith(_AWS)))
    return needed


def _rewritten(donor: Path, target: Path, wanted: Callable[[str], bool]) -> Path:
    """A jar of the donor's wanted entries without the prefix, in names and inside classes; made once."""
    if target.exists():
        return target
    part = target.with_suffix(".part")
    with zipfile.ZipFile(donor) as source, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as result:
        for entry in source.infolist():
            name = entry.filename.removeprefix(_PREFIX)
            if entry.is_dir() or not wanted(name):
                continue
            data = source.read(entry)
            result.writestr(name, unprefixed(data) if name.endswith(".class") else data)
    part.replace(target)
    return target


def unprefixed(code: bytes) -> bytes:
    """A class file whose text constants lost the prefix, in both spellings; all else byte for byte."""
    (count,) = struct.unpack_from(">H", code, 8)
    out = bytearray(code[:10])
    at, index = 10, 1
    while index < count:
        tag = code[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", code, at + 1)
            end = at + 3 + length
            text = code[at + 3 : end].replace(b"smfs/shaded/", b"").replace(b"smfs.shaded.", b"")
            out += struct.pack(">BH", tag, len(text)) + text
        else:
            end = at + 1 + _BYTES_AFTER_TAG[tag]
            out += code[at:end]
        at = end
        index += 2 if tag in _TWO_SLOTS else 1
    return bytes(out + code[at:])
