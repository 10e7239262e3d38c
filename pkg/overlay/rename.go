package overlay

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// rename applies the namespace, prefix and suffix to the objects, and renames every reference to
// them.
func (l *layer) rename() {
	k := &l.spec
	if k.Namespace == "" && k.NamePrefix == "" && k.NameSuffix == "" {
		l.follow()
		return
	}
	for _, o := range l.objects {
		meta := member(o.node, "metadata")
		if k.Namespace != "" && text(meta, "namespace") != k.Namespace {
			ns := textNode(k.Namespace)
			at := l.place("/namespace")
			ns.Line, ns.Column = at.Line, at.Column
			l.trees[ns] = l.file
			set(meta, "namespace", ns)
			l.keyFrom(meta, "namespace")
		}
		if k.NamePrefix+k.NameSuffix != "" && o.kind() != kindConfigMap {
			name := child(meta, "name")
			name.Value = k.NamePrefix + name.Value + k.NameSuffix
		}
		o.renamed()
	}
	l.duplicates()
	l.follow()
}

// follow updates the references to renamed objects of the folder. A folder is complete once it is
// built, so its references use the names before this folder's change.
func (l *layer) follow() {
	r := &renames{prefix: l.spec.NamePrefix, now: map[string]ident{}, servers: map[string]bool{}}
	for _, o := range l.objects {
		last := o.id()
		for _, id := range o.ids[o.followed:] {
			r.now[key(o.kind(), id)] = last
		}
		if o.kind() == v1.KindMCPServer {
			r.servers[o.ids[o.followed].namespace] = true
		}
	}
	for _, o := range l.objects {
		r.namespace = o.ids[o.followed].namespace
		for _, ref := range references {
			if ref.kind == o.kind() || ref.kind == "" {
				r.walk(o.node, strings.Split(ref.path, "/"), ref.to)
			}
		}
	}
	for _, o := range l.objects {
		o.followed = len(o.ids) - 1
	}
}

func key(kind string, id ident) string { return kind + "\x00" + id.namespace + "\x00" + id.name }

// renames maps the names of objects before a folder to their current names.
type renames struct {
	prefix    string
	namespace string           // namespace of the referring object before the folder
	now       map[string]ident // by key
	servers   map[string]bool  // namespaces that contained a server before the folder
}

// walk follows a path and renames the references there: "*" stands for every item of a list or
// member of an object, "#" for every key.
func (r *renames) walk(n *yaml.Node, path []string, to refKind) {
	if n == nil {
		return
	}
	if len(path) == 0 {
		r.value(n, to)
		return
	}
	switch {
	case path[0] == "#" && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			n.Content[i].Value = r.named(n.Content[i].Value, to)
		}
	case path[0] == "*" && n.Kind == yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			r.walk(n.Content[i], path[1:], to)
		}
	case path[0] == "*" && n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			r.walk(item, path[1:], to)
		}
	case n.Kind == yaml.MappingNode:
		r.walk(child(n, path[0]), path[1:], to)
	}
}

func (r *renames) value(n *yaml.Node, to refKind) {
	switch {
	case to == toRules:
		for _, path := range rules {
			r.walk(n, strings.Split(path, "/"), toPatterns)
		}
	case to == toPatterns && n.Kind == yaml.SequenceNode:
		r.patterns(n, toTool)
	case to == toServers && n.Kind == yaml.SequenceNode:
		r.patterns(n, toServer)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		n.Value = r.named(n.Value, to)
	}
}

// named returns the current name of an object. A name that is not in the folder stays unchanged.
func (r *renames) named(name string, to refKind) string {
	switch to {
	case toServer:
		return r.object(v1.KindMCPServer, name)
	case toPolicy:
		return r.object(v1.KindToolPolicy, name)
	case toPrompt:
		return r.object(v1.KindPrompt, name)
	case toToolset:
		return r.object(v1.KindToolset, name)
	}
	return r.tool(name)
}

// object returns the current name of an object of a kind, with its namespace if the old name had
// one.
func (r *renames) object(kind, name string) string {
	ns, bare, full := strings.Cut(name, "/")
	if !full {
		ns, bare = r.namespace, name
	}
	id, ok := r.now[key(kind, ident{ns, bare})]
	switch {
	case !ok:
		return name
	case full:
		return id.namespace + "/" + id.name
	}
	return id.name
}

