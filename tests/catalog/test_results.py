"""The tag of a version, and pages of listings."""

from __future__ import annotations

import asyncio
import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.context import Limits
from app.catalog.results import Listed, PageRequest, listed, version_tag
from app.errors import BadRequest
from app.ports import Page


def test_every_part_changes_the_tag() -> None:
    """Version, representation and client configuration each make another tag; the order of options does not."""
    tags = {
        version_tag("s3://b/t/metadata/1.json", "all", {}),
        version_tag("s3://b/t/metadata/2.json", "all", {}),
        version_tag("s3://b/t/metadata/1.json", "refs", {}),
        version_tag("s3://b/t/metadata/1.json", "all", {"a": "1", "b": "2"}),
        version_tag("s3://b/t/metadata/1.json", "all", {"b": "2", "a": "1"}),
    }
    assert len(tags) == 4


LISTING = ("tables", "default", ("a", "b"))


async def _page(names: list[str], page: PageRequest, listing: tuple[object, ...] = LISTING) -> Listed[str]:
    async def read(after: str | None, limit: int | None) -> Page[str]:
        rest = [name for name in sorted(names) if after is None or name > after]
        shown = rest if limit is None else rest[:limit]
        return Page(items=tuple(shown), after=shown[-1] if len(shown) < len(rest) else None)

    return await listed(Limits(page_size=2), page, listing, read)


def test_no_token_means_everything_even_with_a_size() -> None:
    """Clients that know no paging never see a cut listing."""
    got = asyncio.run(_page(["a", "b", "c"], PageRequest(size=1)))
    assert got.items == ("a", "b", "c") and got.next_token is None


@given(st.sets(st.text(min_size=1, max_size=5), max_size=12), st.integers(1, 5))
def test_pages_add_up_to_the_listing(names: set[str], size: int) -> None:
    """Following the tokens yields every name once, in order, and ends with no token."""

    async def follow() -> list[str]:
        token: str | None = ""
        seen: list[str] = []
        tokens: set[str] = set()
        while token is not None:
            assert token not in tokens
            tokens.add(token)
            got = await _page(list(names), PageRequest(token, size))
            assert len(got.items) <= size
            seen += got.items
            token = got.next_token
        return seen

    assert asyncio.run(follow()) == sorted(names)


def test_the_first_page_has_the_servers_size_when_none_is_given() -> None:
    """An empty token without a size yields the default page."""
    assert asyncio.run(_page(["a", "b", "c"], PageRequest(""))).items == ("a", "b")


@pytest.mark.parametrize("token", ["x", "garbage!", "a" * 200, base64.urlsafe_b64encode(b"{}" * 20).decode(), "\u00e9"])
def test_a_garbage_token_is_refused(token: str) -> None:
    """What nobody handed out is a bad request."""
    with pytest.raises(BadRequest, match="page token"):
        asyncio.run(_page(["a"], PageRequest(token)))


@pytest.mark.parametrize(
    "other", [("views", "default", ("a", "b")), ("tables", "w2", ("a", "b")), ("tables", "default", ("a.b",))]
)
def test_a_token_of_another_listing_is_refused(other: tuple[object, ...]) -> None:
    """A token is bound to operation, warehouse and namespace."""
    token = asyncio.run(_page(["a", "b", "c"], PageRequest("", 1))).next_token
    assert asyncio.run(_page(["a", "b", "c"], PageRequest(token, 1))).items == ("b",)
    with pytest.raises(BadRequest):
        asyncio.run(_page(["a", "b", "c"], PageRequest(token, 1), other))


@pytest.mark.parametrize("size", [0, -1])
def test_a_page_size_below_one_is_refused(size: int) -> None:
    """A page holds at least one name, also when no page was asked for."""
    for token in (None, ""):
        with pytest.raises(BadRequest, match="page size"):
            asyncio.run(_page(["a"], PageRequest(token, size)))
