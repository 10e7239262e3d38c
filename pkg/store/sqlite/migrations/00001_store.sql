-- +goose Up

-- "tool" in ASCII: tells a store of toolctl from another program's database.
PRAGMA application_id = 1953460076;

-- One row: the resourceVersion given out last.
CREATE TABLE revision (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  value INTEGER NOT NULL
);
INSERT INTO revision (id, value) VALUES (1, 0);

-- The applied objects. manifest is the object as compact JSON; origin is what the
-- manifest's JSON does not show: its place in a file, the files it names. Times are
-- microseconds since 1970, UTC, here and below.
CREATE TABLE objects (
  kind             TEXT    NOT NULL,
  namespace        TEXT    NOT NULL,
  name             TEXT    NOT NULL,
  set_name         TEXT    NOT NULL,
  uid              TEXT    NOT NULL,
  resource_version INTEGER NOT NULL,
  generation       INTEGER NOT NULL,
  created          INTEGER NOT NULL,
  updated          INTEGER NOT NULL,
  manifest         BLOB    NOT NULL,
  origin           BLOB    NOT NULL,
  PRIMARY KEY (kind, namespace, name)
);
CREATE INDEX objects_set ON objects (set_name);

-- The last changes, for watches: the object as it was at that resourceVersion. Every
-- resourceVersion has one row until it is compacted, so a gap can be seen.
CREATE TABLE changes (
  resource_version INTEGER PRIMARY KEY,
  type             TEXT    NOT NULL,
  kind             TEXT    NOT NULL,
  namespace        TEXT    NOT NULL,
  name             TEXT    NOT NULL,
  set_name         TEXT    NOT NULL,
  uid              TEXT    NOT NULL,
  generation       INTEGER NOT NULL,
  created          INTEGER NOT NULL,
  updated          INTEGER NOT NULL,
  manifest         BLOB    NOT NULL,
  origin           BLOB    NOT NULL
);

-- Counts of calls. expires is NULL for a count that is kept for good.
CREATE TABLE counters (
  key     TEXT    PRIMARY KEY,
  used    INTEGER NOT NULL,
  expires INTEGER
) WITHOUT ROWID;
CREATE INDEX counters_expires ON counters (expires) WHERE expires IS NOT NULL;

-- The audit, in the order of writing. record is the line as JSON, byte for byte as it
-- was written; the columns before it are copies to filter by.
CREATE TABLE audit (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  time    INTEGER NOT NULL,
  tool    TEXT    NOT NULL,
  session TEXT    NOT NULL,
  status  TEXT    NOT NULL,
  record  BLOB    NOT NULL
);
CREATE INDEX audit_time ON audit (time);
