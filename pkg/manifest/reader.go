package manifest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// A reader reads one stream.
type reader struct {
	name string
	// named means that the user named this file, so that a document that is not a manifest is an error and is not
	// skipped.
	named bool
	opts  Options
	files *folder // the folder that manifests may read; nil if they may not read files

	objects    []v1.Object
	violations []v1.Violation
	skipped    []Skipped
	refs       []string // files that manifests name, as shown in messages
	alone      bool     // manifests name no files, so the result depends on this stream only
	overlay    bool     // the stream is a kustomization.yaml that changes its resources
	patches    []string // patch files of a kustomization.yaml
	documents  int
	variables  bool // the text may name environment variables
	anchors    map[*yaml.Node]int
	origins    map[*yaml.Node]string // source files of nodes from other files, see Tree
}

func (r *reader) read(data []byte) {
	r.variables = bytes.Contains(data, []byte("${")) || bytes.Contains(data, []byte("_env"))
	if strings.EqualFold(filepath.Ext(r.name), ".md") {
		r.markdown(data)
	} else {
		r.endStream(data, Documents(r.name, data, r.document))
	}
}

func (r *reader) end(f *v1.Violation) {
	if f != nil {
		r.violations = append(r.violations, *f)
	}
}

var policyKind = regexp.MustCompile(`(?m)^[\s{,]*"?kind"?[ \t]*:[ \t]*["']?ToolPolicy\b`)

// endStream ends a stream that a syntax error may have cut. A policy after the error cannot be read and might have
// refused calls. A broken policy without a name takes its place, so that programs that enforce policies can fail
// closed.
func (r *reader) endStream(data []byte, f *v1.Violation) {
	r.end(f)
	if f == nil {
		return
	}
	written := len(policyKind.FindAllIndex(data, r.opts.MaxDocuments))
	for _, o := range r.objects {
		if o.Head().Kind == v1.KindToolPolicy {
			written--
		}
	}
	if written > 0 {
		r.closed(f)
	}
}

// document reads one document of a stream and reports whether to continue.
func (r *reader) document(n *yaml.Node) bool {
	if r.documents++; r.documents > r.opts.MaxDocuments {
		r.end(&v1.Violation{Source: r.source(n), Expected: "fewer documents", Got: "more", Message: fmt.Sprintf("more than %d documents in one file: the rest is ignored", r.opts.MaxDocuments)})
		return false
	}
	r.anchors = map[*yaml.Node]int{}
	r.object(n, false)
	return true
}

func (r *reader) source(n *yaml.Node) v1.Source {
	return v1.Source{File: r.name, Line: n.Line, Column: n.Column}
}

