CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE warehouse (
	name TEXT NOT NULL, 
	location TEXT NOT NULL, 
	allowed_locations TEXT NOT NULL, 
	properties TEXT NOT NULL, 
	storage TEXT NOT NULL, 
	secrets TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	created_at_ms BIGINT NOT NULL, 
	updated_at_ms BIGINT NOT NULL, 
	CONSTRAINT pk_warehouse PRIMARY KEY (name)
);

CREATE TABLE namespace (
	namespace_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	warehouse TEXT NOT NULL, 
	path TEXT NOT NULL, 
	parent TEXT, 
	properties TEXT NOT NULL, 
	created_at_ms BIGINT NOT NULL, 
	updated_at_ms BIGINT NOT NULL, 
	CONSTRAINT uq_namespace_path UNIQUE (warehouse, path), 
	CONSTRAINT fk_namespace_warehouse FOREIGN KEY(warehouse) REFERENCES warehouse (name), 
	CONSTRAINT fk_namespace_parent FOREIGN KEY(warehouse, parent) REFERENCES namespace (warehouse, path)
);

CREATE INDEX ix_namespace_children ON namespace (warehouse, parent, path);

CREATE TABLE tabular (
	tabular_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	warehouse TEXT NOT NULL, 
	namespace_id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	uuid TEXT NOT NULL, 
	location TEXT NOT NULL, 
	location_key TEXT NOT NULL, 
	metadata_location TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	format_version INTEGER NOT NULL, 
	last_column_id INTEGER NOT NULL, 
	current_schema_id INTEGER NOT NULL, 
	field_count INTEGER NOT NULL, 
	created_at_ms BIGINT NOT NULL, 
	updated_at_ms BIGINT NOT NULL, schema_count INTEGER, schema_changed_at_ms BIGINT, 
	CONSTRAINT fk_tabular_namespace FOREIGN KEY(namespace_id) REFERENCES namespace (namespace_id), 
	CONSTRAINT uq_tabular_name UNIQUE (namespace_id, name), 
	CONSTRAINT uq_tabular_uuid UNIQUE (uuid, warehouse)
);

CREATE INDEX ix_tabular_kind ON tabular (namespace_id, kind, name);

CREATE TABLE idempotency_key (
	warehouse TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	status INTEGER NOT NULL, 
	outcome BLOB NOT NULL, 
	created_at_ms BIGINT NOT NULL, 
	expires_at_ms BIGINT NOT NULL, 
	CONSTRAINT pk_idempotency_key PRIMARY KEY (warehouse, "key")
);

CREATE INDEX ix_idempotency_key_expiry ON idempotency_key (expires_at_ms);

CREATE TABLE purge_job (
	job_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	warehouse TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	name TEXT NOT NULL, 
	location TEXT NOT NULL, 
	metadata_location TEXT NOT NULL, 
	progress BLOB NOT NULL, 
	created_at_ms BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	last_error TEXT
);

CREATE INDEX ix_purge_job_order ON purge_job (attempts, job_id);

CREATE TABLE journal (
	entry_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at_ms BIGINT NOT NULL, 
	warehouse TEXT NOT NULL, 
	namespace_path TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	payload TEXT NOT NULL
);

CREATE INDEX ix_journal_table ON journal (table_uuid, entry_id);

CREATE INDEX ix_journal_namespace ON journal (warehouse, namespace_path, entry_id);

CREATE TABLE policy_setting (
	warehouse TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	code TEXT NOT NULL, 
	namespace_path TEXT NOT NULL, 
	table_uuid TEXT, 
	severity TEXT NOT NULL, 
	set_by TEXT NOT NULL, 
	set_at_ms BIGINT NOT NULL, 
	CONSTRAINT pk_policy_setting PRIMARY KEY (warehouse, scope, code)
);

CREATE TABLE waiver (
	waiver_id TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	code TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	granted_by TEXT NOT NULL, 
	granted_at_ms BIGINT NOT NULL, 
	expires_at_ms BIGINT NOT NULL, 
	used_at_ms BIGINT, 
	CONSTRAINT pk_waiver PRIMARY KEY (waiver_id)
);

CREATE INDEX ix_waiver_table ON waiver (table_uuid);

CREATE TABLE sighting (
	table_uuid TEXT NOT NULL, 
	client TEXT NOT NULL, 
	client_version TEXT NOT NULL, 
	action TEXT NOT NULL, 
	last_seen_ms BIGINT NOT NULL, 
	CONSTRAINT pk_sighting PRIMARY KEY (table_uuid, client, client_version, action)
);

CREATE INDEX ix_sighting_age ON sighting (table_uuid, last_seen_ms);

CREATE TABLE report (
	report_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	table_uuid TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	received_at_ms BIGINT NOT NULL, 
	body BLOB NOT NULL
);

CREATE INDEX ix_report_table ON report (table_uuid, report_id);

CREATE TABLE tabular_root (
	tabular_id BIGINT NOT NULL, 
	warehouse TEXT NOT NULL, 
	root_key TEXT NOT NULL, 
	root TEXT NOT NULL, 
	CONSTRAINT pk_tabular_root PRIMARY KEY (tabular_id, root_key), 
	CONSTRAINT fk_tabular_root_tabular FOREIGN KEY(tabular_id) REFERENCES tabular (tabular_id)
);

CREATE INDEX ix_tabular_place ON tabular (location_key);

CREATE INDEX ix_tabular_root_place ON tabular_root (root_key);

INSERT INTO alembic_version (version_num) VALUES ('0004');
