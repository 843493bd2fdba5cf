"""The list of schemas: text kept, parsed on demand."""

from __future__ import annotations

import msgspec
import pytest

from app.errors import SpecError
from app.iceberg.json.chunked_text import Chunk, joined
from app.iceberg.json.codec import encode
from app.iceberg.schema import parse_schema
from app.iceberg.schemas import Schemas, parse_schemas, single_schema
from tests.iceberg.documents import column, schema


def test_text_survives_and_parsing_waits() -> None:
    """A schema that nobody asks for is neither parsed nor rewritten, even if it is broken."""
    text = b'[ {"schema-id":0,"type":"struct","fields":[],"x":1}, {"schema-id":1,"type":"broken"} ]'
    schemas = parse_schemas(msgspec.Raw(text), "$.schemas")
    assert joined(schemas.parts()) == (
        b'[{"schema-id":0,"type":"struct","fields":[],"x":1},{"schema-id":1,"type":"broken"}]'
    )
    assert schemas.get(0) is schemas.get(0)
    with pytest.raises(SpecError, match=r"\$\.schemas\[1\]"):
        schemas.get(1)


def test_ids_are_unique() -> None:
    """Two schemas with one id make the document unreadable."""
    with pytest.raises(SpecError, match="same schema-id"):
        parse_schemas(msgspec.Raw(encode([schema(1), schema(1)])), "$")
    with pytest.raises(SpecError, match="same schema-id"):
        Schemas().append(parse_schema(schema(1))).append(parse_schema(schema(1)))


def test_a_missing_id_is_zero_and_written_from_then_on() -> None:
    """Version 1 documents may leave schema-id out, later versions need it."""
    schemas = single_schema(msgspec.Raw(encode(schema(None, column(1, "a")))), "$")
    assert schemas.ids == (0,)
    assert msgspec.json.decode(joined(schemas.parts())) == [schema(0, column(1, "a"))]


def test_equal_content_is_found_under_its_id() -> None:
    """Content decides, not the id; identifier fields belong to it."""
    schemas = Schemas().append(parse_schema(schema(4, column(1, "a", required=True))))
    assert schemas.same_as(parse_schema(schema(9, column(1, "a", required=True)))) == 4
    assert schemas.same_as(parse_schema(schema(4, column(1, "b", required=True)))) is None
    keyed = schema(4, column(1, "a", required=True), **{"identifier-field-ids": [1]})
    assert schemas.same_as(parse_schema(keyed)) is None


def test_removal_leaves_the_rest() -> None:
    """Unknown ids are ignored; the base keeps its list."""
    base = Schemas().append(parse_schema(schema(0))).append(parse_schema(schema(1)))
    assert base.remove([0, 7]).ids == (1,)
    assert base.ids == (0, 1)
    assert (0 in base, 7 in base, len(base), list(base)) == (True, False, 2, [0, 1])


def test_a_wide_schema_is_a_chunk_that_versions_share() -> None:
    """Its text is compressed once, however many versions list it; narrow ones are joined."""
    narrow = schema(0, column(1, "a"))
    wide = schema(1, *(column(n, f"column_{n}") for n in range(1, 500)))
    base = parse_schemas(msgspec.Raw(encode([narrow, wide])), "$")
    longer = base.append(parse_schema(schema(2, column(1, "b"))))
    (chunk,) = [part for part in base.parts() if isinstance(part, Chunk)]
    assert [part for part in longer.parts() if isinstance(part, Chunk)] == [chunk]
    assert msgspec.json.decode(joined(longer.parts()))[:2] == [narrow, wide]
