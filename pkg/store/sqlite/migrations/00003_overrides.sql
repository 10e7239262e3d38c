-- +goose Up

-- Descriptions that stand in for those of tools; the newest of a tool holds, an empty
-- one takes back.
CREATE TABLE overrides (
  version     INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace   TEXT    NOT NULL,
  tool        TEXT    NOT NULL,
  description TEXT    NOT NULL,
  author      TEXT    NOT NULL,
  time        INTEGER NOT NULL
);
CREATE INDEX overrides_tool ON overrides (namespace, tool, version);
