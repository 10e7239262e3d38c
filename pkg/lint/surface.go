package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

// surface is the part of the manifests that models and clients see, and its safeguards.
type surface struct {
	options  Options
	objects  []v1.Object // valid objects only
	tools    []*tool
	declared []*tool // those of tools that have a manifest
	servers  []*v1.MCPServer
	policies []*v1.ToolPolicy
	toolsets []*v1.Toolset
	// open holds the namespaces with a server whose tools are unknown.
	open map[string]bool
}

// tool is a tool of a manifest, or a tool of an MCP server in the lock.
type tool struct {
	head        *v1.Header // header of the Tool or the MCPServer
	name        string     // name in policies
	description string
	manifest    *v1.Tool // nil for a tool of a server
	subject     policy.Subject
	names       []string // that patterns can match
	chain       *policy.Chain
}

func newSurface(objects []v1.Object, o Options) *surface {
	s := &surface{options: o, open: map[string]bool{}}
	for _, obj := range objects {
		if obj.Head().Broken() {
			continue
		}
		s.objects = append(s.objects, obj)
		switch obj := obj.(type) {
		case *v1.Tool:
			server, remote := registry.Binding(obj)
			s.tools = append(s.tools, &tool{head: obj.Head(), name: obj.Metadata.Name, description: obj.Spec.Description, manifest: obj,
				subject: policy.Subject{Namespace: obj.Namespace(), Name: obj.Metadata.Name, Labels: obj.Metadata.Labels, Server: server, Remote: remote}})
		case *v1.MCPServer:
			s.servers = append(s.servers, obj)
		case *v1.ToolPolicy:
			s.policies = append(s.policies, obj)
		case *v1.Toolset:
			s.toolsets = append(s.toolsets, obj)
		}
	}
	s.declared = slices.Clone(s.tools)
	for _, server := range s.servers {
		known := o.Lock.Server(server.Key())
		if known == nil {
			s.open[server.Namespace()] = true
			continue
		}
		for i := range known.Tools {
			s.tools = append(s.tools, remoteTool(server, &known.Tools[i]))
		}
	}
	compiled := policy.Compile(s.policies)
	labels := map[v1.Key]map[string]string{}
	for _, server := range s.servers {
		labels[server.Key()] = server.Metadata.Labels
	}
	for _, t := range s.tools {
		t.subject.ServerLabels = labels[v1.Key{Kind: v1.KindMCPServer, Namespace: t.subject.Namespace, Name: t.subject.Server}]
		t.names, t.chain = t.subject.Names(), compiled.For(t.subject)
	}
	return s
}

func remoteTool(server *v1.MCPServer, known *lock.Tool) *tool {
	name := server.Metadata.Name + "__" + known.Name
	return &tool{head: server.Head(), name: name, description: known.Description,
		subject: policy.Subject{Namespace: server.Namespace(), Name: name, Labels: server.Metadata.Labels, Server: server.Metadata.Name, Remote: known.Name, Discovered: true, Bare: true}}
}

// properties returns the arguments that the tool's manifest describes.
func (t *tool) properties() map[string]json.RawMessage {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.manifest.Spec.InputSchema, &schema) // another check reports an invalid schema
	return schema.Properties
}

// at returns a finding at a field of the tool. The place of a server's tool is that of the server.
func (t *tool) at(path, format string, args ...any) Finding {
	message := fmt.Sprintf(format, args...)
	if t.manifest == nil {
		path, message = "", fmt.Sprintf("tool %s: %s", t.name, message)
	}
	return Finding{head: t.head, Path: path, Message: message}
}

// at returns a finding at a field of an object.
func at(h *v1.Header, path, format string, args ...any) Finding {
	return Finding{head: h, Path: path, Message: fmt.Sprintf(format, args...)}
}

// names finds names that clients or models see in a different form.
func names(s *surface, found func(Finding)) {
	var ids []wirename.ID
	var heads []*v1.Header
	for _, o := range s.objects {
		h := o.Head()
		if h.Kind != v1.KindTool && h.Kind != v1.KindPrompt {
			continue
		}
		if h.Kind == v1.KindTool {
			ids, heads = append(ids, wirename.ID{Namespace: h.Namespace(), Name: h.Metadata.Name, Full: h.Namespace() + "/" + h.Metadata.Name}), append(heads, h)
		} else if known := wirename.Names([]wirename.ID{{Namespace: h.Namespace(), Name: h.Metadata.Name, Full: h.Key().String()}}); known[0] != h.Metadata.Name {
			found(at(h, "/metadata/name", "clients know the prompt as %q", known[0]))
		}
	}
	for i, known := range wirename.Names(ids) {
		if known != ids[i].Name {
			found(at(heads[i], "/metadata/name", "clients and models know the tool as %q", known))
		}
	}
}

func missingOutputSchemas(s *surface, found func(Finding)) {
	for _, t := range s.declared {
		if t.manifest.Spec.OutputSchema == nil && t.manifest.Mode() != v1.ModeMCP {
			found(t.at("/spec", "it has no output_schema"))
		}
	}
}

func missingLocks(s *surface, found func(Finding)) {
	for _, server := range s.servers {
		if s.options.Lock.Server(server.Key()) == nil {
			found(at(server.Head(), "", "toolctl.lock does not contain its tools"))
		}
	}
}

func badIgnores(s *surface, found func(Finding)) {
	known := make([]string, 0, 16)
	for _, r := range Rules() {
		known = append(known, r.ID)
	}
	for _, o := range s.objects {
		h := o.Head()
		for key, reason := range h.Metadata.Annotations {
			id, ok := strings.CutPrefix(key, IgnorePrefix)
			switch path := v1.Pointer("/metadata/annotations", key); {
			case !ok:
			case !slices.Contains(known, id):
				f := at(h, path, "there is no rule %q", id)
				f.Message += v1.DidYouMean(id, known)
				found(f)
			case strings.TrimSpace(reason) == "":
				found(at(h, path, "it gives no reason, so %s is not ignored", id))
			}
		}
	}
}

// cost estimates the tokens of a tool definition.
func (t *tool) cost() int {
	schema := json.RawMessage("{}")
	if t.manifest != nil {
		schema = t.manifest.Spec.InputSchema
	}
	return (len(t.name) + len(t.description) + len(schema) + len(`{"name":"","description":"","parameters":},`)) / v1.BytesPerToken
}

// offered returns the tools that models see.
func (s *surface) offered() []*tool {
	return slices.DeleteFunc(slices.Clone(s.tools), func(t *tool) bool {
		return t.manifest != nil && !t.manifest.Offered() || t.chain.Blocked() != nil
	})
}

func (s *surface) tokens() Tokens {
	tools := s.offered()
	sum := Tokens{Estimate: fmt.Sprintf("%d bytes a token", v1.BytesPerToken), Tools: len(tools)}
	for _, t := range tools {
		sum.Total += t.cost()
	}
	return sum
}

func tooManyTokens(s *surface, found func(Finding)) {
	sum := s.tokens()
	if s.options.MaxTokens <= 0 || sum.Total <= s.options.MaxTokens {
		return
	}
	tools := s.offered()
	slices.SortStableFunc(tools, func(a, b *tool) int { return b.cost() - a.cost() })
	var largest []string
	for _, t := range tools[:min(3, len(tools))] {
		largest = append(largest, fmt.Sprintf("%s %d", t.name, t.cost()))
	}
	found(Finding{head: tools[0].head, Message: fmt.Sprintf("the tools cost about %d tokens (at %s), and %d are allowed; the largest: %s", sum.Total, sum.Estimate, s.options.MaxTokens, strings.Join(largest, ", "))})
}
