"""What the server may touch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog import locations
from app.errors import BadRequest
from app.iceberg import location as spec_location
from app.ports import Namespace, Warehouse
from tests.catalog.world import World


def lake(*allowed: str) -> Warehouse:
    return Warehouse(name="lake", location="s3://bucket/lake", allowed_locations=allowed)


@pytest.mark.parametrize(
    "inside", ["s3://bucket/lake", "s3://bucket/lake/", "s3a://bucket/lake/t", "s3n://bucket/lake//t", "s3://other/x/t"]
)
def test_inside_in_any_spelling(world: World, inside: str) -> None:
    """The warehouse, what was allowed beside it, and every spelling of both."""
    locations.check(world.ctx, lake("s3://other/x"), inside, "location")


@pytest.mark.parametrize(
    "outside",
    [
        "s3://bucket/lake2",
        "s3://bucket",
        "s3://bucket/lake/../x",
        "s3://bucket/lake/%2e%2e/x",
        "gs://bucket/lake",
        "lake",
        "",
    ],
)
def test_outside_in_any_disguise(world: World, outside: str) -> None:
    """Siblings with a longer name, parents, climbing paths, other schemes and relative paths."""
    with pytest.raises(BadRequest):
        locations.check(world.ctx, lake(), outside, "location")


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("s3://bucket/lake/a\x00b", "contains a control character"),
        ("s3://bucket/lake/a\nb", "contains a control character"),
        ("s3://bucket/lake/../x", "as a path segment"),
        ("s3://bucket/lake/x?y", "query or fragment"),
        ("s3://bucket/lake2", "lies outside warehouse lake"),
        ("lake", "is not an absolute location"),
        (f"s3://bucket/lake/{'x/' * 1000}y", "bytes, and 2000 are allowed"),
    ],
)
def test_a_refusal_says_what_is_wrong(world: World, location: str, told: str) -> None:
    """In one line, and a place with a hidden character is not called one outside the warehouse."""
    with pytest.raises(BadRequest) as refused:
        locations.check(world.ctx, lake(), location, "table location")
    assert told in refused.value.message and refused.value.message.startswith("Invalid table location: ")
    assert refused.value.message.isprintable()


def test_the_servers_own_setting_counts_for_every_warehouse(world: World) -> None:
    """ICEKEEL_ALLOWED_LOCATIONS is not bound to one warehouse."""
    ctx = replace(world.ctx, limits=replace(world.ctx.limits, allowed_locations=("file:/tmp/rck",)))
    locations.check(ctx, lake(), "/tmp/rck/ns/t", "location")
    assert not locations.may_touch(world.ctx, lake(), "/tmp/rck/ns/t")


def test_only_what_a_commit_introduces_is_checked(world: World) -> None:
    """A path that was there before is not this commit's doing, and may be removed."""
    bad = {"write.data.path": "/elsewhere"}
    world.run(locations.check_introduced(world.ctx, lake(), (), bad, bad))
    world.run(locations.check_introduced(world.ctx, lake(), (), bad, {}))
    with pytest.raises(BadRequest, match=r"write\.data\.path"):
        world.run(locations.check_introduced(world.ctx, lake(), (), {}, bad))
    with pytest.raises(BadRequest, match=r"write\.data\.path"):
        world.run(locations.check_introduced(world.ctx, lake(), (), {"write.data.path": "s3://bucket/lake/t"}, bad))


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=4), st.text(min_size=1, max_size=300))
def test_every_name_becomes_a_safe_place_inside(levels: list[str], name: str) -> None:
    """Whatever namespaces and tables are called, each is one segment of a folder in the warehouse."""
    segments = [locations.safe_segment(text) for text in (*levels, name)]
    assert all("/" not in segment and len(segment) <= 128 for segment in segments)
    place = spec_location.join("s3://bucket/lake", *segments[:-1], segments[-1] + "-0a1b2c3d")
    if not any(segment in (".", "..") for segment in segments[:-1]):
        assert spec_location.contains("s3://bucket/lake", place)


def test_the_nearest_set_location_wins(world: World) -> None:
    """Own, then the parent's extended, then the warehouse's extended."""
    place = world.run(
        locations.namespace_location(
            world.ctx,
            lake(),
            Namespace(
                namespace_id=1, warehouse="lake", levels=("a", "b"), properties={"location": "s3://bucket/lake/own/"}
            ),
        )
    )
    assert place == "s3://bucket/lake/own"
    place = world.run(
        locations.namespace_location(
            world.ctx, lake(), Namespace(namespace_id=1, warehouse="lake", levels=("a", "b/c"), properties={})
        )
    )
    assert place == "s3://bucket/lake/a/b_c"
