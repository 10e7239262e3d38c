-- +goose Up

-- Since when the conditions of objects have their status, of those that had another.
CREATE TABLE conditions (
  uid    TEXT    NOT NULL,
  type   TEXT    NOT NULL,
  status TEXT    NOT NULL,
  since  INTEGER NOT NULL,
  PRIMARY KEY (uid, type)
) WITHOUT ROWID;
