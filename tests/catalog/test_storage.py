"""Storage profiles: what is secret, what clients are told, and when they get keys."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from app.catalog import storage, warehouses
from app.catalog.context import Context
from app.catalog.storage import is_secret
from app.catalog.warehouses import WarehouseChange
from app.errors import AlreadyExists, BadRequest, CommitFailed, Forbidden, NamespaceNotEmpty, NoSuchWarehouse
from app.ports import AddPurgeJob, PutWarehouse, Warehouse
from tests.catalog.shorthand import create, namespace
from tests.catalog.world import HOME, World

KEYS = {"s3.access-key-id": "id", "s3.secret-access-key": "hush"}
ENDPOINT = {"s3.endpoint": "http://store:8333"}


def lake(location: str = "s3://b/lake", **options: str) -> Warehouse:
    shown, secret = storage.split({name.replace("__", ".").replace("_", "-"): v for name, v in options.items()})
    return Warehouse(name="lake", location=location, storage=shown, secrets=secret)


def with_options(options: dict[str, str], location: str = "s3://b/lake") -> Warehouse:
    shown, secret = storage.split(options)
    return Warehouse(name="lake", location=location, storage=shown, secrets=secret)


def test_what_was_stored_as_public_is_a_secret_once_it_is_known_for_one(world: World) -> None:
    """A record of before is read with its secrets apart, and a change may not lead them away either."""
    old = Warehouse(name="lake", location="gs://b/lake", storage={"gcs.decryption-key": "hush", "gcs.project-id": "p"})
    world.run(world.store.write([PutWarehouse(warehouse=old, expected_version=None, now_ms=1)]))
    seen = world.run(warehouses.fresh_warehouse(world.ctx, "lake"))
    assert seen.storage == {"gcs.project-id": "p"} and seen.secrets == {"gcs.decryption-key": "hush"}
    change = WarehouseChange(options={"gcs.oauth2.refresh-credentials-endpoint": "https://x.example"})
    with pytest.raises(BadRequest, match=r"Give gcs\.decryption-key again"):
        world.run(warehouses.change_warehouse(world.ctx, "lake", change))
    changed = world.run(warehouses.change_warehouse(world.ctx, "lake", WarehouseChange(properties={"a": "1"})))
    kept = world.run(world.store.warehouse("lake"))
    assert kept == changed and kept.secrets == {"gcs.decryption-key": "hush"}


def test_options_of_the_settings_stand_alone(world: World) -> None:
    """A stored endpoint, which a request chose, is not given the operator's keys."""
    own = Warehouse(name=HOME, location="s3://own/lake", storage={"s3.region": "eu"}, secrets=KEYS)
    ctx = replace(world.ctx, configured=own)
    kept = Warehouse(name=HOME, location=str(world.warehouse), storage=ENDPOINT, version=2)
    world.run(world.store.write([PutWarehouse(warehouse=kept, expected_version=1, now_ms=1)]))
    seen = world.run(warehouses.fresh_warehouse(ctx, HOME))
    assert seen.storage == {"s3.region": "eu"} and seen.secrets == KEYS
    with pytest.raises(BadRequest, match="ICEKEEL_WAREHOUSE_OPTIONS"):
        world.run(warehouses.change_warehouse(ctx, HOME, WarehouseChange(options=ENDPOINT)))


def test_keys_are_not_handed_out_by_default() -> None:
    """Neither with the configuration nor with a table; with a table goes nothing that would hide a client's own."""
    profile = with_options({**KEYS, **ENDPOINT})
    assert profile.secrets == KEYS
    assert storage.handed(profile) == {}
    assert "hush" not in repr(storage.told(profile))


