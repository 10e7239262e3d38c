-- +goose Up

-- What processes hold for a time; expires is in microseconds since 1970.
CREATE TABLE leases (
  name    TEXT    PRIMARY KEY,
  holder  TEXT    NOT NULL,
  value   TEXT    NOT NULL,
  expires INTEGER NOT NULL
) WITHOUT ROWID;
