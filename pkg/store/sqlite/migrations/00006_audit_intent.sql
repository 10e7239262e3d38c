-- +goose Up

-- Lines of intent without an outcome: calls that run, or were running when their process
-- ended.
CREATE TABLE audit_open (
  call_id TEXT    NOT NULL,
  line    INTEGER NOT NULL,
  PRIMARY KEY (call_id, line)
) WITHOUT ROWID;

-- The last line that was pruned, 0 for none, and its hash, from which the chain goes on.
ALTER TABLE audit_start ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit_start ADD COLUMN hash   BLOB;
