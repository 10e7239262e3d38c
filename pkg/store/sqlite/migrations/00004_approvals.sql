-- +goose Up

-- Calls that wait for approval, or waited. record is the call as JSON, with masked
-- arguments; the columns before it are what it is found by. edited are the arguments
-- that were approved instead, as they will be executed, and redact the rules to mask
-- them by.
CREATE TABLE approvals (
  id        TEXT    PRIMARY KEY,
  subject   TEXT    NOT NULL,
  principal TEXT    NOT NULL,
  session   TEXT    NOT NULL,
  state     TEXT    NOT NULL,
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL,
  record    BLOB    NOT NULL,
  redact    BLOB    NOT NULL,
  edited    BLOB
);
CREATE INDEX approvals_subject ON approvals (subject);
CREATE INDEX approvals_state ON approvals (state, expires);
CREATE INDEX approvals_session ON approvals (session, principal, state, expires);
