"""A refused schema change on the wire, and the ways around it: policy, waivers, and their command line."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.http.samples import error, fresh, namespace, table
from tests.server import Server

DECIMAL = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "price", "type": "decimal(9, 2)", "required": False}],
}


def orders(http: httpx.Client) -> tuple[str, dict[str, Any]]:
    """A table with a decimal column and a snapshot, so that there is data a change could spoil."""
    ns = namespace(http)
    made = table(http, ns, schema=DECIMAL)
    path = f"/v1/namespaces/{ns}/tables/{made['name']}"
    snapshot = {
        "snapshot-id": 1, "timestamp-ms": made["metadata"]["last-updated-ms"], "sequence-number": 1, "schema-id": 0,
        "manifest-list": f"{made['metadata']['location']}/metadata/snap-1.avro", "summary": {"operation": "append"},
    }  # fmt: skip
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ]
    appended = http.post(path, json={"requirements": [], "updates": updates})
    assert appended.status_code == 200, appended.text
    return path, made


def retype(http: httpx.Client, path: str, column_type: str) -> httpx.Response:
    """Commit another type for the price column."""
    changed = json.loads(json.dumps(DECIMAL))
    changed["fields"][0]["type"] = column_type
    updates = [{"action": "add-schema", "schema": changed}, {"action": "set-current-schema", "schema-id": -1}]
    return http.post(path, json={"requirements": [], "updates": updates})


def test_a_refusal_holds_every_finding(http: httpx.Client) -> None:
    """400, type SchemaEvolutionException, one line that engines print, and the findings as data."""
    path, _ = orders(http)
    refused = retype(http, path, "decimal(12, 4)")
    failed = error(refused)
    assert (refused.status_code, failed["type"]) == (400, "SchemaEvolutionException")
    assert "\n" not in failed["message"]
    (finding,) = failed["findings"]
    assert finding["severity"] == "error" and finding["field-id"] == 1 and finding["path"] == "price"
    assert finding["code"] in failed["message"] and finding["fix"] in failed["message"]
    assert finding["before"].replace(" ", "") == "decimal(9,2)" and finding["after"].replace(" ", "") == "decimal(12,4)"
    assert http.get(path).json()["metadata"]["current-schema-id"] == 0
    assert f'icekeel_refusals_total{{code="{finding["code"]}"}}' in http.get("/metrics").text


def test_a_legal_change_passes(http: httpx.Client) -> None:
    """Widening the precision is fine and raises nothing."""
    path, _ = orders(http)
    accepted = retype(http, path, "decimal(12, 2)")
    assert accepted.status_code == 200, accepted.text
    assert "icekeel-findings" not in accepted.headers


def test_a_waiver_lets_one_commit_through(http: httpx.Client) -> None:
    """Granted with a reason, shown in the answer's header, used up, and listed as used."""
    path, _ = orders(http)
    ours = path.replace("/v1/namespaces", "/icekeel/v1/default/namespaces") + "/evolution"
    code = error(retype(http, path, "decimal(12, 4)"))["findings"][0]["code"]
    granted = http.post(f"{ours}/waivers", json={"code": code, "reason": "rewritten by hand", "expires-in-seconds": 60})
    assert granted.status_code == 200, granted.text
    waiver = granted.json()
    assert waiver["expires-at-ms"] - waiver["granted-at-ms"] == 60_000 and "used-at-ms" not in waiver
    accepted = retype(http, path, "decimal(12, 4)")
    assert accepted.status_code == 200, accepted.text
    (finding,) = json.loads(accepted.headers["icekeel-findings"])
    assert finding["code"] == code and finding["waived-by"] == waiver["waiver-id"]
    (listed,) = http.get(f"{ours}/waivers").json()["waivers"]
    assert listed["used-at-ms"] >= waiver["granted-at-ms"]
    assert error(retype(http, path, "decimal(14, 6)"))["type"] == "SchemaEvolutionException"


def test_a_waiver_can_be_taken_back(http: httpx.Client) -> None:
    """Revoked, it lets nothing through; an unknown one is 404."""
    path, _ = orders(http)
    ours = path.replace("/v1/namespaces", "/icekeel/v1/default/namespaces") + "/evolution/waivers"
    code = error(retype(http, path, "decimal(12, 4)"))["findings"][0]["code"]
    waiver = http.post(ours, json={"code": code, "reason": "r"}).json()
    assert http.delete(ours, params={"waiver-id": waiver["waiver-id"]}).status_code == 204
    assert error(retype(http, path, "decimal(12, 4)"))["code"] == 400
    assert error(http.delete(ours, params={"waiver-id": waiver["waiver-id"]}))["code"] == 404
    assert error(http.delete(ours))["code"] == 400


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"code": "ICE000", "reason": "r"},
        {"code": 1, "reason": "r"},
        {"code": "ICE201"},
        {"code": "ICE201", "reason": " "},
    ],
)
def test_a_malformed_waiver_is_refused(http: httpx.Client, body: object) -> None:
    """Without a known code and a reason there is none."""
    path, _ = orders(http)
    ours = path.replace("/v1/namespaces", "/icekeel/v1/default/namespaces") + "/evolution/waivers"
    assert error(http.post(ours, json=body))["code"] in (400, 404)


