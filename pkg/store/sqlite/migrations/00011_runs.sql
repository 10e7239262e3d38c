-- +goose Up

-- The agent runs that wait for approval; updated is in microseconds since 1970.
CREATE TABLE runs (
  id      TEXT    PRIMARY KEY,
  prompt  TEXT    NOT NULL,
  updated INTEGER NOT NULL,
  state   BLOB    NOT NULL
);
