package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/sarif"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

type validateOptions struct {
	*app
	strict     bool
	requireEnv bool
}

func newValidateCmd(a *app) *cobra.Command {
	o := &validateOptions{app: a}
	cmd := &cobra.Command{
		Use:   "validate [PATH]...",
		Short: "Find every error of manifests, without a call",
		Long: `Find every violation of manifests: syntax, fields, types, names, JSON Schemas,
templates, mappings, and what objects say of each other. Nothing is called and
nothing is fetched. PATH is the same as -f; without either, the current folder.

Violations go to stderr, one a line, as file:line:column: field: what is wrong.
Output formats (-o): table (the default), json (a report on stdout), github
(workflow annotations on stdout), sarif (2.1.0 on stdout, for code scanning).`,
		Annotations: formats("table", "json", "github", "sarif"),
		Example: `  toolctl validate manifests/
  toolctl validate -f tool.yaml -o json
  toolctl validate -o github --strict`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	a.bindSelector(cmd.Flags(), "violations of objects")
	a.bindPermit(cmd.Flags(), "")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "treat warnings as errors, but for variables that are not set here")
	cmd.Flags().BoolVar(&o.requireEnv, "require-env", false, "treat environment variables that are not set as errors")
	return cmd
}

// violationReport is what validate -o json prints.
type violationReport struct {
	Valid      bool           `json:"valid"`
	Files      int            `json:"files"`
	Objects    int            `json:"objects"`
	Errors     int            `json:"errors"`
	Warnings   int            `json:"warnings"`
	Violations []v1.Violation `json:"violations"`
}

