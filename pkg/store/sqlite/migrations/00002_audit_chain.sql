-- +goose Up

-- Who called: one more copy to filter by.
ALTER TABLE audit ADD COLUMN principal TEXT NOT NULL DEFAULT '';
UPDATE audit SET principal = coalesce(json_extract(CAST(record AS TEXT), '$.principal'), '')
  WHERE json_valid(CAST(record AS TEXT));

-- The chain: the SHA-256 of the hash before it, 32 zero bytes for the first, and of
-- record, byte for byte. NULL in lines that are older than the chain.
ALTER TABLE audit ADD COLUMN hash BLOB;