// object reads one manifest, or the items of a List.
func (r *reader) object(n *yaml.Node, inList bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if tag, _, _ := resolvePlain(n.Value); n.Kind == yaml.ScalarNode && tag == tagNull && n.Style&quoted == 0 {
		return // an empty document
	}
	if n.Kind != yaml.MappingNode {
		r.stray(n, "expected an object with apiVersion and kind, got "+describe(n))
		return
	}
	_, api := member(n, "apiVersion")
	_, kind := member(n, "kind")
	near := nearOurs(api)
	ours := ourKind(kind)
	switch {
	case kind == "List" && (near || inList):
		if inList || api != "v1" && api != v1.APIVersion {
			r.wrongList(n, api, inList)
			return
		}
		r.list(n)
	case strings.HasPrefix(api, v1.PromptKitGroup+"/") && ours != v1.KindToolPolicy:
		if ours := promptKitKind(kind); ours != "" {
			r.add(&document{file: r.name, origins: r.origins, root: n, promptKit: true, anchors: r.anchors}, ours, nil)
			return
		}
		if kind == "" || v1.Nearest(kind, promptKitKinds) != "" {
			r.unknownKind(n, kind, promptKitKinds)
			return
		}
		r.leave(n)
		message := fmt.Sprintf("PromptKit kind %q is not read: skipped", clip.Bytes(kind, maxShown))
		if kind == "Arena" {
			message += fmt.Sprintf("; its MCP servers are read with 'toolctl import mcp-config %s'", r.name)
		}
		r.skip(n, v1.SeverityWarning, message)
	case api == v1.APIVersion && (ours == "" || ours != kind):
		r.unknownKind(n, kind, v1.Kinds())
	case ours == kind && ours != "" && (near || ours == v1.KindToolPolicy):
		r.add(&document{file: r.name, origins: r.origins, root: n, anchors: r.anchors}, kind, nil)
	case ours == v1.KindToolPolicy || ours != "" && near:
		r.unknownKind(n, kind, v1.Kinds())
	case kind == "" && ourKind(looseMember(n, "kind")) != "" && nearOurs(looseMember(n, "apiVersion")):
		r.unknownKind(n, "", v1.Kinds())
	case api == "" && kind == "" && isPromptPack(n):
		r.stray(n, fmt.Sprintf("a PromptPack: 'toolctl import promptpack %s' generates manifests from it", r.name))
	case api == "" && kind == "" && isMockResponses(n):
		r.stray(n, fmt.Sprintf("mock responses of PromptKit: 'toolctl test --mock-responses %s' reads them", r.name))
	case api == "" && kind == "":
		r.stray(n, "apiVersion and kind are missing")
	default:
		r.stray(n, fmt.Sprintf("apiVersion %q, kind %q", clip.Bytes(api, maxShown), clip.Bytes(kind, maxShown)))
	}
}

// The subcommands of `toolctl import` that read files.
const (
	ImportOpenAPI    = "openapi"
	ImportMCPConfig  = "mcp-config"
	ImportPromptPack = "promptpack"
)

// ImportFrom returns the Import constant for the first document of a file, or "" if it cannot be imported.
func ImportFrom(name string, data []byte) (from string) {
	Documents(name, data, func(n *yaml.Node) bool {
		from = importFrom(n)
		return false
	})
	return from
}

func importFrom(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for _, key := range []struct{ name, from string }{
		{"openapi", ImportOpenAPI}, {"swagger", ImportOpenAPI},
		{"mcpServers", ImportMCPConfig}, {"mcp_servers", ImportMCPConfig},
	} {
		if value, _ := member(n, key.name); value != nil {
			return key.from
		}
	}
	if isPromptPack(n) {
		return ImportPromptPack
	}
	return ""
}

// isPromptPack reports whether a document is a PromptPack (promptpack.org).
func isPromptPack(n *yaml.Node) bool {
	prompts, _ := member(n, "prompts")
	engine, _ := member(n, "template_engine")
	_, schema := member(n, "$schema")
	return prompts != nil && (engine != nil || strings.Contains(schema, "promptpack"))
}

// isMockResponses reports whether a document contains responses for PromptKit's mock model: a defaultResponse, or
// scenarios with turns.
func isMockResponses(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch value := n.Content[i+1]; n.Content[i].Value {
		case "defaultResponse":
			return true
		case "scenarios":
			for j := 1; j < len(value.Content); j += 2 {
				if turns, _ := member(value.Content[j], "turns"); turns != nil {
					return true
				}
			}
		}
	}
	return false
}

// ourKind returns the toolctl kind that was meant, in any letter case, or "" if there is no such kind.
func ourKind(kind string) string {
	for _, k := range v1.Kinds() {
		if strings.EqualFold(k, kind) {
			return k
		}
	}
	return ""
}

// nearOurs reports whether an apiVersion is that of toolctl or a misspelling: it has no group, or a similar group.
// All other groups belong to other programs.
func nearOurs(api string) bool {
	const own, typos = "toolctl.dev", 2
	group, _, ok := strings.Cut(strings.ToLower(strings.TrimSpace(api)), "/")
	return !ok || strings.Contains(group, "toolctl") || v1.Near(group, own, typos) || v1.Near(group, "toolctl", typos)
}

