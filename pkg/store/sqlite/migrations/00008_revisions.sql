-- +goose Up

-- The last applies of each set; record is the revision as JSON.
CREATE TABLE revisions (
  set_name TEXT    NOT NULL,
  number   INTEGER NOT NULL,
  record   BLOB    NOT NULL,
  PRIMARY KEY (set_name, number)
) WITHOUT ROWID;

-- What they held: an object is in the revisions of its set from first to last, and in all
-- after first while last is 0.
CREATE TABLE revision_objects (
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
  digest           TEXT    NOT NULL,
  first            INTEGER NOT NULL,
  last             INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (set_name, kind, namespace, name, first)
);
-- What the newest revision holds is read without the manifests.
CREATE INDEX revision_objects_last ON revision_objects (set_name, last, kind, namespace, name, resource_version, digest);
