package validate

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/schema"
)

// santhosh runs a schema on santhosh-tekuri/jsonschema. It may be used by many goroutines.
type santhosh struct {
	schema *jsonschema.Schema
	// mu allows one validation at a time if a pattern backtracks, because watch
	// measures the time of its matches.
	mu    sync.Mutex
	watch *stopwatch
}

var jsonschemaDrafts = [...]*jsonschema.Draft{
	Draft4: jsonschema.Draft4, Draft6: jsonschema.Draft6, Draft7: jsonschema.Draft7,
	Draft2019: jsonschema.Draft2019, Draft2020: jsonschema.Draft2020,
}

// loader returns preloaded documents and fetches nothing.
type loader func(url string) (any, bool, error)

func (l loader) Load(url string) (any, error) {
	v, ok, err := l(url)
	if !ok {
		return nil, errOutside
	}
	return v, err
}

// newSanthosh compiles a schema of a draft.
func newSanthosh(root any, draft Draft, preload loader, format bool) (*santhosh, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(preload)
	c.DefaultDraft(jsonschemaDrafts[draft])
	if format {
		c.AssertFormat()
	}
	if err := c.AddResource(rootURL, root); err != nil {
		return nil, err
	}
	return compileSanthosh(c, rootURL)
}

// newMetaschema compiles the metaschema of a draft, which the library has built in.
func newMetaschema(draft Draft) (*santhosh, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(loader(func(string) (any, bool, error) { return nil, false, nil }))
	c.AssertFormat()
	return compileSanthosh(c, strings.TrimSuffix(draft.String(), "#"))
}

func compileSanthosh(c *jsonschema.Compiler, url string) (*santhosh, error) {
	e := &santhosh{watch: &stopwatch{}}
	c.UseRegexpEngine(e.watch.engine)
	schema, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	e.schema = schema
	e.watch.sealed = true
	return e, nil
}

func (e *santhosh) check(doc any) ([]problem, bool) {
	if e.watch.used {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.watch.start()
	}
	err := e.schema.Validate(doc)
	if err == nil && (!e.watch.used || len(e.watch.late) == 0) {
		return nil, false
	}
	var problems []problem
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		problems = explain(invalid, doc)
	}
	if e.watch.used {
		problems = markLate(problems, e.watch.late, doc)
	}
	return problems, false
}

// markLate converts the mismatches of patterns that ran out of time to problems of their own kind,
// and adds a problem for such a pattern without a mismatch.
func markLate(problems []problem, late []string, doc any) []problem {
	slices.Sort(late)
	for _, pattern := range slices.Compact(late) {
		quoted, found := strconv.Quote(pattern), false
		for i := range problems {
			if p := &problems[i]; p.keyword == "pattern" && p.limit == quoted {
				p.keyword, found = keywordLate, true
			}
		}
		if !found {
			problems = append(problems, problem{keyword: keywordCost, limit: "a document that can be checked in bounded time",
				value: doc, detail: "document takes too long to check with the pattern " + clip.Runes(quoted, 3*maxGot)})
		}
	}
	return problems
}

// compileViolations turns an error of the compiler into violations of the schema.
func compileViolations(err error, root any, names bool) []v1.Violation {
	var (
		meta    *jsonschema.SchemaValidationError
		invalid *jsonschema.ValidationError
	)
	if errors.As(err, &meta) && errors.As(meta.Err, &invalid) {
		_, base, _ := splitURL(meta.URL)
		within, _, _ := schema.At(root, base)
		out := schemaViolations(explain(invalid, within), names)
		for i := range out {
			out[i].Path = base + out[i].Path
		}
		return out
	}
	message := strings.ReplaceAll(err.Error(), rootURL, "")
	return []v1.Violation{{Expected: "a JSON Schema", Got: "an invalid one", Message: "invalid schema: " + clip.Runes(message, 300)}}
}

// isMetaschemaError reports whether the metaschema refused the whole schema, and not
// only the target of a reference.
func isMetaschemaError(err error) bool {
	var meta *jsonschema.SchemaValidationError
	return errors.As(err, &meta) && strings.HasSuffix(meta.URL, "#")
}

// schemaViolations converts the problems that a metaschema found in a schema. Without names it
// leaves out refused member names: these are patterns, which the graph has reported with their
// places, and the place here is unreliable (see [explainer.name]).
func schemaViolations(problems []problem, names bool) []v1.Violation {
	if !names {
		problems = slices.DeleteFunc(problems, func(p problem) bool { return p.keyword == keywordNames })
	}
	return violations(nil, problems, func([]string) []string { return nil })
}