def test_keys_are_handed_out_with_tables_where_the_warehouse_opted_in() -> None:
    """And still not with the configuration, which is asked for before anything is known."""
    profile = with_options({**KEYS, **ENDPOINT, "icekeel.client.keys": "true"})
    assert KEYS.items() <= storage.handed(profile).items()
    assert "hush" not in repr(storage.told(profile))
    assert not any(name.startswith("icekeel") for name in storage.handed(profile))


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(None, "http://store:8333"), ("true", "http://store:8333"), ("false", None), ("https://public", "https://public")],
)
def test_the_endpoint_that_clients_get_is_chosen_apart(chosen: str | None, expected: str | None) -> None:
    """Clients may reach the store under another name than the server, or must not be told one at all."""
    options = {**ENDPOINT, **({} if chosen is None else {"icekeel.client.endpoint": chosen})}
    told = storage.told(with_options(options))
    assert told.get("s3.endpoint") == expected
    assert told["client.region"] == told["s3.region"] == "us-east-1"
    assert ("s3.path-style-access" in told) == (expected is not None)


def test_a_region_is_told_under_both_names() -> None:
    """Java reads client.region, others s3.region; without an endpoint none is made up."""
    assert storage.told(with_options({"s3.region": "eu"})) == {"s3.region": "eu", "client.region": "eu"}
    assert storage.told(with_options({"client.region": "eu"})) == {"s3.region": "eu", "client.region": "eu"}
    assert storage.told(with_options({})) == {}
    assert storage.told(with_options({"s3.path-style-access": "false", **ENDPOINT}))["s3.path-style-access"] == "false"


def test_azure_keys_go_out_under_every_name_that_engines_read() -> None:
    """Java and PyIceberg differ; a client secret is never handed out."""
    profile = with_options(
        {
            "adls.auth.shared-key.account.name": "acc",
            "adls.account-key": "k",
            "adls.sas-token.acc.dfs.core.windows.net": "sas",
            "adls.client-secret": "never",
            "icekeel.client.keys": "true",
        },
        "abfss://c@acc.dfs.core.windows.net/wh",
    )
    assert storage.handed(profile) == {
        "adls.account-name": "acc",
        "adls.auth.shared-key.account.name": "acc",
        "adls.account-key": "k",
        "adls.auth.shared-key.account.key": "k",
        "adls.sas-token.acc.dfs.core.windows.net": "sas",
    }


def test_a_google_token_is_handed_out_and_a_service_account_is_not() -> None:
    """The first is what clients read, the second would give everything away."""
    profile = with_options(
        {"gcs.oauth2.token": "t", "gcs.service-account-key": "{}", "icekeel.client.keys": "true"}, "gs://b/wh"
    )
    assert storage.handed(profile) == {"gcs.oauth2.token": "t"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"s4.region": "x"}, r"Unknown storage option: 's4.region' \(did you mean s3.region\?\)"),
        ({"s3.endpiont": "http://x"}, r"'s3.endpiont' \(did you mean s3.endpoint\?\)"),
        ({"s3.Endpoint": "http://x"}, "did you mean s3.endpoint"),
        ({"adls.sas-tokn.acc": "x"}, "did you mean adls.sas-token"),
        ({"s3.access-key": "x", "s3.secret-access-key": "y"}, "did you mean s3.access-key-id"),
        ({"s3.": "x"}, "Unknown storage option"),
        ({"s3.write.tags.": "x"}, "Unknown storage option"),
        ({"zzz": "x"}, r"known are s3\.\*"),
        ({"icekeel.client.endpoint": "maybe"}, "true, false or a URL"),
        ({"icekeel.client.keys": "yes"}, "is true or false"),
        ({"icekeel.client.keys": "true"}, "no static keys"),
        ({"s3.access-key-id": "x"}, "go together"),
        ({"s3.endpoint": "store:8333"}, "http:// or https://"),
        ({"s3.endpoint": "http://[::1"}, "http:// or https://"),
    ],
)
def test_a_profile_that_cannot_work_is_refused(world: World, options: dict[str, str], message: str) -> None:
    """At once, and not when the first table is made."""
    with pytest.raises(BadRequest, match=message):
        world.run(warehouses.create_warehouse(world.ctx, with_options(options)))


@pytest.mark.parametrize(
    "option", ["s3.write.tags.team", "s3.access-points.b", "adls.sas-token.acc", "s3.multipart.threshold", "io-impl"]
)
def test_options_that_only_clients_read_are_kept(world: World, option: str) -> None:
    """The catalog hands them on, those with a part of the user's own too."""
    made = world.run(warehouses.create_warehouse(world.ctx, with_options({option: "x"})))
    assert option in {**made.storage, **made.secrets}


