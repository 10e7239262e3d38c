-- +goose Up

-- The agent runs that wait for approval.
CREATE TABLE toolctl_runs (
  id      text   COLLATE "C" PRIMARY KEY,
  prompt  text   NOT NULL,
  updated bigint NOT NULL,
  state   bytea  NOT NULL
);
