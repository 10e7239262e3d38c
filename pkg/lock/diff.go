package lock

import (
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Values of [Drift.What]. The others are the parts of a tool's definition: title, description, annotations,
// input_schema and output_schema.
const (
	Added           = "added"
	Removed         = "removed"
	ServerName      = "server_name"
	ServerVersion   = "server_version"
	ProtocolVersion = "protocol_version"
)

// Drift is one difference between two locks.
type Drift struct {
	// Server is the MCPServer.
	Server v1.Key `json:"-"`
	// Tool is the tool's name on its server; "" for a difference of the server itself.
	Tool string `json:"tool,omitempty"`
	// What changed.
	What string `json:"what"`
	// Old and New are the texts or hashes before and after; "" for none.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// String describes the difference on one line, without the texts.
func (d Drift) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s: ", d.Server.Namespace, d.Server.Name)
	if d.Tool != "" {
		fmt.Fprintf(&b, "tool %q: ", d.Tool)
	}
	switch {
	case d.What == Added || d.What == Removed:
		b.WriteString(d.What)
	case d.Tool == "":
		fmt.Fprintf(&b, "%s changed from %q to %q", d.What, d.Old, d.New)
	case d.Old == "":
		b.WriteString(d.What + " added")
	case d.New == "":
		b.WriteString(d.What + " removed")
	default:
		b.WriteString(d.What + " changed")
	}
	return b.String()
}

// Drift returns the differences between the lock and the servers in now. It ignores servers of the lock that are not
// in now.
func (f File) Drift(now []Server) []Drift {
	var part File
	for _, s := range now {
		if have := f.Server(s.Key); have != nil {
			part.Servers = append(part.Servers, *have)
		}
	}
	return Diff(part, File{Servers: now})
}

// Diff returns the differences from old to now, in the order of servers, tools and parts.
func Diff(old, now File) []Drift {
	old.Servers, now.Servers = clone(old.Servers), clone(now.Servers)
	old.sort()
	now.sort()
	var out []Drift
	merge(old.Servers, now.Servers, func(s *Server) string { return s.Key.Namespace + "\x00" + s.Key.Name }, func(a, b *Server) {
		switch {
		case b == nil:
			out = append(out, Drift{Server: a.Key, What: Removed})
		case a == nil:
			out = append(out, Drift{Server: b.Key, What: Added})
		default:
			out = append(out, diffServer(a, b)...)
		}
	})
	return out
}

func clone(servers []Server) []Server {
	out := make([]Server, len(servers))
	for i, s := range servers {
		s.Tools = append([]Tool(nil), s.Tools...)
		out[i] = s
	}
	return out
}

func diffServer(a, b *Server) []Drift {
	var out []Drift
	for _, p := range [...]struct{ what, old, now string }{
		{ServerName, a.Name, b.Name}, {ServerVersion, a.Version, b.Version}, {ProtocolVersion, a.ProtocolVersion, b.ProtocolVersion},
	} {
		if p.old != p.now {
			out = append(out, Drift{Server: a.Key, What: p.what, Old: p.old, New: p.now})
		}
	}
	merge(a.Tools, b.Tools, func(t *Tool) string { return t.Name }, func(old, now *Tool) {
		switch {
		case now == nil:
			out = append(out, Drift{Server: a.Key, Tool: old.Name, What: Removed, Old: old.Description})
		case old == nil:
			out = append(out, Drift{Server: a.Key, Tool: now.Name, What: Added, New: now.Description})
		default:
			out = append(out, diffTool(a.Key, old, now)...)
		}
	})
	return out
}

func diffTool(server v1.Key, old, now *Tool) []Drift {
	var out []Drift
	a, b := old.Hashes.parts(), now.Hashes.parts()
	for i := range a {
		if a[i].hash == b[i].hash {
			continue
		}
		d := Drift{Server: server, Tool: now.Name, What: a[i].name, Old: a[i].hash, New: b[i].hash}
		switch d.What {
		case "title":
			d.Old, d.New = old.Title, now.Title
		case "description":
			d.Old, d.New = old.Description, now.Description
		case "annotations":
			d.Old, d.New = old.Annotations, now.Annotations
		}
		out = append(out, d)
	}
	return out
}

// merge walks two sorted lists and yields pairs with the same name. An item that one side does not have
// is nil.
func merge[T any](a, b []T, name func(*T) string, yield func(a, b *T)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && name(&a[0]) < name(&b[0]):
			yield(&a[0], nil)
			a = a[1:]
		case len(a) == 0 || name(&b[0]) < name(&a[0]):
			yield(nil, &b[0])
			b = b[1:]
		default:
			yield(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
}