def test_handing_out_keys_is_loud_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """When it is switched on and at every start; never with the key."""
    with caplog.at_level(logging.INFO):
        world.run(warehouses.create_warehouse(world.ctx, with_options({**KEYS, "icekeel.client.keys": "true"})))
        world.run(warehouses.tell_of_keys(world.ctx))
    loud = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(loud) == 2 and all("HANDS OUT ITS STATIC KEYS" in record.getMessage() for record in loud)
    assert "hush" not in caplog.text


def test_a_change_merges_and_null_removes(world: World) -> None:
    """What is not named stays; each change is one more version."""
    world.run(warehouses.create_warehouse(world.ctx, with_options({**KEYS, **ENDPOINT, "s3.region": "eu"})))
    change = WarehouseChange(
        allowed_locations=("s3://c",),
        properties={"owner": "me"},
        options={**KEYS, "s3.region": None, "s3.secret-access-key": "new", "icekeel.client.keys": "true"},
    )
    changed = world.run(warehouses.change_warehouse(world.ctx, "lake", change))
    assert changed.version == 2 and changed.allowed_locations == ("s3://c",) and changed.properties == {"owner": "me"}
    assert changed.storage == {**ENDPOINT, "icekeel.client.keys": "true"}
    assert changed.secrets == {**KEYS, "s3.secret-access-key": "new"}
    assert world.run(world.store.warehouse("lake")) == changed


def test_a_change_may_ask_for_a_version(world: World) -> None:
    """Two operators do not undo each other."""
    world.run(warehouses.create_warehouse(world.ctx, lake()))
    world.run(warehouses.change_warehouse(world.ctx, "lake", WarehouseChange(properties={"a": "1"}, version=1)))
    with pytest.raises(CommitFailed, match="at version 2, not 1"):
        world.run(warehouses.change_warehouse(world.ctx, "lake", WarehouseChange(properties={"a": "2"}, version=1)))
    with pytest.raises(NoSuchWarehouse):
        world.run(warehouses.change_warehouse(world.ctx, "nope", WarehouseChange()))


def test_a_location_that_is_left_stays_allowed(world: World) -> None:
    """Tables there are still served."""
    world.run(warehouses.create_warehouse(world.ctx, lake()))
    changed = world.run(warehouses.change_warehouse(world.ctx, "lake", WarehouseChange(location="s3://new/lake/")))
    assert changed.location == "s3://new/lake" and changed.allowed_locations == ("s3://b/lake",)


@pytest.mark.parametrize("location", ["s3://b/lake", "s3a://b/lake/inner", "s3://b"])
def test_two_warehouses_never_share_a_place(world: World, location: str) -> None:
    """Purging a table of one could otherwise empty a table of the other."""
    world.run(warehouses.create_warehouse(world.ctx, lake()))
    with pytest.raises(BadRequest, match="overlaps warehouse lake"):
        world.run(warehouses.create_warehouse(world.ctx, Warehouse(name="two", location=location)))
    world.run(warehouses.create_warehouse(world.ctx, Warehouse(name="two", location="s3://b/lake2")))
    with pytest.raises(BadRequest, match="overlaps warehouse lake"):
        world.run(warehouses.change_warehouse(world.ctx, "two", WarehouseChange(location=location)))


def test_warehouses_on_the_servers_disk_are_made_where_the_operator_allows(world: World) -> None:
    """Whoever may make warehouses may not thereby read every file of the machine."""
    roots = (str(world.folder / "warehouses"), "/srv/lake")
    ctx = replace(world.ctx, limits=replace(world.ctx.limits, local_roots=roots))
    for place in ("/", "/etc", str(world.folder), f"{world.folder}/warehouses/../x", "file:///srv/lakes"):
        with pytest.raises(BadRequest):
            world.run(warehouses.create_warehouse(ctx, Warehouse(name="new", location=place)))
    with pytest.raises(BadRequest, match="ICEKEEL_ALLOWED_LOCATIONS"):
        new = Warehouse(name="new", location="s3://b/x", allowed_locations=("/etc",))
        world.run(warehouses.create_warehouse(ctx, new))
    made = Warehouse(name="new", location=f"{world.folder}/warehouses/new")
    assert world.run(warehouses.create_warehouse(ctx, made)).location.endswith("/warehouses/new")