// tool returns the current name of a tool in the same lookup form: name, namespace/name,
// server__tool, server.tool, mcp__server__tool. A prompt can be called as a tool.
func (r *renames) tool(name string) string {
	for _, kind := range []string{v1.KindTool, v1.KindPrompt} {
		if now := r.object(kind, name); now != name || r.known(kind, name) {
			return now
		}
	}
	before, rest := "", name
	if ns, bare, ok := strings.Cut(name, "/"); ok {
		before, rest = ns+"/", bare
	}
	mcp := ""
	if short, ok := strings.CutPrefix(rest, v1.MCPPrefix); ok {
		mcp, rest = v1.MCPPrefix, short
	}
	for _, sep := range []string{"__", "."} {
		server, remote, ok := strings.Cut(rest, sep)
		if !ok || !r.known(v1.KindMCPServer, before+server) {
			continue
		}
		now := r.object(v1.KindMCPServer, before+server)
		if ns, bare, ok := strings.Cut(now, "/"); ok {
			return ns + "/" + mcp + bare + sep + remote
		}
		return mcp + now + sep + remote
	}
	return name
}

func (r *renames) known(kind, name string) bool {
	ns, bare, full := strings.Cut(name, "/")
	if !full {
		ns, bare = r.namespace, name
	}
	_, ok := r.now[key(kind, ident{ns, bare})]
	return ok
}

// patterns renames the entries of a list of names and patterns. A pattern that matches objects of
// the folder gets the prefix. If it may also match tools of a server, the old pattern is kept as
// well, because those tools are not renamed.
func (r *renames) patterns(list *yaml.Node, to refKind) {
	var out []*yaml.Node
	for _, n := range list.Content {
		stem, star := strings.CutSuffix(n.Value, "*")
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || star && stem == "" {
			out = append(out, n)
			continue
		}
		if !star {
			n.Value = r.named(n.Value, to)
			out = append(out, n)
			continue
		}
		now := r.pattern(stem, to)
		if now == stem {
			out = append(out, n)
			continue
		}
		ns, bare, full := strings.Cut(stem, "/")
		if !full {
			ns, bare = r.namespace, stem
		}
		if to == toTool && r.servers[ns] && !strings.Contains(bare, "__") && !strings.HasPrefix(v1.MCPPrefix, bare) {
			kept := *n
			out = append(out, &kept)
		}
		n.Value = now + "*"
		out = append(out, n)
	}
	list.Content = out
}

// pattern returns the current stem of a pattern.
func (r *renames) pattern(stem string, to refKind) string {
	ns, bare, full := strings.Cut(stem, "/")
	if !full {
		ns, bare = r.namespace, stem
	}
	mcp := ""
	if short, ok := strings.CutPrefix(bare, v1.MCPPrefix); ok {
		mcp, bare = v1.MCPPrefix, short
	}
	write := func(now string, id ident) string {
		if full {
			return id.namespace + "/" + mcp + now
		}
		return mcp + now
	}
	if server, remote, ok := strings.Cut(bare, "__"); ok {
		if id, ok := r.now[key(v1.KindMCPServer, ident{ns, server})]; ok {
			return write(id.name+"__"+remote, id)
		}
	}
	for k, id := range r.now {
		parts := strings.Split(k, "\x00")
		kind, was := parts[0], ident{parts[1], parts[2]}
		if was.namespace != ns || was == id {
			continue
		}
		if (kind == v1.KindMCPServer || to == toTool && (kind == v1.KindTool || kind == v1.KindPrompt)) && strings.HasPrefix(was.name, bare) {
			return write(r.prefix+bare, id)
		}
	}
	return stem
}

// label sets labels and annotations.
func (l *layer) label() {
	sets := []map[string]string{l.spec.CommonLabels}
	for _, s := range l.spec.Labels {
		sets = append(sets, s.Pairs)
	}
	for _, o := range l.objects {
		for _, pairs := range sets {
			l.put(o.node, "labels", pairs)
		}
		l.put(o.node, "annotations", l.spec.CommonAnnotations)
	}
}

func (l *layer) put(n *yaml.Node, field string, pairs map[string]string) {
	if len(pairs) == 0 {
		return
	}
	m := member(member(n, "metadata"), field)
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		v := textNode(pairs[k])
		l.trees[v] = l.file
		set(m, k, v)
		l.keyFrom(m, k)
	}
}
