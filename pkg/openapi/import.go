package openapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/openapi/internal/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// Options are the settings of an import. The zero value imports every operation.
//
// Options with a JSON name are saved in the [importer.LockFile] of a folder, so that the next import into the
// folder can reuse them: see [importer.LastOptions].
type Options struct {
	// Filter selects operations.
	Filter Filter `json:"-"`
	// Server replaces the servers of the document. Example: https://api.example.com/v1.
	Server string `json:"server,omitempty"`
	// Namespace is the metadata.namespace of the manifests. Default: none.
	Namespace string `json:"namespace,omitempty"`
	// Prefix is put before each name. Example: github-.
	Prefix string `json:"prefix,omitempty"`
	// EnvPrefix is the prefix of environment variable names. Default: the title of the API without words such as
	// "API". Example: GITHUB.
	EnvPrefix string `json:"env_prefix,omitempty"`
	// AllowPrivateNetwork is written into the tools as spec.http.allow_private_network. Default: false.
	AllowPrivateNetwork bool `json:"allow_private_network,omitempty"`
}

// maxSchemaBytes is the maximum size of each input and each output schema. In a larger schema, the definitions farthest
// from the root are replaced by a schema that accepts anything.
const maxSchemaBytes = 128 << 10

// A Set is the result of importing a document.
type Set struct {
	importer.Result
	// Tools are the manifests, sorted by name.
	Tools []Tool
	// Operations is the number of operations in the document, including those that the filter left out.
	Operations int
	// Tags are the tags of all operations, sorted.
	Tags []string
}

// A Tool is the manifest of one operation.
type Tool struct {
	// Operation is method and path. Example: GET /pets/{petId}.
	Operation string
	// Manifest is valid according to its Validate method.
	Manifest *v1.Tool
}

var isEnvPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`) })

// maxOutput is the maximum size of all manifests together, in bytes.
const maxOutput = 512 << 20

// Import makes manifests from the operations that the filter selects. An operation that cannot be imported is skipped
// with a reason. For a document without a usable server, the error asks for one.
func (d *Document) Import(ctx context.Context, o Options) (*Set, error) {
	given := o
	if !validPrefix(o.Prefix) {
		return nil, fmt.Errorf("prefix %q: expected lower-case letters, digits, '-' and '_', starting with a letter or digit, at most 32 long", o.Prefix)
	}
	if o.Server != "" {
		u, err := url.Parse(o.Server)
		if err != nil {
			return nil, fmt.Errorf("server %q: not a URL", o.Server)
		}
		if o.Server, err = checkServer(u); err != nil {
			return nil, err
		}
	}
	if o.EnvPrefix == "" {
		o.EnvPrefix = envName(d.Title)
	} else if !isEnvPrefix().MatchString(o.EnvPrefix) {
		return nil, fmt.Errorf("environment prefix %q: expected capital letters, digits and '_', starting with a letter", o.EnvPrefix)
	}
	d.outline.left = maxOutline
	d.nameOperations(o.Prefix)
	s := &Set{Result: importer.Result{Source: d.Source, Title: d.Title, Version: d.Version, Origins: map[string]bool{}, Options: given,
		Annotations: []string{AnnotationSource, AnnotationOperation, AnnotationVersion, AnnotationHash}}}
	items, compiled := map[string]*openapi3.PathItem{}, validate.NewCache(validate.Options{})
	env := map[string]map[string]bool{}
	size := 0
	for i := range d.operations {
		op := &d.operations[i]
		s.Origins[op.key()] = true
		tags, _ := textList(op.raw["tags"])
		s.Tags = append(s.Tags, tags...)
		if !o.Filter.takes(tags, op.path, op.method, op.id) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := &builder{doc: d, opts: &o, op: op, method: op.method, headers: map[string]string{}, items: items, compiled: compiled}
		tool, skip, err := b.build()
		if err != nil {
			return nil, err
		}
		if skip != "" {
			s.Skipped = append(s.Skipped, importer.Skip{Operation: op.key(), Reason: skip})
			continue
		}
		if size += len(tool.Spec.InputSchema) + len(tool.Spec.OutputSchema); size > maxOutput {
			return nil, fmt.Errorf("the manifests are larger than %d MiB together: import fewer operations at once with --include", maxOutput>>20)
		}
		if !o.AllowPrivateNetwork && isPrivate(b.host) && !slices.Contains(s.Private, b.host) {
			s.Private = append(s.Private, b.host)
		}
		for _, v := range b.env {
			if env[v] == nil {
				env[v] = map[string]bool{}
			}
			env[v][b.host] = true
		}
		s.Tools = append(s.Tools, Tool{op.key(), tool})
	}
	d.check(ctx, items)
	slices.Sort(s.Private)
	slices.Sort(s.Tags)
	s.Tags, s.Operations = slices.Compact(s.Tags), len(d.operations)
	slices.SortFunc(s.Tools, func(a, b Tool) int {
		return cmp.Compare(a.Manifest.Metadata.Name, b.Manifest.Metadata.Name)
	})
	for _, t := range s.Tools {
		s.Manifests = append(s.Manifests, importer.Manifest{Origin: t.Operation, Object: t.Manifest})
	}
	for _, v := range slices.Sorted(maps.Keys(env)) {
		s.Env = append(s.Env, importer.EnvUse{Variable: v, Hosts: slices.Sorted(maps.Keys(env[v]))})
	}
	s.Warnings = slices.Clone(d.warnings)
	slices.SortStableFunc(s.Warnings, func(a, b v1.Violation) int { return cmp.Compare(a.Path, b.Path) })
	return s, nil
}

// builder makes the tool of one operation.
type builder struct {
	doc    *Document
	opts   *Options
	op     *operation
	method string
	items  map[string]*openapi3.PathItem
	// compiled has the schemas of all tools. An operation with an unusable input schema is skipped; an unusable output
	// schema is left out.
	compiled *validate.Cache

	pathParams   []string
	args         *arguments
	inRefs       []string
	outRefs      []string
	inViolations []string
	mapping      string
	omitEmpty    bool // a header is optional
	open         bool // undeclared arguments become part of the body
	additional   any  // schema of undeclared body properties
	dependent    map[string]any
	headers      map[string]string
	validation   *v1.Validation
	sortedIn     json.RawMessage // the schemas with properties sorted by name, for the hash
	sortedOut    json.RawMessage
	env          []string
	host         string
}

func (b *builder) note(message string) { b.doc.warnAt(b.op.at, message) }

// use includes a converted schema in the input schema.
func (b *builder) use(f *schema.Fragment) any {
	b.inRefs = append(b.inRefs, f.Refs...)
	b.inViolations = append(b.inViolations, f.Violations...)
	return f.Value
}

// build returns the tool, or the reason for skipping it. The error ends the whole import.
func (b *builder) build() (*v1.Tool, string, error) {
	if b.method == "TRACE" {
		return nil, "an HTTP tool cannot use the method TRACE", nil
	}
	if strings.Contains(b.op.path, "#") {
		return nil, "its path contains a fragment (#), which is never sent", nil
	}
	for segment := range strings.SplitSeq(b.op.path, "/") {
		if segment == "." || segment == ".." {
			return nil, `its path contains the segment "." or ".."`, nil
		}
	}
	op, shared, skip := b.decode()
	if skip != "" {
		return nil, skip, nil
	}
	server, err := b.server(op)
	if err != nil {
		if errors.Is(err, errNoServer) {
			return nil, "", invalid(b.doc.Source, v1.Violation{Path: "/servers", Expected: "an absolute URL", Message: err.Error()})
		}
		return nil, err.Error(), nil
	}
	b.args = &arguments{taken: map[string]*argument{}, note: b.note}
	if skip := b.arguments(shared, op); skip != "" {
		return nil, skip, nil
	}
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	t.Metadata = v1.Metadata{Name: b.op.name, Namespace: b.opts.Namespace, Labels: b.labels(op)}
	t.Spec.Description = b.description(op)
	t.Spec.Hints = hints(b.method, op.Summary)
	t.Spec.HTTP = b.http(op, server)
	if skip := b.schemas(t, op); skip != "" {
		return nil, skip, nil
	}
	t.Spec.HTTP.Headers = orNil(b.headers)
	t.Spec.Validation = b.validation
	if err := b.provenance(t); err != nil {
		return nil, err.Error(), nil
	}
	if fs := t.Validate(); len(fs) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, b.op.name, fs).Error(), nil
	}
	return t, "", nil
}

// decode decodes the operation with kin-openapi, after following its references.
func (b *builder) decode() (op *openapi3.Operation, shared openapi3.Parameters, skip string) {
	defer func() { // untrusted data; a bug in the decoder must not end the process
		if r := recover(); r != nil {
			skip = fmt.Sprintf("it could not be read: %v", r)
		}
	}()
	s := operationShape()
	m, err := b.doc.outline.copy(s, b.op.at, b.op.raw)
	if err != nil {
		return nil, nil, err.Error()
	}
	if list, ok := m["servers"].([]any); ok {
		m["servers"] = serverText(list)
	}
	if op, err = decode[openapi3.Operation](m); err != nil {
		return nil, nil, err.Error()
	}
	itemShape := &shape{list: s.list}
	im, err := b.doc.outline.copy(itemShape, b.op.itemAt, map[string]any{"parameters": b.op.item["parameters"]})
	if err != nil {
		return nil, nil, "the parameters of its path: " + err.Error()
	}
	item, err := decode[openapi3.PathItem](im)
	if err != nil {
		return nil, nil, "the parameters of its path: " + err.Error()
	}
	if b.items[b.op.path] == nil {
		b.items[b.op.path] = item
	}
	b.items[b.op.path].SetOperation(b.method, op)
	return op, item.Parameters, ""
}

// server returns the base URL of the operation. --server overrides all servers of the document.
func (b *builder) server(op *openapi3.Operation) (string, error) {
	if b.opts.Server != "" {
		return b.opts.Server, nil
	}
	if op.Servers != nil && len(*op.Servers) > 0 {
		return serverURL(*op.Servers, b.doc.base)
	}
	if list, ok := b.op.item["servers"].([]any); ok && len(list) > 0 {
		s, err := decode[openapi3.Servers](serverText(list))
		if err != nil {
			return "", fmt.Errorf("the servers of its path: %w", err)
		}
		return serverURL(*s, b.doc.base)
	}
	return serverURL(b.doc.head.Servers, b.doc.base)
}

// arguments reads parameters and body: query parameters first, then the body, then the arguments that may be renamed.
func (b *builder) arguments(shared openapi3.Parameters, op *openapi3.Operation) (skip string) {
	for _, s := range pathSegments(b.op.path) {
		if s.param && !slices.Contains(b.pathParams, s.text) {
			b.pathParams = append(b.pathParams, s.text)
		}
	}
	params := mergeParameters(shared, op.Parameters)
	for i, p := range params {
		if p.In == "query" {
			b.parameter(p, i)
		}
	}
	if skip := b.body(op.RequestBody); skip != "" {
		return skip
	}
	for i, p := range params {
		if p.In != "query" {
			b.parameter(p, i)
		}
	}
	for _, name := range b.pathParams {
		if b.args.by("path", name) == nil {
			b.note("the path parameter " + quote(name) + " is not declared: it is text")
			b.args.add(&argument{source: name, in: "path", required: true, order: -1, schema: map[string]any{"type": "string"}})
		}
	}
	slices.SortStableFunc(b.args.list, func(x, y *argument) int { return cmp.Compare(x.order, y.order) })
	return ""
}

// schemas sets the input schema and the output schema.
func (b *builder) schemas(t *v1.Tool, op *openapi3.Operation) (skip string) {
	root, violations := b.withDefs(b.inputSchema(), b.inRefs, schema.Request, "input_schema")
	if violations = append(slices.Clone(b.inViolations), violations...); len(violations) > 0 {
		return strings.Join(violations, "; ")
	}
	t.Spec.InputSchema, b.sortedIn = schema.Encode(root), schema.EncodeSorted(root)
	if err := b.compiled.Schema(t.Spec.InputSchema, validate.Draft2020).Compile(); err != nil {
		return "its input schema cannot be used: " + err.Error()
	}
	if op.Responses == nil {
		return ""
	}
	out := b.outputSchema(op.Responses)
	if out == nil {
		return ""
	}
	out, violations = b.withDefs(out, b.outRefs, schema.Response, "output_schema")
	raw := schema.Encode(out)
	if len(violations) == 0 {
		if err := b.compiled.Schema(raw, validate.Draft2020).Compile(); err != nil {
			violations = append(violations, err.Error())
		}
	}
	if len(violations) > 0 {
		b.note("no output_schema: " + strings.Join(violations, "; "))
		b.validation = nil
		return ""
	}
	t.Spec.OutputSchema, b.sortedOut = raw, schema.EncodeSorted(out)
	return ""
}

// Annotations of an imported manifest.
const (
	AnnotationSource    = "toolctl.dev/openapi-source"
	AnnotationOperation = "toolctl.dev/openapi-operation"
	AnnotationVersion   = "toolctl.dev/openapi-version"
	AnnotationHash      = "toolctl.dev/openapi-hash"
)

// provenance records the source of the manifest. The hash covers the generated spec with properties sorted by name,
// so that a reader can tell whether it was changed afterwards.
func (b *builder) provenance(t *v1.Tool) error {
	sorted := t.Spec
	sorted.InputSchema, sorted.OutputSchema = b.sortedIn, b.sortedOut
	spec, err := json.Marshal(sorted)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(spec)
	t.Metadata.Annotations = map[string]string{
		AnnotationSource:    sourceName(b.doc.Source),
		AnnotationOperation: b.op.key(),
		AnnotationHash:      "sha256:" + hex.EncodeToString(sum[:]),
	}
	return nil
}

// sourceName returns the URL of a document, or the name of its file without the folder. The folder and the document's
// version are left out, because otherwise each import would change every manifest.
func sourceName(source string) string {
	if strings.Contains(source, "://") {
		return source
	}
	return filepath.Base(source)
}

func orNil[K comparable, V any](m map[K]V) map[K]V {
	if len(m) == 0 {
		return nil
	}
	return m
}