ETC = ("/etc", "file:///etc", "file:/etc/", "/", "/etc/../etc")


def guarded(world: World, **limits: Any) -> Context:
    """A server as `main` wires it: with a configured warehouse and folders in which warehouses may be made."""
    own = Warehouse(name=HOME, location=str(world.warehouse))
    roots: dict[str, Any] = {"local_roots": (str(world.folder / "warehouses"),), **limits}
    return replace(world.ctx, configured=own, limits=replace(world.ctx.limits, **roots))


@pytest.mark.parametrize("place", ETC)
@pytest.mark.parametrize("name", [HOME, "lake"])
def test_no_change_opens_the_servers_disk(world: World, name: str, place: str) -> None:
    """Only the location from the settings is above the rule: nothing that a request adds, whatever the warehouse."""
    ctx = guarded(world)
    world.run(warehouses.create_warehouse(ctx, lake(f"{world.folder}/warehouses/lake")))
    before = world.run(warehouses.fresh_warehouse(ctx, name))
    changes = [WarehouseChange(allowed_locations=(place,)), WarehouseChange(location=place)]
    changes += [WarehouseChange(allowed_locations=("s3://elsewhere/x", place))]
    for change in changes:
        with pytest.raises(BadRequest):
            world.run(warehouses.change_warehouse(ctx, name, change))
    assert world.run(warehouses.fresh_warehouse(ctx, name)) == before


def test_what_a_warehouse_holds_already_may_be_said_again(world: World) -> None:
    """A place is judged when it is added; a client that sends back the whole list is not refused for it."""
    ctx = guarded(world)
    below = f"{world.folder}/warehouses/more"
    again = (f"{world.warehouse}/sub", below)
    for allowed in ((below,), (below,), again):
        changed = world.run(warehouses.change_warehouse(ctx, HOME, WarehouseChange(allowed_locations=allowed)))
        assert changed.allowed_locations == allowed


@pytest.mark.parametrize("taken", ["s3://b/lake", "s3://b/lake/t", "s3://b", "s3://old/lake/x"])
def test_an_allowed_place_is_nobody_elses(world: World, taken: str) -> None:
    """Not below, above or at what another warehouse lies in or may use, whichever of the two comes first."""
    world.run(warehouses.create_warehouse(world.ctx, lake("s3://old/lake")))
    world.run(warehouses.change_warehouse(world.ctx, "lake", WarehouseChange(location="s3://b/lake")))
    two = Warehouse(name="two", location="s3://b/two")
    with pytest.raises(BadRequest, match=r"Invalid allowed location: .* overlaps warehouse lake"):
        world.run(warehouses.create_warehouse(world.ctx, replaced(two, allowed_locations=(taken,))))
    world.run(warehouses.create_warehouse(world.ctx, two))
    with pytest.raises(BadRequest, match=r"Invalid allowed location: .* overlaps warehouse lake"):
        world.run(warehouses.change_warehouse(world.ctx, "two", WarehouseChange(allowed_locations=(taken,))))
    with pytest.raises(BadRequest, match=r"Invalid warehouse location: s3://old/lake .* which may use s3://old/lake"):
        world.run(warehouses.create_warehouse(world.ctx, Warehouse(name="three", location="s3://old/lake")))


def test_the_configured_location_is_nobody_elses(world: World) -> None:
    """A start that would put the default warehouse into another one is refused, and nothing has moved."""
    world.run(warehouses.create_warehouse(world.ctx, lake()))
    with pytest.raises(BadRequest, match="overlaps warehouse lake"):
        world.run(warehouses.ensure_warehouse(world.ctx, Warehouse(name=HOME, location="s3://b/lake/inner")))
    found = world.run(world.store.warehouse(HOME))
    assert found is not None and found.location == str(world.warehouse)


