package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/schema"
)

// A Schema checks documents. It compiles on first use and may be used by many
// goroutines. [Cache.Schema] makes it.
type Schema struct {
	cache *Cache
	raw   json.RawMessage
	draft Draft // of a schema without "$schema"

	once  sync.Once
	err   *v1.ValidationError
	costs costs
	fast  *fastSchema // checks bytes; nil if it would never find a text valid

	startOnce sync.Once // see running
	engine    engine
	failed    *v1.ValidationError

	// only needed for documents with violations and for expensive ones
	explainOnce sync.Once
	explainer   engine
	graphOnce   sync.Once
	graphNow    *graph
}

// engine is the common interface of both libraries.
type engine interface {
	// check returns the problems of a document, and whether the engine cannot
	// attribute them to subschemas.
	check(doc any) (problems []problem, unclear bool)
}

// Compile compiles the schema on the first call. Its error is a [*v1.ValidationError] of type
// manifest_invalid that lists all violations, with JSON pointers into the schema. All callers get
// the same error, so copy it to change it.
func (s *Schema) Compile() error {
	s.once.Do(s.compile)
	if s.err != nil {
		return s.err
	}
	return nil
}

func (s *Schema) compile() {
	s.err = guarded(func() []v1.Violation {
		root, err := s.decode()
		if err != nil {
			return []v1.Violation{{Expected: "a JSON Schema", Got: plural("%d byte", len(s.raw)), Message: err.Error()}}
		}
		switch root.(type) {
		case bool, map[string]any:
		default:
			return []v1.Violation{{Expected: "object", Got: describe(root), Message: "a schema is a JSON object, got " + describe(root)}}
		}
		g := newGraph(root, s.draft, s.cache.preload)
		if g.order != nil {
			s.costs = g.costs()
		}
		if g.full {
			return g.violations
		}
		body := bodyOf(root)
		fast := newFastSchema(body, !s.cache.options.FormatAnnotation)
		if !fast.unknown {
			s.fast = fast
		}
		if len(g.violations) == 0 && !fast.doubtful && g.nodes[0].res.draft >= Draft7 {
			return nil
		}
		return append(g.violations, s.start(g, root)...)
	})
}

// running returns the engine. A schema that is certainly legal gets its engine on the first call.
func (s *Schema) running() (engine, error) {
	s.startOnce.Do(func() {
		if s.engine != nil {
			return
		}
		s.failed = guarded(func() []v1.Violation {
			root, err := s.decode()
			if err != nil {
				return []v1.Violation{{Message: err.Error()}}
			}
			return s.start(newGraph(root, s.draft, s.cache.preload), root)
		})
	})
	if s.failed != nil {
		return nil, s.failed
	}
	return s.engine, nil
}

// engineFailed is the start of errors about a panic of an engine.
const engineFailed = "schema engine failed"

// guarded runs a part of compiling and returns its findings, or a panic of an engine, as an error.
func guarded(compile func() []v1.Violation) (invalid *v1.ValidationError) {
	var found []v1.Violation
	defer func() {
		if p := recover(); p != nil {
			found = append(found, v1.Violation{Expected: "a schema that can be compiled", Got: "a failure", Message: fmt.Sprintf("%s: %s", engineFailed, clip.Runes(fmt.Sprint(p), 200))})
		}
		if len(found) > 0 {
			invalid = v1.NewValidationError(v1.ManifestInvalid, "", bound(found))
		}
	}()
	found = compile()
	return nil
}

// bodyOf returns a schema without its "$schema" if that names a draft. It returns nil if it names
// another metaschema, which may disable keywords.
func bodyOf(root any) any {
	obj, _ := root.(map[string]any)
	name, ok := obj["$schema"]
	if !ok {
		return root
	}
	url, _ := name.(string)
	if _, known := schema.DraftOf(url); !known {
		return nil
	}
	obj = maps.Clone(obj)
	delete(obj, "$schema")
	return obj
}

func (s *Schema) decode() (any, error) { return decode(s.raw, s.cache.options.MaxSchemaBytes) }

// start passes the schema to an engine if the graph allows it, and returns the violations that its
// metaschema and the engine find.
func (s *Schema) start(g *graph, root any) []v1.Violation {
	draft, format := g.nodes[0].res.draft, !s.cache.options.FormatAnnotation
	if draft <= Draft7 {
		meta, err := s.cache.metas[draft]()
		if err != nil {
			return []v1.Violation{{Message: err.Error()}}
		}
		problems, _ := meta.check(root)
		if len(problems) > 0 || len(g.violations) > 0 {
			return schemaViolations(problems, len(g.violations) == 0)
		}
		if b, ok := bundleFor(g, format); ok {
			if e, err := newGojson(b, draft); err == nil {
				s.engine = e
				return nil
			}
		}
	}
	e, err := newSanthosh(root, draft, s.cache.preload, format)
	switch {
	case err != nil && len(g.violations) > 0 && !isMetaschemaError(err):
		return nil // the graph has reported it better
	case err != nil:
		return compileViolations(err, root, len(g.violations) == 0)
	}
	s.engine = e
	return nil
}

