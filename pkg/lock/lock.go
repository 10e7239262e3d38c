package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Name is the usual name of the lock file, which is next to the manifests.
const Name = "toolctl.lock"

// File is a lock file.
type File struct {
	// Servers are sorted by namespace and name.
	Servers []Server
}

// Server is one MCPServer in a lock.
type Server struct {
	// Key identifies the MCPServer manifest.
	Key v1.Key
	// Name and Version are those that the server reports of itself (MCP specification, Implementation).
	Name, Version string
	// ProtocolVersion is the version of MCP that the session used. Example: 2025-11-25.
	ProtocolVersion string
	// Tools are sorted by name.
	Tools []Tool
}

// Definition is a tool as its server defines it, before any override of a manifest.
type Definition struct {
	Name, Title, Description               string
	Annotations, InputSchema, OutputSchema json.RawMessage
}

// Tool is one tool in a lock.
type Tool struct {
	// Name is the tool's name on its server.
	Name string `json:"name"`
	// Title, Description and Annotations, which are canonical JSON, are the text to review.
	Title       string `json:"title"`
	Description string `json:"description"`
	Annotations string `json:"annotations"`
	// Arguments names the properties of the input schema, with "?" after those that are
	// not required. They are for the reader, and comparisons ignore them.
	Arguments []string `json:"arguments"`
	// Hashes are "sha256:" and hex digits; the hash of an absent part is "".
	Hashes Hashes `json:"hashes"`
}

// Hashes are the hashes of the parts of a tool's definition.
type Hashes struct {
	Name         string `json:"name"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	Annotations  string `json:"annotations"`
	InputSchema  string `json:"input_schema"`
	OutputSchema string `json:"output_schema"`
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

// Of returns the entry of a lock for the definition of a tool.
func Of(d Definition) Tool {
	annotations, hash := "", hashOf(d.Annotations)
	if canonical, err := canonicalize(d.Annotations); hash != "" && err == nil {
		annotations = string(canonical)
	}
	return Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, Annotations: annotations, Arguments: arguments(d.InputSchema),
		Hashes: Hashes{
			Name: hashText(d.Name), Title: hashText(d.Title), Description: hashText(d.Description),
			Annotations: hash, InputSchema: hashOf(d.InputSchema), OutputSchema: hashOf(d.OutputSchema),
		},
	}
}

// maxArguments is the maximum number of properties that a lock names; the hash covers all properties.
const maxArguments = 100

func arguments(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil // only the hash describes such a schema
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

// Server returns a server of the lock, or nil if the lock does not have it.
func (f *File) Server(key v1.Key) *Server {
	for i := range f.Servers {
		if f.Servers[i].Key == key {
			return &f.Servers[i]
		}
	}
	return nil
}

// Put adds a server to the lock, or replaces it.
func (f *File) Put(s Server) {
	if have := f.Server(s.Key); have != nil {
		*have = s
	} else {
		f.Servers = append(f.Servers, s)
	}
	f.sort()
}

// Remove removes a server from the lock and reports whether the lock had it.
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

// Tool returns a tool of the server, or nil if the lock does not have it.
func (s *Server) Tool(name string) *Tool {
	for i := range s.Tools {
		if s.Tools[i].Name == name {
			return &s.Tools[i]
		}
	}
	return nil
}

// Check returns an error that names the parts of a tool that differ from the lock. It ignores
// the names and versions that servers give themselves.
func (f *File) Check(server v1.Key, d Definition) error {
	s := f.Server(server)
	if s == nil {
		return fmt.Errorf("server %q is not in %s: review its tools, then run 'toolctl lock --update %s'", server.Name, Name, server.Name)
	}
	old := s.Tool(d.Name)
	if old == nil {
		return fmt.Errorf("it is not in %s: review it, then run 'toolctl lock --update %s'", Name, server.Name)
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