@pytest.mark.parametrize(
    "location",
    ["ftp://h/x", "http://h/x", "hdfs://n/x", "s3:x", "s3:///x", "abfss://container/x", "x", "/a\nb", "s3://b/\x00"],
)
def test_a_place_that_no_store_serves_is_refused(world: World, location: str) -> None:
    """As a location and as an allowed one, from a request and from the settings; at once, not at the first table."""
    for new in (
        Warehouse(name="new", location=location),
        Warehouse(name="new", location="s3://b/x", allowed_locations=(location,)),
    ):
        with pytest.raises(BadRequest):
            world.run(warehouses.create_warehouse(world.ctx, new))
    with pytest.raises(BadRequest):
        world.run(warehouses.ensure_warehouse(world.ctx, Warehouse(name=HOME, location=location)))


def test_without_a_token_nobody_sends_the_server_anywhere(world: World) -> None:
    """No place in a cloud and no storage option, in a new warehouse or an old one; but what the operator allowed."""
    ctx = guarded(world, callers_known=False, allowed_locations=("s3://shared",))
    disk = f"{world.folder}/warehouses/x"
    for new in (
        lake(),
        lake("abfss://c@evil.example/x"),
        replaced(lake(disk), allowed_locations=("s3://b/x",)),
        replaced(lake(disk), storage={"s3.region": "eu"}),
        replaced(lake("s3://shared/x"), storage=ENDPOINT),
        replaced(lake(disk), secrets=KEYS),
    ):
        with pytest.raises(Forbidden, match="ICEKEEL_TOKEN"):
            world.run(warehouses.create_warehouse(ctx, new))
    world.run(warehouses.create_warehouse(ctx, lake("s3://shared/x")))
    for name in (HOME, "lake"):
        for change in (
            WarehouseChange(options=ENDPOINT),
            WarehouseChange(options={"s3.region": None}),
            WarehouseChange(allowed_locations=("gs://bucket",)),
        ):
            with pytest.raises(Forbidden, match="ICEKEEL_TOKEN"):
                world.run(warehouses.change_warehouse(ctx, name, change))
    with pytest.raises(Forbidden):
        world.run(warehouses.change_warehouse(ctx, "lake", WarehouseChange(location="s3://b/x")))
    changed = world.run(
        warehouses.change_warehouse(ctx, "lake", WarehouseChange(location="s3://shared/y", properties={"a": "1"}))
    )
    assert changed.allowed_locations == ("s3://shared/x",) and changed.properties == {"a": "1"}


def test_the_configured_warehouse_follows_the_settings(world: World) -> None:
    """Its options come from there and are never stored; neither its place nor its end is up to the API."""
    own = Warehouse(name=HOME, location=str(world.warehouse), storage={"s3.region": "eu"}, secrets=KEYS)
    ctx = type(world.ctx)(
        store=world.store, objects=world.ctx.objects, clock=world.clock, ids=world.ctx.ids, configured=own
    )
    world.run(warehouses.ensure_warehouse(ctx, own))
    seen = world.run(warehouses.fresh_warehouse(ctx, HOME))
    assert seen.secrets == KEYS and seen.storage == {"s3.region": "eu"}
    kept = world.run(world.store.warehouse(HOME))
    assert kept is not None and kept.secrets == {} and kept.storage == {}
    with pytest.raises(BadRequest, match="ICEKEEL_WAREHOUSE"):
        world.run(warehouses.change_warehouse(ctx, HOME, WarehouseChange(location="s3://b/x")))
    with pytest.raises(BadRequest, match="configured"):
        world.run(warehouses.drop_warehouse(ctx, HOME))
    changed = world.run(warehouses.change_warehouse(ctx, HOME, WarehouseChange(properties={"a": "1"})))
    assert changed.properties == {"a": "1"} and changed.secrets == KEYS


def test_new_tables_get_the_warehouses_properties_unless_the_request_has_its_own(world: World) -> None:
    """Reserved ones too: a warehouse may make its tables v3."""
    namespace(world)
    change = WarehouseChange(properties={"owner": "house", "format-version": "3", "kept": "yes"})
    world.run(warehouses.change_warehouse(world.ctx, HOME, change))
    document = create(world, "t", owner="me")
    assert b'"format-version":3' in document.metadata
    assert b'"owner":"me"' in document.metadata and b'"kept":"yes"' in document.metadata


