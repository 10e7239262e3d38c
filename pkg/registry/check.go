package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/parallel"
)

// Checker is an [Executor] that can find violations in a tool before it is called, such as a template that does not
// parse. The paths of violations start at the root of the manifest.
type Checker interface {
	Check(t *v1.Tool) []v1.Violation
}

// Environment is an [Executor] that can report the unset variables of a tool or, for the executor of MCP servers, of an
// MCPServer. Variables may be set while the process runs, so it is called each time the object is listed.
type Environment interface {
	Unset(o v1.Object) []v1.Violation
}

// unset returns a violation for each variable that the object needs and that is not set. Such an object is not ready.
func (e *entry) unset() []v1.Violation {
	switch {
	case e.tool != nil && e.tool.executor != nil:
		if env, ok := e.tool.executor.(Environment); ok {
			return env.Unset(e.tool.spec)
		}
	case e.servers != nil:
		return e.servers.Unset(e.object)
	}
	return nil
}

// Check compiles every schema, template and mapping, and checks the objects against each other. It returns the
// violations that [Registry.New] and the reader did not look for, in the order of the objects, and keeps them: a tool
// with a violation is not ready from then on. It uses all processors and stops early when ctx ends.
func (r *Registry) Check(ctx context.Context) []v1.Violation { return r.check(ctx, r.snap.Load()) }

// CheckObjects returns the violations, including those of the reader, that objects would have as the whole set, before
// they are passed to [Registry.Replace]. It reuses the results of earlier checks for unchanged objects.
func (r *Registry) CheckObjects(ctx context.Context, objects []v1.Object) []v1.Violation {
	var violations []v1.Violation
	for _, o := range objects {
		if o.Head().Broken() {
			violations = append(violations, o.Head().Violations...)
		}
	}
	old := r.snap.Load()
	next := old.contents
	next.given = objects
	s := r.build(next, old)
	s.entries = slices.DeleteFunc(s.entries, func(e *entry) bool { return e.server != (v1.Key{}) }) // discovered: not checked
	return append(violations, r.check(ctx, s)...)
}

func (r *Registry) check(ctx context.Context, s *snapshot) []v1.Violation {
	found := make([][]v1.Violation, len(s.entries))
	parallel.Each(len(s.entries), func(i int) {
		if ctx.Err() == nil {
			found[i] = r.checkEntry(s, s.entries[i])
		}
	})
	return slices.Concat(found...)
}

func (r *Registry) checkEntry(s *snapshot, e *entry) []v1.Violation {
	h := e.object.Head()
	var fs []v1.Violation
	if !h.Broken() {
		// These are the violations that New found by comparing objects; the reader reports its own.
		fs = slices.DeleteFunc(slices.Clone(e.violations), func(f v1.Violation) bool { return slices.Contains(h.Violations, f) })
	}
	var more []v1.Violation
	switch o := e.object.(type) {
	case *v1.Tool:
		if known := e.checked.Load(); known != nil { // the result depends only on the entry
			fs = append(fs, *known...)
			break
		}
		more = e.tool.checkSchemas()
		more = append(more, e.tool.checkExecution(hasError(e.violations) || hasError(more))...)
	case *v1.ToolPolicy:
		more = s.checkPolicy(o)
	case *v1.Prompt:
		more = s.checkPrompt(o)
	case *v1.Toolset:
		more = s.checkToolset(o)
	}
	// Missing and invalid schemas were reported before.
	more = slices.DeleteFunc(more, func(f v1.Violation) bool {
		return slices.ContainsFunc(e.violations, func(old v1.Violation) bool { return old.Path == f.Path && !old.IsWarning() })
	})
	for i := range more {
		if more[i].Source.IsZero() {
			more[i].Source = h.Field(more[i].Path)
		}
	}
	e.checked.Store(&more)
	fs = append(fs, more...)
	if h.FromPromptKit() {
		return promptKitViolations(h, fs)
	}
	return fs
}

// promptKitViolations turns violations that PromptKit reports only when the tool is called into warnings, because
// PromptKit loads the manifest. The tool is still not ready.
func promptKitViolations(h *v1.Header, fs []v1.Violation) []v1.Violation {
	var out []v1.Violation
	for _, f := range fs {
		known := func(old v1.Violation) bool { return old.Path == f.Path && old.Message == f.Message }
		if slices.ContainsFunc(h.Violations, known) || slices.ContainsFunc(out, known) {
			continue
		}
		if !strings.HasPrefix(f.Path, "/spec/input_schema") && !strings.HasPrefix(f.Path, "/spec/output_schema") {
			f.Severity = v1.SeverityWarning
		}
		out = append(out, f)
	}
	return out
}