// looseMember returns the text of a scalar member whose name may be in the wrong case.
func looseMember(n *yaml.Node, name string) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; strings.EqualFold(k, name) {
			_, text := member(n, k)
			return text
		}
	}
	return ""
}

// wrongList refuses a List whose items would be skipped, because they may be policies.
func (r *reader) wrongList(n *yaml.Node, api string, inList bool) {
	f := v1.Violation{Path: "/apiVersion", Source: r.source(n.Content[0]), Expected: "v1 or " + v1.APIVersion, Got: fmt.Sprintf("%q", clip.Bytes(api, maxShown)),
		Message: fmt.Sprintf("a List of apiVersion %q is not supported: write v1 or %s", clip.Bytes(api, maxShown), v1.APIVersion)}
	if inList {
		f.Path, f.Expected, f.Got, f.Message = "/kind", "an object", "a List", "a List in a List is not supported: put its items into the outer one"
	}
	r.closed(&f)
	r.end(&f)
}

// stray records a document that is not a manifest: an error in a file named by the user, else a warning, because
// folders contain other files too.
func (r *reader) stray(n *yaml.Node, what string) {
	if from := importFrom(n); r.named && from == ImportOpenAPI {
		r.skip(n, "", "not a toolctl manifest, but an OpenAPI document: generate manifests from it with 'toolctl import openapi "+r.name+"'")
		return
	} else if r.named && from == ImportMCPConfig {
		r.skip(n, "", "not a toolctl manifest, but the configuration of an MCP client: generate manifests from it with 'toolctl import mcp-config "+r.name+"'")
		return
	}
	if r.named {
		r.skip(n, "", fmt.Sprintf("not a toolctl manifest: %s; expected apiVersion %s and one of the kinds %s", what, v1.APIVersion, strings.Join(v1.Kinds(), ", ")))
		return
	}
	if isOverlay(r.name) {
		r.kustomization(n)
	} else if !isForeign(n) {
		r.skip(n, v1.SeverityWarning, "not a toolctl manifest: skipped ("+what+")")
	}
	r.leave(n)
}

// leave records a skipped document that may have been a toolctl manifest before: a prune must keep the object applied
// from it.
func (r *reader) leave(n *yaml.Node) {
	s := Skipped{File: r.name}
	if _, kind := member(n, "kind"); n.Kind == yaml.MappingNode && kind != "" {
		s.Key.Kind, s.Key.Namespace = kind, v1.DefaultNamespace
		for i := 0; i+1 < len(n.Content); i += 2 {
			if meta := n.Content[i+1]; n.Content[i].Value == "metadata" && meta.Kind == yaml.MappingNode {
				_, s.Key.Name = member(meta, "name")
				if _, ns := member(meta, "namespace"); ns != "" {
					s.Key.Namespace = ns
				}
			}
		}
	}
	r.skipped = append(r.skipped, s)
}

func (r *reader) skip(n *yaml.Node, severity, msg string) {
	at := n
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		at = n.Content[0]
	}
	r.end(&v1.Violation{Source: r.source(at), Severity: severity, Expected: "a manifest", Got: "something else", Message: msg})
}

func nearKind(kind string, known []string) string {
	const slips = 2 // there are few kinds, and their names differ a lot
	for _, k := range known {
		if v1.Near(strings.ToLower(kind), strings.ToLower(k), slips) {
			return k
		}
	}
	return v1.Nearest(kind, known)
}

