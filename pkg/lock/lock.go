package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Name is the usual name of the file; it stands beside the manifests.
const Name = "toolctl.lock"

// File is a lock file.
type File struct {
	// Servers are sorted by namespace and name.
	Servers []Server
}

// Server is what a lock holds of one MCPServer.
type Server struct {
	// Key identifies the MCPServer manifest.
	Key v1.Key
	// Name and Version are what the server says of itself (MCP specification, Implementation).
	Name, Version string
	// ProtocolVersion is the version of MCP that was spoken. Example: 2025-11-25.
	ProtocolVersion string
	// Tools are sorted by name.
	Tools []Tool
}

// Definition is a tool as its server gave it, before any override of a manifest.
type Definition struct {
	Name, Title, Description               string
	Annotations, InputSchema, OutputSchema json.RawMessage
}

// Tool is what a lock holds of one tool.
type Tool struct {
	// Name is the tool's name on its server.
	Name string
	// Title, Description and Annotations are the text that is reviewed.
	Title, Description string
	Annotations        json.RawMessage
	// Arguments names the properties of the input schema, "?" after those that are
	// not required. They are for the reader and take no part in comparisons.
	Arguments []string
	// Hashes are "sha256:" and hex digits; the hash of an absent part is "".
	Hashes Hashes
}

// Hashes are those of the parts of a tool's definition.
type Hashes struct {
	Name         string `yaml:"name"`
	Title        string `yaml:"title"`
	Description  string `yaml:"description"`
	Annotations  string `yaml:"annotations"`
	InputSchema  string `yaml:"input_schema"`
	OutputSchema string `yaml:"output_schema"`
}

// parts lists the parts in the order in which they are written and compared.
func (h *Hashes) parts() []struct{ name, hash string } {
	return []struct{ name, hash string }{
		{"name", h.Name},
		{"title", h.Title},
		{"description", h.Description},
		{"annotations", h.Annotations},
		{"input_schema", h.InputSchema},
		{"output_schema", h.OutputSchema},
	}
}

// Of locks the definition of a tool.
func Of(d Definition) Tool {
	t := Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, Annotations: compact(d.Annotations), Arguments: arguments(d.InputSchema),
		Hashes: Hashes{
			Name: hashText(d.Name), Title: hashText(d.Title), Description: hashText(d.Description),
			Annotations: hashOf(d.Annotations), InputSchema: hashOf(d.InputSchema), OutputSchema: hashOf(d.OutputSchema),
		},
	}
	return t
}

// compact returns the canonical form of annotations, nil for absent ones.
func compact(raw json.RawMessage) json.RawMessage {
	if hashOf(raw) == "" {
		return nil
	}
	if c, err := canonicalize(raw); err == nil {
		return c
	}
	return nil
}

// most properties that a lock names; the hash covers all.
const maxArguments = 100

func arguments(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil // the hash says all that can be said of it
	}
	var args []string
	for name := range s.Properties {
		if !slices.Contains(s.Required, name) {
			name += "?"
		}
		args = append(args, name)
	}
	slices.Sort(args)
	return args[:min(len(args), maxArguments)]
}

// Server returns what the lock holds of a server; nil when it holds nothing.
func (f *File) Server(key v1.Key) *Server {
	for i := range f.Servers {
		if f.Servers[i].Key == key {
			return &f.Servers[i]
		}
	}
	return nil
}

// Put replaces what the lock holds of a server, or adds it.
func (f *File) Put(s Server) {
	if have := f.Server(s.Key); have != nil {
		*have = s
	} else {
		f.Servers = append(f.Servers, s)
	}
	f.sort()
}

// Remove takes a server out of the lock and reports whether it was there.
func (f *File) Remove(key v1.Key) bool {
	n := len(f.Servers)
	f.Servers = slices.DeleteFunc(f.Servers, func(s Server) bool { return s.Key == key })
	return len(f.Servers) < n
}

func (f *File) sort() {
	slices.SortFunc(f.Servers, func(a, b Server) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	for i := range f.Servers {
		slices.SortStableFunc(f.Servers[i].Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	}
}

// Tool returns a tool of the server; nil when the lock does not have it.
func (s *Server) Tool(name string) *Tool {
	for i := range s.Tools {
		if s.Tools[i].Name == name {
			return &s.Tools[i]
		}
	}
	return nil
}

// Check compares one tool with the lock, as a call does: nil when it is what was
// locked. The error says what differs; the servers' own names and versions take
// no part.
func (f *File) Check(server v1.Key, d Definition) error {
	s := f.Server(server)
	if s == nil {
		return fmt.Errorf("server %q is not in %s: look at its tools, then run 'toolctl lock --update %s'", server.Name, Name, server.Name)
	}
	old := s.Tool(d.Name)
	if old == nil {
		return fmt.Errorf("it is not in %s: look at it, then run 'toolctl lock --update %s'", Name, server.Name)
	}
	now := Of(d)
	var what []string
	for _, drift := range diffTool(server, old, &now) {
		what = append(what, drift.What)
	}
	if what == nil {
		return nil
	}
	return fmt.Errorf("its %s differs from %s: see 'toolctl lock --check', then run 'toolctl lock --update %s' to accept it", strings.Join(what, ", "), Name, server.Name)
}
