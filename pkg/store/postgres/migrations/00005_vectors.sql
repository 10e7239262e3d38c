-- +goose Up

-- The vectors that a model of embeddings returned for texts, by the digest of model and text.
CREATE TABLE toolctl_vectors (
  key     text   COLLATE "C" PRIMARY KEY,
  vector  bytea  NOT NULL,
  written bigint NOT NULL
);
CREATE INDEX toolctl_vectors_written ON toolctl_vectors (written DESC, key);
