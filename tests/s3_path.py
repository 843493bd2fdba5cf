"""Objects of a test's S3 under the few words of `pathlib.Path` that tests use, so that one test fits either store."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePosixPath

from obstore.store import S3Store

from tests import backends


@cache
def _bucket(name: str) -> S3Store:
    return backends.bucket(backends.scaled().s3, name)


class S3Path:
    """`s3://bucket/key`; there are no folders, so making one does nothing and an empty one does not exist."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._name, _, self._key = location.removeprefix("s3://").partition("/")

    def __str__(self) -> str:
        return self.location

    def __eq__(self, other: object) -> bool:
        return isinstance(other, S3Path) and other.location == self.location

    def __hash__(self) -> int:
        return hash(self.location)

    def __truediv__(self, part: str) -> S3Path:
        return S3Path(f"{self.location.rstrip('/')}/{part}")

    @property
    def name(self) -> str:
        return self.location.rsplit("/", 1)[-1]

    @property
    def parent(self) -> S3Path:
        return S3Path(self.location.rsplit("/", 1)[0])

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self._key).parts

    def read_bytes(self) -> bytes:
        return bytes(_bucket(self._name).get(self._key).bytes())

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> None:
        _bucket(self._name).put(self._key, data)

    def write_text(self, text: str) -> None:
        self.write_bytes(text.encode())

    def unlink(self) -> None:
        _bucket(self._name).delete(self._key)

    def mkdir(self, *_: object, **__: object) -> None:
        """Nothing: keys need no folder."""

    def exists(self) -> bool:
        try:
            _bucket(self._name).head(self._key)
        except FileNotFoundError:
            return any(True for _ in self.rglob("*"))
        return True

    def rglob(self, pattern: str) -> Iterator[S3Path]:
        for batch in _bucket(self._name).list(prefix=self._key or None):
            for found in batch:
                path = S3Path(f"s3://{self._name}/{found['path']}")
                if fnmatchcase(path.name, pattern):
                    yield path

    def iterdir(self) -> Iterator[S3Path]:
        return self.glob("*")

    def glob(self, pattern: str) -> Iterator[S3Path]:
        return (path for path in self.rglob(pattern) if path.parent.location == self.location)