// collectLess is for commands that read many manifests. All that is read stays until their end,
// so what is collected meanwhile is little: a fifth of the time of 10,000 manifests went into
// looking for it. What it returns ends it.
func collectLess() (end func()) {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

func (o *validateOptions) run(cmd *cobra.Command, args []string) error {
	defer collectLess()()
	format := o.format()
	paths := append(o.files, args...)
	if len(paths) == 0 {
		paths = []string{"."}
	}
	set, violations, err := o.check(cmd.Context(), paths, nil)
	if err != nil {
		return err
	}
	objects := set.Objects
	if o.selector != "" {
		has, err := o.selected()
		if err != nil {
			return err
		}
		violations = violationsOf(violations, objects, has)
		objects = slices.DeleteFunc(slices.Clone(objects), func(obj v1.Object) bool { return !has(obj) })
		if len(objects) == 0 {
			return usagef("no objects with the labels %s", o.selector)
		}
	}
	unset := o.unset(objects)
	violations = append(violations, unset...)
	manifest.SortViolations(violations)
	r := violationReport{Files: set.Files, Objects: len(objects), Violations: violations}
	if r.Violations == nil {
		r.Violations = []v1.Violation{}
	}
	for _, f := range violations {
		if f.IsWarning() {
			r.Warnings++
		} else {
			r.Errors++
		}
	}
	strict := 0 // warnings that count as errors; where manifests are checked the secrets seldom are
	if o.strict {
		strict = r.Warnings
		if !o.requireEnv {
			strict -= len(unset)
		}
	}
	r.Valid = r.Errors+strict == 0
	o.print(format, r)
	if !r.Valid {
		return statusError{exitInvalid, fmt.Sprintf("%s in %s", count(r.Errors+strict, "error"), count(r.Files, "file"))}
	}
	return nil
}

// violationsOf returns those of the objects that has takes, and those of no object: a file
// that cannot be read may hold any. An object goes on until the next one of its file.
func violationsOf(violations []v1.Violation, objects []v1.Object, has func(v1.Object) bool) []v1.Violation {
	return slices.DeleteFunc(violations, func(f v1.Violation) bool {
		var of v1.Object
		for _, o := range objects {
			at := o.Head().Source
			if at.File == f.Source.File && at.Line <= f.Source.Line && (of == nil || at.Line > of.Head().Source.Line) {
				of = o
			}
		}
		return of != nil && !has(of)
	})
}

// onePerVariable leaves the first violation of each variable that is not set, with the places of
// the others in its message.
func onePerVariable(all []v1.Violation) []v1.Violation {
	const most = 5
	manifest.SortViolations(all)
	first, also := map[string]int{}, map[int][]string{}
	out := all[:0]
	for _, v := range all {
		i, again := first[v.Message]
		if !again {
			first[v.Message] = len(out)
			out = append(out, v)
			continue
		}
		also[i] = append(also[i], v.Source.String())
	}
	for i, places := range also {
		more := ""
		if n := len(places) - most; n > 0 {
			places, more = places[:most], fmt.Sprintf(" and %d more places", n)
		}
		out[i].Message += " (it is read at " + strings.Join(places, ", ") + more + ", too)"
	}
	return out
}

// unset returns what the manifests read from the environment and is not set.
func (o *validateOptions) unset(objects []v1.Object) []v1.Violation {
	all := onePerVariable(unsetVariables(objects, o.env))
	if !o.requireEnv {
		for i := range all {
			all[i].Severity = v1.SeverityWarning
		}
	}
	return all
}

func unsetVariables(objects []v1.Object, env func(string) (string, bool)) []v1.Violation {
	asked := map[string]registry.Environment{}
	for _, e := range executors.All(executors.Options{Env: env}) {
		if env, ok := e.(registry.Environment); ok {
			asked[e.Name()] = env
		}
		if c, ok := e.(io.Closer); ok {
			defer c.Close() // it has no connection
		}
	}
	var all []v1.Violation
	for _, obj := range objects {
		if obj.Head().Broken() {
			continue
		}
		switch x := obj.(type) {
		case *v1.Tool:
			if env := asked[x.ExecutorName()]; env != nil {
				all = append(all, env.Unset(x)...)
			}
		case *v1.MCPServer:
			all = append(all, mcp.Unset(x, env, nil)...)
		}
	}
	return slices.DeleteFunc(all, func(f v1.Violation) bool { return f.Forbidden }) // which the check has found
}

func (o *validateOptions) print(format string, r violationReport) {
	switch format {
	case "json":
		for i := range r.Violations {
			if r.Violations[i].Severity == "" {
				r.Violations[i].Severity = v1.SeverityError
			}
		}
		_ = printJSON(o.out, r)
		return
	case "sarif":
		_ = printJSON(o.out, violationLog(r.Violations))
		return
	case "github":
		for _, f := range r.Violations {
			fmt.Fprintln(o.out, report.Annotation(f))
		}
		return
	}
	for _, f := range r.Violations {
		fmt.Fprintln(o.err, f)
	}
	if r.Valid {
		fmt.Fprintf(o.out, "%s in %s valid\n", count(r.Objects, "object"), count(r.Files, "file"))
	}
}

// violationLog is the SARIF log of violations: one rule for errors, and one for warnings.
func violationLog(violations []v1.Violation) any {
	const page = "https://toolctl.dev/docs/validating"
	d := sarif.Driver{Name: "toolctl validate", Version: buildVersion().Version, URI: page, Rules: []sarif.Rule{
		{ID: "error", Summary: "The manifest breaks a rule of its kind.", Help: "Correct the field that the message names.", URI: page, Level: sarif.Error},
		{ID: "warning", Summary: "The manifest is read, but probably not as it was meant.", Help: "Correct the field that the message names; --strict makes warnings errors.", URI: page, Level: sarif.Warning},
	}}
	var results []sarif.Result
	for _, v := range violations {
		level, text := sarif.Error, v.Message
		if v.IsWarning() {
			level = sarif.Warning
		}
		if v.Path != "" {
			text = v1.FieldPath(v.Path) + ": " + text
		}
		results = append(results, sarif.Result{Rule: string(level), Level: level, Message: text, Source: v.Source})
	}
	return sarif.Log(d, results)
}