func (r *reader) unknownKind(n *yaml.Node, kind string, known []string) {
	f := v1.Violation{Path: "/kind", Expected: "one of " + strings.Join(known, ", "), Got: fmt.Sprintf("%q", clip.Bytes(kind, maxShown))}
	key, _ := member(n, "kind")
	if r.mayBePolicy(kind) || r.mayBePolicy(looseMember(n, "kind")) {
		defer r.closed(&f)
	}
	if key != nil {
		f.Source = r.source(key)
		f.Message = fmt.Sprintf("unknown kind %q", clip.Bytes(kind, maxShown))
		if near := nearKind(kind, known); near != "" {
			f.Message += fmt.Sprintf("; did you mean %q?", near)
		} else {
			f.Message += ": expected " + f.Expected
		}
		r.end(&f)
		return
	}
	f.Got, f.Message, f.Source = "nothing", `required field "kind" is missing`, r.source(n.Content[0])
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i]; strings.EqualFold(k.Value, "kind") {
			f.Path, f.Source = "/"+k.Value, r.source(k)
			f.Message = fmt.Sprintf("unknown field %q; did you mean %q?", k.Value, "kind")
		}
	}
	r.end(&f)
}

func (r *reader) mayBePolicy(kind string) bool {
	return v1.Nearest(kind, []string{v1.KindToolPolicy}) != ""
}

// closed adds a broken policy without a name in place of one that cannot be read.
func (r *reader) closed(f *v1.Violation) {
	p := v1.NewObject(v1.KindToolPolicy)
	p.Head().Source, p.Head().Violations = f.Source, []v1.Violation{*f}
	r.objects = append(r.objects, p)
}

func (r *reader) list(n *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value != "items" {
			continue
		}
		items := n.Content[i+1]
		if items.Kind == yaml.AliasNode {
			items = items.Alias
		}
		if items.Kind != yaml.SequenceNode {
			r.end(&v1.Violation{Path: "/items", Source: r.source(items), Expected: "array", Got: describe(items), Message: "expected array, got " + describe(items)})
			return
		}
		for _, c := range items.Content {
			r.object(c, true)
		}
		return
	}
}

// member returns the key and the text of a scalar member. The node need not be checked yet.
func member(n *yaml.Node, name string) (key *yaml.Node, text string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value == name {
			v := n.Content[i+1]
			if v.Kind == yaml.AliasNode {
				v = v.Alias
			}
			if v.Kind == yaml.ScalarNode {
				return k, v.Value
			}
			return k, ""
		}
	}
	return nil, ""
}

// dropStatus removes the status field that 'list -o yaml' adds.
func dropStatus(n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "status" && n.Content[i+1].Kind == yaml.MappingNode {
			foot := n.Content[i].FootComment
			n.Content = slices.Delete(n.Content, i, i+2)
			if i > 0 && n.Content[i-2].FootComment == "" {
				n.Content[i-2].FootComment = foot // the comment at the end of the manifest
			}
			return
		}
	}
}

