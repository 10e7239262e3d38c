package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// maxBytes is the maximum size of a configuration file. The reader of comments recurses as deep as the file nests.
const maxBytes = 1 << 20

// Read converts a configuration file to manifests, sorted by name, and notes for the user who imports it. It also
// returns the notes with an error. The error lists every reason why a server or the file cannot be read.
func Read(name string, data []byte) (servers []v1.Object, notes []string, err error) {
	if len(data) > maxBytes {
		return nil, nil, fmt.Errorf("%s: over %d bytes", name, maxBytes)
	}
	raw, err := toJSON(name, data)
	if err != nil {
		return nil, nil, err
	}
	root := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, nil, fmt.Errorf("%s: expected an object, got %s", name, v1.JSONKind(raw))
	}
	notes = staysOut(name, data, root)
	field, entries, err := find(root)
	if err != nil {
		return nil, notes, fmt.Errorf("%s: %w", name, err)
	}
	c := &converter{notes: notes, inputs: inputsOf(root), values: map[string]string{}, names: map[string]string{}}
	var errs []error
	for _, e := range entries {
		s, err := c.convert(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s.%s: %w", name, field, e.name, err))
		}
		if s != nil {
			servers = append(servers, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, c.notes, err
	}
	slices.SortFunc(servers, func(a, b v1.Object) int { return strings.Compare(a.Head().Metadata.Name, b.Head().Metadata.Name) })
	return servers, c.notes, nil
}

// toJSON reads JSON with comments, or YAML.
func toJSON(name string, data []byte) (json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	ext := strings.ToLower(filepath.Ext(name))
	start := bytes.TrimSpace(data)
	if ext == ".json" || ext == ".jsonc" || ext != ".yaml" && ext != ".yml" && (bytes.HasPrefix(start, []byte("{")) || bytes.HasPrefix(start, []byte("//")) || bytes.HasPrefix(start, []byte("/*"))) {
		std, err := hujson.Standardize(bytes.Clone(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return std, nil
	}
	raw, violations := manifest.ToJSON(name, data)
	var errs []error
	for _, f := range v1.Errors(violations) {
		errs = append(errs, errors.New(f.String()))
	}
	return raw, errors.Join(errs...)
}

// entry is one server in a file.
type entry struct {
	name string
	raw  json.RawMessage
}

// find returns the servers of a file and the field that holds them.
func find(root map[string]json.RawMessage) (string, []entry, error) {
	for _, path := range []string{"mcpServers", "mcp_servers", "spec.mcp_servers", "servers", "mcp.servers"} {
		raw := lookup(root, path)
		if raw == nil {
			continue
		}
		entries, err := list(raw)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(entries) == 0 {
			return "", nil, fmt.Errorf("%s contains no server", path)
		}
		return path, entries, nil
	}
	return "", nil, errors.New("no servers: expected mcpServers, mcp_servers, spec.mcp_servers, servers or mcp.servers at the top")
}

func lookup(root map[string]json.RawMessage, path string) json.RawMessage {
	first, rest, deeper := strings.Cut(path, ".")
	raw, ok := root[first]
	if !ok || v1.JSONKind(raw) == "null" || !deeper {
		return raw
	}
	var child map[string]json.RawMessage
	if json.Unmarshal(raw, &child) != nil {
		return nil
	}
	return lookup(child, rest)
}

// list reads a map of servers, or a list of servers with names.
func list(raw json.RawMessage) ([]entry, error) {
	var entries []entry
	switch kind := v1.JSONKind(raw); kind {
	case "object":
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		for name, raw := range m {
			entries = append(entries, entry{name, raw})
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	case "array":
		var l []json.RawMessage
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, err
		}
		for i, raw := range l {
			var named struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(raw, &named); err != nil || named.Name == "" {
				return nil, fmt.Errorf("server %d has no name", i+1)
			}
			entries = append(entries, entry{named.Name, raw})
		}
	default:
		return nil, fmt.Errorf("expected an object or a list, got %s", kind)
	}
	return entries, nil
}

// inputsOf reads the inputs of VS Code, which are values that it asks the user for.
func inputsOf(root map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for _, path := range []string{"inputs", "mcp.inputs"} {
		var inputs []struct {
			ID          string `json:"id"`
			Description string `json:"description"`
		}
		if raw := lookup(root, path); raw != nil && json.Unmarshal(raw, &inputs) == nil {
			for _, in := range inputs {
				out[in.ID] = in.Description
			}
		}
	}
	return out
}
