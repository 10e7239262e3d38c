-- +goose Up

-- What a tool calls on its MCP server, empty for one that calls none: one more copy to find
-- rows by.
ALTER TABLE objects ADD COLUMN remote TEXT NOT NULL DEFAULT '';
UPDATE objects SET remote = coalesce(json_extract(CAST(manifest AS TEXT), '$.spec.mcp.tool'), name)
  WHERE kind = 'Tool' AND json_valid(CAST(manifest AS TEXT)) AND json_extract(CAST(manifest AS TEXT), '$.spec.mcp.server') IS NOT NULL
    AND coalesce(json_extract(CAST(manifest AS TEXT), '$.spec.mode'), 'mcp') = 'mcp';
CREATE INDEX objects_name ON objects (kind, name, namespace);
CREATE INDEX objects_remote ON objects (kind, remote) WHERE remote <> '';
