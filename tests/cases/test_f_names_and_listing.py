"""Group F of the public cases: names, namespaces, listing (O-35 to O-38)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.cases.shorthand import schema
from tests.cases.views import create_view
from tests.cases.wire import Catalog, error_of, ok, set_properties, unique

Json = Any
SIMPLE = schema("1:id long!, 2:v string")


def children(catalog: Catalog, parent: str | None = None) -> list[list[str]]:
    query = {} if parent is None else {"parent": parent}
    out: list[list[str]] = ok(catalog.http.get(f"{catalog.base}/namespaces", params=query))["namespaces"]
    return out


def post_namespace(catalog: Catalog, *levels: str) -> httpx.Response:
    return catalog.http.post(f"{catalog.base}/namespaces", json={"namespace": list(levels)})


# --- O-35 ---------------------------------------------------------------------------------------------------------


def test_o35_the_unit_separator_divides_levels(catalog: Catalog) -> None:
    """`a%1Fb` reaches the two-level namespace for get, head, properties, tables and as a parent."""
    top = unique("sep")
    catalog.namespace(top)
    levels = catalog.namespace(top, "b")
    path = f"{catalog.base}/namespaces/{top}%1Fb"
    assert ok(catalog.http.get(path))["namespace"] == list(levels)
    assert catalog.http.head(path).status_code == 204
    changed = ok(catalog.http.post(f"{path}/properties", json={"updates": {"k": "v"}, "removals": ["absent"]}))
    assert (changed["updated"], changed["removed"], changed["missing"]) == (["k"], [], ["absent"])
    assert ok(catalog.http.get(f"{path}/tables"))["identifiers"] == []
    catalog.namespace(top, "b", "c")
    assert children(catalog, f"{top}\x1fb") == [[top, "b", "c"]]


def test_o35_an_advertised_separator_works_beside_it(catalog: Catalog) -> None:
    """Whatever /v1/config advertises is URL-encoded and reaches the same namespace; `%1F` always does."""
    config = ok(catalog.http.get("/v1/config"))
    separator = {**config["defaults"], **config["overrides"]}.get("namespace-separator", "%1F")
    assert separator.startswith("%")
    top = unique("sep")
    catalog.namespace(top)
    levels = catalog.namespace(top, "b")
    for used in {separator, "%1F", "%1f"}:
        assert ok(catalog.http.get(f"{catalog.base}/namespaces/{top}{used}b"))["namespace"] == list(levels)


# --- O-36 ---------------------------------------------------------------------------------------------------------

ODD = ["c.d", "e f", "p/q", "Größe", "a+b", "100%", "q?x=1#y", "'\"", "ünï/cödé .b", "a%2Fb"]


def test_o36_a_dot_is_no_separator(catalog: Catalog) -> None:
    """`["x.b"]` and `["x","b"]` are different namespaces with different tables."""
    top = unique("dot")
    one = catalog.namespace(f"{top}.b")
    catalog.namespace(top)
    two = catalog.namespace(top, "b")
    catalog.create(one, SIMPLE, name="only")
    assert catalog.table(one, "only").get().status_code == 200
    error_of(catalog.table(two, "only").get(), 404, "NoSuchTableException")


@pytest.mark.parametrize("name", ODD)
def test_o36_odd_names_work_everywhere(catalog: Catalog, name: str) -> None:
    """A stored name can be loaded, committed to, listed, renamed and dropped, as table and as namespace level."""
    levels = catalog.namespace(f"{unique('odd')}{name}")
    table = catalog.create(levels, SIMPLE, name=name)
    assert table.commit([set_properties(a="1")])["properties"]["a"] == "1"
    listed = ok(catalog.http.get(f"{catalog.namespace_path(levels)}/tables"))["identifiers"]
    assert listed == [{"namespace": list(levels), "name": name}]
    other = f"{name} again"
    moved = catalog.http.post(
        f"{catalog.base}/tables/rename",
        json={
            "source": {"namespace": list(levels), "name": name},
            "destination": {"namespace": list(levels), "name": other},
        },
    )
    assert moved.status_code == 204, moved.text
    assert catalog.drop(catalog.table(levels, other)).status_code == 204
    assert catalog.http.delete(catalog.namespace_path(levels)).status_code == 204


def test_o36_a_blank_is_also_a_plus(catalog: Catalog) -> None:
    """Java encodes path segments as forms: `+` is a blank and `%2B` a plus."""
    levels = catalog.namespace(f"{unique('x')} y")
    catalog.create(levels, SIMPLE, name="e f")
    catalog.create(levels, SIMPLE, name="e+f")
    space = levels[0].replace(" ", "+")
    blank = ok(catalog.http.get(f"{catalog.base}/namespaces/{space}/tables/e+f"))
    plus = ok(catalog.http.get(f"{catalog.base}/namespaces/{space}/tables/e%2Bf"))
    assert blank["metadata"]["table-uuid"] == catalog.table(levels, "e f").metadata()["table-uuid"]
    assert plus["metadata"]["table-uuid"] != blank["metadata"]["table-uuid"]


@pytest.mark.parametrize("name", ["", "a\x00b", "..", ".", "\x1f", "tab\tx", "new\nline", "\x7f"])
def test_o36_names_that_are_refused_at_creation(catalog: Catalog, name: str) -> None:
    """400 for a table, a level, a rename target and a view; nothing is stored."""
    levels = catalog.namespace()
    error_of(catalog.post_create(levels, name, SIMPLE), 400)
    error_of(post_namespace(catalog, unique("bad"), name), 400)
    catalog.create(levels, SIMPLE, name="t")
    error_of(
        catalog.http.post(
            f"{catalog.base}/tables/rename",
            json={
                "source": {"namespace": list(levels), "name": "t"},
                "destination": {"namespace": list(levels), "name": name},
            },
        ),
        400,
    )
    error_of(create_view(catalog, levels, name, "select 1"), 400)
    listed = ok(catalog.http.get(f"{catalog.namespace_path(levels)}/tables"))["identifiers"]
    assert [item["name"] for item in listed] == ["t"]


def test_o36_a_long_name(catalog: Catalog) -> None:
    """300 characters work or are refused with 400, never 500, and a file system's limit never shows."""
    levels = catalog.namespace()
    for length in (200, 300, 5000):
        name = "n" * length
        answer = catalog.post_create(levels, name, SIMPLE)
        if answer.status_code == 200:
            assert catalog.table(levels, name).commit([set_properties(a="1")])
        else:
            error_of(answer, 400)


