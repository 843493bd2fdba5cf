"""Objects in a real S3 when the network or the credentials fail."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from app.errors import BadRequest, ObjectExists, ObjectMissing, ObjectsUnavailable
from app.objects.remote import RemoteObjects
from tests.seaweedfs import S3

T = TypeVar("T")
_numbers = count()


def run(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(work)


def connect(s3: S3, **options: str) -> RemoteObjects:
    given = {"s3.endpoint": s3.endpoint, "s3.access-key-id": s3.access_key, "s3.secret-access-key": s3.secret_key}
    return RemoteObjects(given | {f"s3.{name.replace('_', '-')}": value for name, value in options.items()})


@pytest.fixture
def place() -> str:
    return f"s3://faults/case{next(_numbers)}"


@contextmanager
def losing_answers(s3: S3, count: int) -> Iterator[str]:
    """An endpoint that passes whole requests on and cuts the connection instead of handing back `count` answers."""
    target = urlsplit(s3.endpoint)
    listener = socket.create_server(("127.0.0.1", 0))
    left = [count]

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection((target.hostname or "", target.port or 0)) as server:
            forward = threading.Thread(target=pump, args=(client, server), daemon=True)
            forward.start()
            while answer := server.recv(65536):
                if left[0] > 0:
                    left[0] -= 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(answer)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            return

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def test_a_create_whose_answer_was_lost_succeeds_once(s3: S3, place: str) -> None:
    """The retry finds its own file, sees that it is its own, and does not call the name taken."""
    with losing_answers(s3, 1) as endpoint:
        run(connect(S3(endpoint)).create(f"{place}/a", b"mine"))
    assert run(connect(s3).read(f"{place}/a")) == b"mine"


def test_a_lost_answer_does_not_make_anothers_file_ours(s3: S3, place: str) -> None:
    """After a lost answer a file with other content still is ObjectExists, and stays as it is."""
    run(connect(s3).create(f"{place}/a", b"theirs"))
    with losing_answers(s3, 1) as endpoint, pytest.raises(ObjectExists):
        run(connect(S3(endpoint)).create(f"{place}/a", b"mine"))
    assert run(connect(s3).read(f"{place}/a")) == b"theirs"


def test_a_read_whose_answer_was_lost_is_tried_again(s3: S3, place: str) -> None:
    """Reads are repeated by the client without anyone noticing."""
    run(connect(s3).create(f"{place}/a", b"x"))
    with losing_answers(s3, 1) as endpoint:
        assert run(connect(S3(endpoint)).read(f"{place}/a")) == b"x"


def test_a_store_that_is_away_is_unavailable(place: str) -> None:
    """Nothing listens: every operation fails as ObjectsUnavailable, soon, in one line, and never as missing."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
    objects = connect(S3(endpoint))
    began = time.monotonic()
    for work in (objects.read(place), objects.stat(place), objects.create(place, b"x"), objects.delete(place)):
        with pytest.raises(ObjectsUnavailable) as caught:
            run(work)
        assert "\n" not in caught.value.message
        assert place in caught.value.message
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("option", ["access_key_id", "secret_access_key"])
def test_wrong_credentials_are_unavailable_not_missing(s3: S3, place: str, option: str) -> None:
    """A refusal tells nothing about the object: neither read nor stat may call it missing."""
    run(connect(s3).create(f"{place}/a", b"x"))
    refused = connect(s3, **{option: "wrong"})
    for work in (refused.read(f"{place}/a"), refused.stat(f"{place}/a"), refused.create(f"{place}/b", b"x")):
        with pytest.raises(ObjectsUnavailable) as caught:
            run(work)
        assert s3.secret_key not in caught.value.message


def test_credentials_of_the_environment_do_not_leak_into_given_ones(
    s3: S3, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session token of the server's own environment is not sent along with a warehouse's keys."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-another-account")
    run(connect(s3).create(f"{place}/a", b"x"))
    assert run(connect(s3).read(f"{place}/a")) == b"x"


def test_credentials_of_the_environment_serve_where_none_are_given(
    s3: S3, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without keys in the options the AWS_* variables are used."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    objects = RemoteObjects({"s3.endpoint": s3.endpoint})
    run(objects.create(f"{place}/a", b"x"))
    assert run(objects.read(f"{place}/a")) == b"x"


def test_a_bucket_that_does_not_exist_is_no_object(s3: S3) -> None:
    """Reading from an unknown bucket finds nothing."""
    with pytest.raises(ObjectMissing):
        run(connect(s3).read("s3://no-such-bucket/a"))


@pytest.mark.parametrize("key", ["a//b", "a/./b", "a/../b", "a\tb", "/a", "..", "a/", ""])
def test_keys_that_cannot_be_addressed_are_refused(s3: S3, key: str) -> None:
    """The client library would change or reject these; reading another key instead would be worse."""
    objects = connect(s3)
    with pytest.raises(BadRequest):
        run(objects.read(f"s3://faults/{key}"))
    with pytest.raises(BadRequest):
        run(objects.create(f"s3://faults/{key}", b"x"))


def test_a_whole_bucket_can_be_listed(s3: S3, place: str) -> None:
    """The warehouse may be the bucket itself."""
    run(connect(s3).create("s3://whole-bucket/t/a", b"x"))

    async def listed() -> list[str]:
        return [found.location async for found in connect(s3).list("s3://whole-bucket")]

    assert run(listed()) == ["s3://whole-bucket/t/a"]