// add decodes and checks one object. A non-nil finish completes the object before the check.
func (r *reader) add(d *document, kind string, finish func(v1.Object)) {
	obj := v1.NewObject(kind)
	h := obj.Head()
	h.APIVersion = "" // the value comes from the text
	d.extensions = r.opts.Extensions
	d.normalize(d.root)
	dropStatus(d.root)
	if !d.full {
		d.decode(d.root, reflect.ValueOf(obj).Elem())
	}
	h.Kind = kind
	if d.promptKit {
		if h.Metadata.Name == "" {
			h.Metadata.Name = d.promptKitName()
		}
		d.adaptPromptKit(obj)
	}
	if finish != nil {
		finish(obj)
	}
	if !d.full { // otherwise most of the object is missing
		violations := obj.Validate()
		if t, ok := obj.(*v1.Tool); ok {
			if unknown, bad := t.UnknownMode(r.opts.Extensions); bad {
				violations = append(violations, unknown)
			}
			d.extended = d.extended || t.Spec.Mode != "" && !slices.Contains(v1.Modes(), t.Spec.Mode) // the mode's block may be missing
		}
		d.addValidated(violations, func(f *v1.Violation) bool {
			switch {
			case d.promptKit:
				return promptKitViolation(obj, f)
			case d.markdown && strings.HasPrefix(f.Path, "/spec/tools/"):
				f.Severity = v1.SeverityWarning // tools of another agent, such as Bash(git:*)
			case d.markdown && f.Path == "/spec/template":
				f.Severity = v1.SeverityWarning // front matter alone, for a model that gets its text in another way
			}
			return true
		})
	}
	if !d.markdown {
		d.readElse(obj)
	}
	if r.files != nil {
		r.readFragments(d, obj)
		r.readFiles(d, obj)
	}
	h.Source = d.start()
	if r.opts.Fields || d.extended || kind == v1.KindToolPolicy || kind == v1.KindScenario {
		h.Fields = d.places(nil)
	} else if r.variables && (kind == v1.KindTool || kind == v1.KindMCPServer) {
		h.Fields = d.places(readsVariable)
	}
	if r.opts.Layout && !d.markdown && !d.full {
		h.Layout = d.layout(reflect.TypeOf(obj))
	}
	h.Violations = d.finish()
	r.violations = append(r.violations, h.Violations...)
	if h.Metadata.Name != "" || kind == v1.KindToolPolicy { // a policy without a name still shows that there is a policy
		r.objects = append(r.objects, obj)
	}
}

// readElse warns about fields that PromptKit reads differently: a spec.name that differs from metadata.name, and the
// input and output of a command.
func (d *document) readElse(obj v1.Object) {
	name := ""
	switch o := obj.(type) {
	case *v1.Tool:
		name = o.Spec.Name
	case *v1.Prompt:
		name = o.Spec.Name
	}
	if t, ok := obj.(*v1.Tool); ok && d.promptKit && t.Spec.Exec != nil {
		d.violation(d.root, v1.Violation{Severity: v1.SeverityWarning, Path: "/spec/exec", Source: d.place("/spec/exec"), Expected: "a command that reads its arguments", Got: `one that reads {"args": …}`,
			Message: `the command reads the arguments on stdin without {"args": …} around them, and its whole output is the result`})
	}
	if meta := obj.Head().Metadata.Name; name != "" && name != meta {
		d.violation(d.root, v1.Violation{Severity: v1.SeverityWarning, Path: "/spec/name", Source: d.place("/spec/name"), Expected: "metadata.name", Got: fmt.Sprintf("%q", clip.Bytes(name, maxShown)),
			Message: fmt.Sprintf("spec.name %q is ignored: the name is metadata.name", clip.Bytes(name, maxShown))})
	}
}

// conflicts records a violation at each object that shares its kind, namespace and name with another object, and
// returns these violations. It replaces such an object by a copy, because the object may belong to a set that was
// loaded before.
func conflicts(objects []v1.Object) []v1.Violation {
	var fs []v1.Violation
	first := make(map[v1.Key]int, len(objects))
	record := func(at, other int) {
		whole := reflect.New(reflect.TypeOf(objects[at]).Elem())
		whole.Elem().Set(reflect.ValueOf(objects[at]).Elem())
		objects[at] = whole.Interface().(v1.Object)
		h := objects[at].Head()
		f := v1.Violation{Path: "/metadata/name", Source: h.Source, Expected: "a unique name", Got: fmt.Sprintf("%q", h.Metadata.Name),
			Message: fmt.Sprintf("%s is declared twice: here and at %s", h.Key(), objects[other].Head().Source)}
		h.Violations = append(slices.Clip(h.Violations), f)
		fs = append(fs, f)
	}
	told := map[v1.Key]bool{}
	for i, o := range objects {
		k := o.Head().Key()
		if k.Name == "" {
			continue // two policies without a name may be the same policy
		}
		other, twice := first[k]
		if !twice {
			first[k] = i
			continue
		}
		if !told[k] {
			told[k] = true
			record(other, i)
		}
		record(i, other)
	}
	return fs
}