# --- O-37 ---------------------------------------------------------------------------------------------------------


def test_o37_a_namespace_with_anything_in_it_stays(catalog: Catalog) -> None:
    """Child namespaces, tables and views each make it 409 NamespaceNotEmptyException."""
    top = catalog.namespace()
    inner = catalog.namespace(*top, "m")
    catalog.create(inner, SIMPLE, name="t")
    error_of(catalog.http.delete(catalog.namespace_path(top)), 409, "NamespaceNotEmptyException")
    error = error_of(catalog.http.delete(catalog.namespace_path(inner)), 409, "NamespaceNotEmptyException")
    assert "is not empty" in error["message"]
    viewed = catalog.namespace()
    assert create_view(catalog, viewed, "v", "select 1").status_code == 200
    error_of(catalog.http.delete(catalog.namespace_path(viewed)), 409, "NamespaceNotEmptyException")


def test_o37_children_are_full_paths_of_one_level(catalog: Catalog) -> None:
    """`parent=n` gives exactly its children, an empty parent the top level, an unknown one 404."""
    top = catalog.namespace()
    inner = catalog.namespace(*top, "m")
    catalog.namespace(*inner, "k")
    assert children(catalog, top[0]) == [list(inner)]
    assert children(catalog, "") == children(catalog)
    assert list(top) in children(catalog) and list(inner) not in children(catalog)
    error_of(catalog.http.get(f"{catalog.base}/namespaces", params={"parent": "nope"}), 404, "NoSuchNamespaceException")


def test_o37_existence(catalog: Catalog) -> None:
    """HEAD is 204 or 404 without a body; listing in a missing namespace is 404."""
    levels = catalog.namespace()
    there = catalog.http.head(catalog.namespace_path(levels))
    missing = catalog.http.head(catalog.namespace_path(["nope"]))
    assert (there.status_code, there.content, missing.status_code, missing.content) == (204, b"", 404, b"")
    for kind in ("tables", "views"):
        error_of(catalog.http.get(f"{catalog.namespace_path(['nope'])}/{kind}"), 404, "NoSuchNamespaceException")


