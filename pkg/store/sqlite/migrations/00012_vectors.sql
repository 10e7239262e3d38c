-- +goose Up

-- The vectors that a model of embeddings returned for texts, by the digest of model and
-- text; written is in microseconds since 1970.
CREATE TABLE vectors (
  key     TEXT    PRIMARY KEY,
  vector  BLOB    NOT NULL,
  written INTEGER NOT NULL
);
CREATE INDEX vectors_written ON vectors (written DESC, key);
