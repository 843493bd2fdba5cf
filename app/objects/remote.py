"""Objects in S3, GCS and ADLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Final, TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

from app.errors import BadRequest, ObjectExists, ObjectMissing, ObjectsUnavailable, PayloadTooLarge
from app.objects.address import Bucket, parse_address
from app.objects.clients import RETRIES, Client, open_client
from app.objects.failures import reason
from app.ports import Folder, ObjectStat

_CREATE_ATTEMPTS: Final = 3
_FIRST_PAUSE_S: Final = 0.2
_FINAL: Final = (PermissionDeniedError, UnauthenticatedError, FileNotFoundError)

T = TypeVar("T")


class RemoteObjects:
    """`ports.Objects` over cloud storage. Clients are opened on first use of a bucket and kept.

    A key holding `//`, a `.` or `..` segment or a control character is a BadRequest: the client library cannot
    address it, and reading another key instead would be worse.
    """

    local = False

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._clients: dict[tuple[Bucket, int], Client] = {}

    async def read(self, location: str, *, limit: int | None = None) -> bytes:
        client, key = self._find(location)
        found = await _reading(location, client.get_async(key))
        size = found.meta["size"]
        if limit is not None and size > limit:
            raise PayloadTooLarge(
                f"File is {size} bytes long, more than the limit of {limit}: {location}", location=location
            )
        return bytes(await _reading(location, found.bytes_async()))

    def vanished(self, location: str) -> bool:
        return False

    async def read_range(self, location: str, start: int, length: int) -> bytes:
        client, key = self._find(location)
        if length == 0:
            await _reading(location, client.head_async(key))
            return b""
        try:
            return bytes(await _reading(location, client.get_range_async(key, start=start, length=length)))
        except ObjectsUnavailable:
            # Servers answer a start beyond the end with 416, which looks like any other error here.
            found = await self.stat(location)
            if found is not None and start >= found.size:
                return b""
            raise

    async def stat(self, location: str) -> ObjectStat | None:
        client, key = self._find(location)
        try:
            found = await _reading(location, client.head_async(key))
        except ObjectMissing:
            return None
        modified_ms = int(found["last_modified"].timestamp() * 1000)
        return ObjectStat(location=location, size=found["size"], modified_ms=modified_ms)

    async def create(self, location: str, data: bytes) -> None:
        """One conditional PUT. Retried here and not by the client, because after an attempt whose outcome is
        unknown "already exists" may be this very file: only its content tells.
        """
        client, key = self._find(location, retries=0)
        unsure = False
        for attempt in range(1, _CREATE_ATTEMPTS + 1):
            try:
                await client.put_async(key, data, mode="create", use_multipart=False)
                return
            except AlreadyExistsError:
                if unsure and await self._holds(location, data):
                    return
                raise ObjectExists(f"Object already exists: {location}", location=location) from None
            except (BaseError, OSError) as fault:
                if attempt == _CREATE_ATTEMPTS or isinstance(fault, _FINAL):
                    raise _unavailable("create", location, fault) from None
                unsure = True
            await asyncio.sleep(_FIRST_PAUSE_S * 4 ** (attempt - 1))

    async def _holds(self, location: str, data: bytes) -> bool:
        try:
            return await self.read(location, limit=len(data)) == data
        except (ObjectMissing, PayloadTooLarge):
            return False

    async def delete(self, location: str) -> None:
        client, key = self._find(location)
        try:
            await client.delete_async(key)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as fault:
            raise _unavailable("delete", location, fault) from None

    async def list(self, prefix: str) -> AsyncIterator[ObjectStat]:
        spelled = prefix.rstrip("/")
        client, key = self._find(spelled, whole_bucket=True)
        try:
            async for batch in client.list(prefix=key or None, chunk_size=1000):
                for found in batch:
                    yield ObjectStat(
                        location=f"{spelled}/{found['path'][len(key) + 1 if key else 0 :]}",
                        size=found["size"],
                        modified_ms=int(found["last_modified"].timestamp() * 1000),
                    )
        except FileNotFoundError:
            return
        except (BaseError, OSError) as fault:
            raise _unavailable("list", prefix, fault) from fault

    async def look(self, location: str) -> Folder:
        spelled = location.rstrip("/")
        client, key = self._find(spelled, whole_bucket=True)
        cut = len(key) + 1 if key else 0
        try:
            found = await client.list_with_delimiter_async(prefix=key or None)
        except FileNotFoundError:
            return Folder(folders=(), objects=())
        except (BaseError, OSError) as fault:
            raise _unavailable("list", location, fault) from None
        objects = [
            ObjectStat(
                location=f"{spelled}/{each['path'][cut:]}",
                size=each["size"],
                modified_ms=int(each["last_modified"].timestamp() * 1000),
            )
            for each in found["objects"]
        ]
        folders = sorted(f"{spelled}/{path.rstrip('/')[cut:]}" for path in found["common_prefixes"])
        return Folder(folders=tuple(folders), objects=tuple(objects))

    async def prepare(self, location: str) -> None:
        """Nothing: there are no folders."""

    async def remove_empty_folders(self, location: str) -> None:
        """Nothing: there are no folders."""

    async def resolved(self, location: str) -> str:
        """As it is: there are no links."""
        return location

    async def establish(self, location: str) -> None:
        """Nothing: a bucket is the operator's to make."""

    async def check_root(self, location: str) -> None:
        """Nothing: a bucket that does not answer is told by what is asked of it."""

    def _find(self, location: str, *, retries: int = RETRIES, whole_bucket: bool = False) -> tuple[Client, str]:
        address = parse_address(location)
        if address.key or not whole_bucket:
            _check_key(address.key, location)
        client = self._clients.get((address.bucket, retries))
        if client is None:
            try:
                client = open_client(address.bucket, self._options, retries=retries)
            except (BaseError, ValueError) as fault:
                raise BadRequest(f"Storage options do not fit {location}: {_first_line(fault)}") from None
            self._clients[address.bucket, retries] = client
        return client, address.key


def _check_key(key: str, location: str) -> None:
    if any(segment in ("", ".", "..") or not segment.isprintable() for segment in key.split("/")):
        raise BadRequest(f"Location has an empty, relative or unprintable path segment: {location}", location=location)


async def _reading(location: str, answer: Awaitable[T]) -> T:
    try:
        return await answer
    except FileNotFoundError:
        raise ObjectMissing(location) from None
    except (BaseError, OSError) as fault:
        raise _unavailable("read", location, fault) from None


def _unavailable(doing: str, location: str, fault: Exception) -> ObjectsUnavailable:
    return ObjectsUnavailable(f"Failed to {doing} {location}: {reason(fault)}", location=location)


def _first_line(fault: Exception) -> str:
    """The client's messages go on for pages, with a dump of its state. For those about options: no server has a part
    in them."""
    return str(fault).partition("\n")[0][:300]
