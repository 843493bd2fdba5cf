"""A part of the HTTP suite on PostgreSQL and S3: every path through the store and the objects once.

The tests are those of `tests/cases`, run against this folder's server; `make engines` runs all of them so.
"""

from __future__ import annotations

from tests.cases.test_a_schema_evolution import (  # noqa: F401
    test_o02_dropping_the_newest_column_never_moves_the_counter,
    test_o11_two_writers_add_a_column_at_once,
)
from tests.cases.test_c_commit_protocol import (  # noqa: F401
    test_o15_a_failed_requirement_is_409,
    test_o16_a_spent_number_is_a_lost_race,
    test_o17_forty_independent_commits,
    test_o18_two_first_appends,
    test_o22_a_recreated_table_is_another_table,
)
from tests.cases.test_d_create_and_replace import (  # noqa: F401
    test_o24_a_staged_table_is_invisible,
    test_o24_completing_a_stage_keeps_uuid_and_location,
    test_o24_someone_else_created_the_staged_name,
    test_o25_replace_keeps_history,
    test_o26_one_bad_entry_undoes_all,
    test_o26_readers_never_see_half,
    three,
)
from tests.cases.test_f_names_and_listing import (  # noqa: F401
    test_o35_the_unit_separator_divides_levels,
    test_o36_odd_names_work_everywhere,
    test_o37_a_namespace_with_anything_in_it_stays,
    test_o38_paging,
)
from tests.cases.test_g_loading import (  # noqa: F401
    test_o39_a_change_gives_a_new_tag,
    test_o40_the_short_form_hides_and_removes_nothing,
)
from tests.cases.test_h_locations_and_drops import (  # noqa: F401
    test_o41_overlaps_are_refused_alike,
    test_o42_rename_into_another_namespace,
    test_o43_a_plain_drop_keeps_every_file,
    test_o43_a_purge_removes_metadata,
    test_o43_register_and_overwrite,
)
from tests.cases.test_i_views import test_o44_going_back_to_an_earlier_text  # noqa: F401
from tests.scale.conftest import Scaled
from tests.server import Server


def test_tables_are_in_s3_and_nothing_on_the_disk(server: Server, backend: Scaled, catalog: object) -> None:
    """What this module runs is really the other backend."""
    assert (
        server.settings["WAREHOUSE"].startswith("s3://") and backend.s3.endpoint in server.settings["WAREHOUSE_OPTIONS"]
    )
    assert not (server.home / "icekeel.db").exists()