def test_a_warehouse_that_still_deletes_files_is_not_dropped(world: World) -> None:
    """Without its record the files could not be deleted any more."""
    world.run(warehouses.create_warehouse(world.ctx, lake()))
    job = AddPurgeJob(
        warehouse="lake", table_uuid="u", name="a\x1ft", location="s3://b/lake/t",
        metadata_location="s3://b/lake/t/m", now_ms=1,
    )  # fmt: skip
    world.run(world.store.write([job]))
    with pytest.raises(NamespaceNotEmpty, match="still deletes"):
        world.run(warehouses.drop_warehouse(world.ctx, "lake"))


def test_a_taken_name_is_told_before_a_taken_place(world: World) -> None:
    """Creating the same warehouse twice is AlreadyExists."""
    world.run(warehouses.create_warehouse(world.ctx, lake()))
    with pytest.raises(AlreadyExists):
        world.run(warehouses.create_warehouse(world.ctx, lake()))


def test_a_table_carries_the_config_of_its_warehouse(world: World) -> None:
    """Create, load and commit agree on it, so an entity tag of one holds for the other."""
    namespace(world)
    made = create(world, "t")
    assert made.config == storage.handed(world.run(warehouses.fresh_warehouse(world.ctx, HOME)))


@pytest.mark.parametrize(
    "option",
    [
        "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.sse.md5", "client.secret-access-key",
        "client.access-key-id", "client.assume-role.external-id", "client.credentials-provider.x", "gcs.oauth2.token",
        "gcs.service-account-key", "gcs.encryption-key", "gcs.decryption-key", "gcs.session-kwargs",
        "adls.credential", "adls.token", "adls.client-secret", "adls.account-key", "adls.sas-token",
        "adls.sas-token.acc.dfs.core.windows.net", "adls.connection-string", "adls.connection-string.acc",
        "adls.auth.shared-key.account.key", "adls.token-credential-provider.x",
    ],
)  # fmt: skip
def test_secrets_are_secret(option: str) -> None:
    """By every name that a library has for one."""
    assert is_secret(option, "x")


@given(st.text(max_size=40))
def test_what_is_not_known_is_secret(option: str) -> None:
    """An option of a later version of some library is not shown because nobody thought of it."""
    assert is_secret(f"s3.new-{option}", "x") and is_secret(f"adls.{option}.new", "x")


@pytest.mark.parametrize(
    "value",
    ["http://user:pw@proxy:3128", "https://:pw@h", "user:pw@proxy:3128", "https://h/?sig=x", "https://h/#token"],
)
@pytest.mark.parametrize("option", ["s3.proxy-uri", "s3.signer.uri", "s3.endpoint", "s3.access-points.b"])
def test_a_password_in_a_value_makes_it_secret(option: str, value: str) -> None:
    """Whatever the option: user and password, or a query that may be a signature."""
    assert is_secret(option, value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("s3.endpoint", "https://store.example:9000/path"),
        ("s3.region", "eu-west-1"),
        ("s3.role-arn", "arn:aws:iam::1:role/x"),
        ("gcs.impersonate.service-account", "sa@project.iam.gserviceaccount.com"),
        ("s3.write.tags.team", "a"),
        ("icekeel.client.keys", "true"),
        ("io-impl", "org.apache.iceberg.aws.s3.S3FileIO"),
    ],
)
def test_what_clients_need_to_know_is_public(option: str, value: str) -> None:
    """Where the files are and how to read them."""
    assert not is_secret(option, value)


def test_an_encryption_key_is_public_by_the_name_that_kms_has_for_it() -> None:
    """With another type of encryption the same option holds the key itself."""
    assert not is_secret("s3.sse.key", "arn:aws:kms:eu-west-1:1:key/x") and not is_secret("s3.sse.key", "alias/lake")
    assert is_secret("s3.sse.key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
