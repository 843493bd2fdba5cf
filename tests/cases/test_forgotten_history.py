"""Tables whose snapshots and schemas were cleaned up: what nobody can explain any more does not come back."""

from __future__ import annotations

from typing import Any

from tests.cases.shorthand import schema
from tests.cases.wire import Catalog, Table, add_snapshot, evolve, set_properties, set_ref, unique

Namespace = tuple[str, ...]
BOTH = "1:b string, 2:a int"
WIDE = "1:b string, 2:a long"
DROPPED = "1:b string"


def lived(catalog: Catalog, ns: Namespace) -> Table:
    """Column a was written as int, then as long, then dropped; snapshots 1, 2 and 3."""
    table = catalog.create(ns, schema(BOTH))
    table.append(1, seq=1, schema_id=0)
    table.commit(evolve(schema(WIDE)))
    table.append(2, 1, seq=2, schema_id=1)
    table.commit(evolve(schema(DROPPED)))
    table.append(3, 2, seq=3, schema_id=2)
    return table


def use(schema_id: int) -> dict[str, Any]:
    return {"action": "set-current-schema", "schema-id": schema_id}


def expire(*ids: int) -> dict[str, Any]:
    return {"action": "remove-snapshots", "snapshot-ids": list(ids)}


CLEAN_UP = {"action": "remove-schemas", "schema-ids": [1]}


def test_a_dropped_column_does_not_come_back_after_clean_up(catalog: Catalog, ns: Namespace) -> None:
    """Files of the long days are still there, and neither schema 0 nor its column may claim them; a fresh ID may."""
    table = lived(catalog, ns)
    table.commit([expire(1, 2), CLEAN_UP])
    for updates in ([use(0)], evolve(schema(BOTH))):
        error = table.refuse(updates)
        assert error["type"] == "SchemaEvolutionException" and "ICE109" in error["message"], error
    table.commit(evolve(schema("1:b string, 3:a int")))


def test_clean_up_and_return_in_one_commit(catalog: Catalog, ns: Namespace) -> None:
    """The evidence that the commit itself throws away still counts."""
    table = lived(catalog, ns)
    assert "ICE201" in table.refuse([expire(1, 2), CLEAN_UP, use(0)])["message"]


def test_a_tag_before_the_change_does_not_vouch_for_what_came_after(catalog: Catalog, ns: Namespace) -> None:
    """The tag keeps snapshot 1 and schema 0, and only snapshot 2 expires."""
    table = lived(catalog, ns)
    table.commit([set_ref("v1", 1, "tag"), expire(2), CLEAN_UP])
    assert "ICE109" in table.refuse([use(0)])["message"]


def test_a_branch_does_not_come_to_a_past_that_expired(catalog: Catalog, ns: Namespace) -> None:
    """After a rollback to schema 0, snapshot 3 is out of reach: the files behind it hold longs."""
    table = lived(catalog, ns)
    table.commit([set_ref("main", 1), use(0), expire(2)])
    assert "ICE503" in table.refuse([set_ref("main", 3)])["message"]
    table.commit([set_ref("main", 3), use(2)])


def test_an_operation_outside_the_spec_is_refused(catalog: Catalog, ns: Namespace) -> None:
    """The summary of a snapshot says append, replace, overwrite or delete."""
    table = catalog.create(ns, schema(BOTH))
    for operation in ("", "merge"):
        sent = table.snap(1, summary={"operation": operation})
        assert "Unknown snapshot operation" in table.refuse([add_snapshot(sent)])["message"]


def test_a_misspelt_rule_is_told(catalog: Catalog, ns: Namespace) -> None:
    """A table keeps the property and warns; a namespace refuses it, since no commit would ever tell."""
    table = catalog.create(ns, schema(BOTH))
    answer = table.post([], [set_properties(**{"icekeel.rule.ICE999": "error"})])
    assert answer.status_code == 200 and "ICE606" in answer.headers["icekeel-findings"]
    path = catalog.namespace_path(ns) + "/properties"
    for name, level in (("icekeel.rule.ICE999", "error"), ("icekeel.rule.ICE702", "eror")):
        refused = catalog.http.post(path, json={"updates": {name: level}, "removals": []})
        assert refused.status_code == 400 and name in refused.json()["error"]["message"]
        body = {"namespace": [unique("ns")], "properties": {name: level}}
        assert catalog.http.post(f"{catalog.base}/namespaces", json=body).status_code == 400
    assert catalog.http.post(path, json={"updates": {"icekeel.rule.ICE702": "error"}}).status_code == 200
