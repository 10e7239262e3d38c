-- +goose Up

-- One row: the last line of the audit that is older than the chain, 0 for none. Lines
-- after it have a hash.
CREATE TABLE audit_start (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  before INTEGER NOT NULL
);
INSERT INTO audit_start (id, before) SELECT 1, coalesce(max(id), 0) FROM audit WHERE hash IS NULL;