// bound sorts the violations of a schema, removes duplicates, and keeps at most maxViolations.
func bound(found []v1.Violation) []v1.Violation {
	slices.SortStableFunc(found, func(a, b v1.Violation) int {
		return comparePaths(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	var out []v1.Violation
	for _, f := range found {
		seen := slices.ContainsFunc(out, func(o v1.Violation) bool { return o.Path == f.Path && (o.Message == f.Message || f.Path != "") })
		if !seen {
			out = append(out, f)
		}
	}
	if n := len(out) - maxViolations; n > 0 {
		out = append(out[:maxViolations], v1.Violation{Expected: "a valid schema", Got: "more errors", Message: "and " + clip.Count(n, "more error")})
	}
	return out
}

// ValidateJSON decodes and checks a JSON text. Text that is not valid JSON is a violation of
// the document, not an error.
func (s *Schema) ValidateJSON(raw []byte) ([]v1.Violation, error) {
	if s.SurelyValid(raw) {
		return nil, nil
	}
	doc, err := Decode(raw)
	if err != nil {
		if err := s.Compile(); err != nil {
			return nil, err
		}
		return []v1.Violation{{Expected: "JSON", Got: plural("%d byte", len(raw)), Message: err.Error()}}, nil
	}
	return s.Validate(doc)
}

// Validate checks a document that [Decode] made, or one of the same Go types. It
// returns every violation, sorted by path and bounded in number, or an error: that
// of [Schema.Compile], or one that is not about the document's content.
//
// A violation contains a value of the document in Got. If its message contains the
// value too, it is the exact text of Got, so a caller that must hide the value at
// a path can replace that text in both.
func (s *Schema) Validate(doc any) ([]v1.Violation, error) {
	problems, err := s.problems(doc)
	return s.violations(doc, problems), err
}

// Check validates a document. If it has violations and coerce is set, Check coerces values (see
// [Schema.Coerce]) and validates again. fixed is the resulting document, which is doc itself if
// changed is false; doc is never changed. A valid document costs one validation.
func (s *Schema) Check(doc any, coerce bool) (fixed any, changed bool, violations []v1.Violation, err error) {
	problems, err := s.problems(doc)
	if err != nil || len(problems) == 0 {
		return doc, false, nil, err
	}
	fixed = doc
	if coerce {
		fixed, changed, problems, err = s.coerceRound(doc, problems)
	}
	return fixed, changed, s.violations(fixed, problems), err
}

// problems runs the engine on a document, if it is within the bounds.
func (s *Schema) problems(doc any) (found []problem, err error) {
	if err := s.Compile(); err != nil {
		return nil, err
	}
	if _, err := s.running(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			found, err = nil, fmt.Errorf("%s: %s", engineFailed, clip.Runes(fmt.Sprint(p), 200))
		}
	}()
	var seen survey
	if err := seen.visit(doc, 0); err != nil {
		return []problem{{keyword: keywordCost, limit: "a document within bounds", value: doc, detail: err.Error()}}, nil
	}
	if !s.costs.affordable(&seen) {
		if f := s.graph().measure(doc); f != nil {
			return []problem{{keyword: keywordCost, limit: f.Expected, value: doc, detail: f.Message}}, nil
		}
	}
	// gojsonschema allocates up to 3 KB for each error, the other engine a tenth of that.
	many := s.costs.checksOf(&seen) > maxFound
	unclear := many
	if !many {
		found, unclear = s.engine.check(doc)
	}
	if unclear {
		if better, _ := s.explain().check(doc); len(better) > 0 {
			found = better
		}
	}
	s.placeNames(found, doc)
	return found, nil
}

// explain returns the 2020-12 engine, which also names the branch of an anyOf to which an error
// belongs. If that engine cannot compile the schema, it returns the schema's own engine.
func (s *Schema) explain() engine {
	s.explainOnce.Do(func() {
		s.explainer = s.engine
		root, err := s.decode()
		if _, later := s.engine.(*santhosh); later || err != nil {
			return
		}
		if e, err := newSanthosh(root, s.draft, s.cache.preload, !s.cache.options.FormatAnnotation); err == nil {
			s.explainer = e
		}
	})
	return s.explainer
}

// graph returns the graph of a compiled schema. Compiling does not keep it, because
// most schemas never need it again; the first call builds it again and keeps it.
func (s *Schema) graph() *graph {
	s.graphOnce.Do(func() {
		if root, err := s.decode(); err == nil {
			s.graphNow = newGraph(root, s.draft, s.cache.preload)
		}
	})
	return s.graphNow
}

func (s *Schema) violations(doc any, problems []problem) []v1.Violation {
	if len(problems) == 0 {
		return nil
	}
	return violations(doc, problems, s.propertyNames)
}