def test_o37_a_child_of_a_missing_parent(catalog: Catalog) -> None:
    """Either 404, or the parent becomes usable; listing agrees with what was answered."""
    top = unique("orphan")
    answer = post_namespace(catalog, top, "r")
    if answer.status_code == 200:
        assert [top] in children(catalog)
        assert children(catalog, top) == [[top, "r"]]
    else:
        error_of(answer, 404, "NoSuchNamespaceException")
        assert [top] not in children(catalog)


def test_o37_a_namespace_twice(catalog: Catalog) -> None:
    """409 AlreadyExistsException in the reference's words."""
    levels = catalog.namespace()
    error = error_of(post_namespace(catalog, *levels), 409, "AlreadyExistsException")
    assert "Namespace already exists" in error["message"]


# --- O-38 ---------------------------------------------------------------------------------------------------------


def seven(catalog: Catalog, kind: str) -> tuple[str, str, dict[str, str]]:
    """Seven things of a kind; gives the listing path, the key of the list and fixed query parameters."""
    levels = catalog.namespace()
    for number in range(7):
        if kind == "tables":
            catalog.create(levels, SIMPLE, name=f"t{number}")
        elif kind == "views":
            assert create_view(catalog, levels, f"v{number}", "select 1").status_code == 200
        else:
            catalog.namespace(*levels, f"n{number}")
    if kind == "namespaces":
        return f"{catalog.base}/namespaces", "namespaces", {"parent": levels[0]}
    return f"{catalog.namespace_path(levels)}/{kind}", "identifiers", {}


@pytest.mark.parametrize("kind", ["tables", "views", "namespaces"])
def test_o38_paging(catalog: Catalog, kind: str) -> None:
    """Without a token everything; with one 3 + 3 + 1 under different tokens, the last null, no duplicate, no gap."""
    path, key, query = seven(catalog, kind)

    def page(**more: str) -> Json:
        return ok(catalog.http.get(path, params={**query, **more}))

    whole = page()
    assert len(whole[key]) == 7 and whole.get("next-page-token") is None
    sized = page(pageSize="3")
    assert sized[key] == whole[key] and sized.get("next-page-token") is None
    tokens, sizes, seen = [""], [], []
    while True:
        got = page(pageToken=tokens[-1], pageSize="3")
        sizes.append(len(got[key]))
        seen += got[key]
        if got.get("next-page-token") is None:
            break
        tokens.append(got["next-page-token"])
    assert sizes == [3, 3, 1]
    assert len(set(tokens)) == 3
    assert seen == whole[key]
    for size in ("7", "50"):
        got = page(pageToken="", pageSize=size)
        assert len(got[key]) == 7 and got.get("next-page-token") is None
    assert len(page(pageToken="")[key]) == 7
    for bad in ("0", "-1", "abc", "1.5", "99999999999999999999"):
        error_of(catalog.http.get(path, params={**query, "pageToken": "", "pageSize": bad}), 400)
    error_of(catalog.http.get(path, params={**query, "pageToken": "garbage%%%"}), 400)
    other_path, _, other_query = seven(catalog, kind)
    error_of(catalog.http.get(other_path, params={**other_query, "pageToken": tokens[1], "pageSize": "3"}), 400)


def test_o38_pages_hold_while_things_come_and_go(catalog: Catalog) -> None:
    """What was there all the time is listed exactly once although neighbours are dropped and created between pages."""
    levels = catalog.namespace()
    for number in range(6):
        catalog.create(levels, SIMPLE, name=f"t{number}")
    path = f"{catalog.namespace_path(levels)}/tables"
    first = ok(catalog.http.get(path, params={"pageToken": "", "pageSize": "3"}))
    catalog.drop(catalog.table(levels, "t0"))
    catalog.drop(catalog.table(levels, "t2"))
    catalog.create(levels, SIMPLE, name="t00")
    rest = ok(catalog.http.get(path, params={"pageToken": first["next-page-token"], "pageSize": "50"}))
    names = [item["name"] for item in [*first["identifiers"], *rest["identifiers"]]]
    assert [n for n in names if n in {"t1", "t3", "t4", "t5"}] == ["t1", "t3", "t4", "t5"]