def test_policy_lowers_and_takes_back(http: httpx.Client) -> None:
    """A lowered rule warns in the header instead of refusing; null restores it."""
    path, _ = orders(http)
    ours = path.replace("/v1/namespaces", "/icekeel/v1/default/namespaces") + "/evolution/policy"
    code = error(retype(http, path, "decimal(12, 4)"))["findings"][0]["code"]

    def held(answer: httpx.Response) -> dict[str, Any]:
        assert answer.status_code == 200, answer.text
        return next(rule for rule in answer.json()["rules"] if rule["code"] == code)

    assert held(http.get(ours))["severity"] == "error"
    lowered = held(http.put(ours, json={"code": code, "severity": "warn"}))
    assert (lowered["severity"], lowered["set-by-policy"], lowered["default"]) == ("warn", "warn", "error")
    accepted = retype(http, path, "decimal(12, 4)")
    assert accepted.status_code == 200 and json.loads(accepted.headers["icekeel-findings"])[0]["severity"] == "warn"
    assert "set-by-policy" not in held(http.put(ours, json={"code": code, "severity": None}))
    assert error(http.put(ours, json={"code": code, "severity": "loud"}))["code"] == 400
    assert error(http.put(ours, json={"code": code, "severity": "warn", "scope": "world"}))["code"] == 400
    assert error(http.put(ours, json={"code": code}))["code"] == 400
    assert error(http.put(ours, json={"code": "ICE000", "severity": "warn"}))["code"] == 404


def test_namespace_scope_holds_for_its_tables(http: httpx.Client) -> None:
    """A setting for the namespace is met by a table in it."""
    path, _ = orders(http)
    ours = path.replace("/v1/namespaces", "/icekeel/v1/default/namespaces") + "/evolution/policy"
    code = error(retype(http, path, "decimal(12, 4)"))["findings"][0]["code"]
    assert http.put(ours, json={"code": code, "severity": "off", "scope": "namespace"}).status_code == 200
    assert retype(http, path, "decimal(12, 4)").status_code == 200


def test_a_property_can_only_tighten(http: httpx.Client) -> None:
    """Any writer can set a property, so it raises a severity and never lowers one."""
    path, _ = orders(http)
    code = error(retype(http, path, "decimal(12, 4)"))["findings"][0]["code"]
    updates = [{"action": "set-properties", "updates": {f"icekeel.rule.{code}": "off"}}]
    http.post(path, json={"requirements": [], "updates": updates})
    assert error(retype(http, path, "decimal(12, 4)"))["type"] == "SchemaEvolutionException"


def test_the_evolution_api_of_a_missing_table_is_404(http: httpx.Client) -> None:
    """By the table's type."""
    for tail in ("policy", "waivers"):
        missing = http.get(f"/icekeel/v1/default/namespaces/a/tables/{fresh('no')}/evolution/{tail}")
        assert error(missing)["type"] == "NoSuchTableException"


def test_the_command_line_grants_and_sets(
    server: Server, http: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """`icekeel waive` and `icekeel policy` do over HTTP what the API does, with exit codes and JSON."""
    path, made = orders(http)
    code = error(retype(http, path, "decimal(12, 4)"))["findings"][0]["code"]
    name = json.dumps([path.split("/")[3], made["name"]])

    def cli(*arguments: str) -> str:
        assert main([*arguments, "--uri", server.url]) == 0
        return capsys.readouterr().out

    grant = ["--reason", "because", "--expires", "2h", "--format", "json"]
    waiver = json.loads(cli("waive", "grant", name, code.lower(), *grant))
    assert waiver["code"] == code and waiver["expires-at-ms"] - waiver["granted-at-ms"] == 7_200_000
    assert waiver["waiver-id"] in cli("waive", "list", name)
    cli("waive", "revoke", name, waiver["waiver-id"])
    assert cli("waive", "list", name) == "no waivers\n"
    assert "policy says warn" in cli("policy", "set", name, code.lower(), "warn")
    shown = json.loads(cli("policy", "get", name, "--format", "json"))
    assert next(rule for rule in shown["rules"] if rule["code"] == code)["severity"] == "warn"
    assert main(["policy", "set", name, "ICE000", "warn", "--uri", server.url]) == 1
    assert capsys.readouterr().err == "icekeel: No such rule: ICE000\n"