func (t *tool) checkSchemas() []v1.Violation {
	var fs []v1.Violation
	if len(t.spec.Spec.InputSchema) > 0 { // a missing schema was reported before
		fs = schemaViolations(t.spec.Head(), "/spec/input_schema", t.in)
		fs = append(fs, defaultViolations(t.spec.Head(), "/spec/input_schema", t.spec.Spec.InputSchema)...)
	}
	if t.out != nil {
		fs = append(fs, schemaViolations(t.spec.Head(), "/spec/output_schema", t.out)...)
	}
	return fs
}

// checkExecution returns the violations that would make every call of a tool fail. If the tool is broken already, it
// omits violations of whole blocks, which may only be consequences.
func (t *tool) checkExecution(broken bool) []v1.Violation {
	if t.spec.MissingBlock() != "" {
		return nil
	}
	var fs []v1.Violation
	if t.out != nil && t.spec.ExecutorName() == v1.ModeMock && t.spec.Spec.MockTemplate == "" && len(t.spec.Spec.MockResult) > 0 {
		fs = t.staticViolations()
	}
	if c, ok := t.executor.(Checker); ok {
		fs = append(fs, c.Check(t.spec)...)
	}
	if broken {
		fs = slices.DeleteFunc(fs, func(f v1.Violation) bool { return strings.Count(f.Path, "/") < 2 || f.Path == "/spec/mode" })
	}
	return fs
}

// staticViolations returns the violations of the output schema by a static mock result, which would make every call
// fail.
func (t *tool) staticViolations() []v1.Violation {
	mode := t.spec.Spec.Validation.ResultMode()
	if mode == v1.Off {
		return nil
	}
	bad, err := t.out.ValidateJSON(t.spec.Spec.MockResult)
	if err != nil {
		return nil // the schema's own violations are reported elsewhere
	}
	bad = under(t.spec.Head(), "/spec/mock_result", bad)
	for i := range bad {
		bad[i].Message = "the mock result violates output_schema: " + bad[i].Message
		if mode == v1.Warn {
			bad[i].Severity = v1.SeverityWarning
		}
	}
	return bad
}

func (s *snapshot) checkPolicy(p *v1.ToolPolicy) []v1.Violation {
	if s.tools[p.Namespace()] > 0 || len(s.tools) == 0 || s.hasServer(p.Namespace()) {
		return nil
	}
	elsewhere := slices.Sorted(maps.Keys(s.tools))
	return []v1.Violation{{
		Path: "/metadata/namespace", Expected: "a namespace with tools", Got: p.Namespace(), Severity: v1.SeverityWarning,
		Message: fmt.Sprintf("a policy governs the tools of its own namespace, and %q has none; there are tools in %s", p.Namespace(), strings.Join(elsewhere, ", ")),
	}}
}

// checkToolset warns about a toolset with a longer address than its name, because another toolset has the name too.
func (s *snapshot) checkToolset(t *v1.Toolset) []v1.Violation {
	i := slices.IndexFunc(s.objects, func(o v1.Object) bool {
		h := o.Head()
		return h.Kind == v1.KindToolset && h.Metadata.Name == t.Metadata.Name && h.Namespace() != t.Namespace()
	})
	if i < 0 || t.Namespace() == v1.DefaultNamespace {
		return nil
	}
	return []v1.Violation{{
		Path: "/metadata/name", Expected: "a name of its own", Got: t.Metadata.Name, Severity: v1.SeverityWarning,
		Message: fmt.Sprintf("namespace %q has a toolset %q too: a server of both offers this one at /mcp/%s.%s", s.objects[i].Head().Namespace(), t.Metadata.Name, t.Namespace(), t.Metadata.Name),
	}}
}

func (s *snapshot) hasServer(namespace string) bool {
	return slices.ContainsFunc(s.objects, func(o v1.Object) bool {
		return o.Head().Kind == v1.KindMCPServer && o.Head().Namespace() == namespace
	})
}
