package action

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// Validate is [Check] with a verdict. It also reports unset environment variables.
type Validate struct {
	Check
	// Only selects the objects to report. Violations outside of objects are reported too, because an unreadable
	// file may contain any object. Default: all.
	Only func(v1.Object) bool
	// Path is the file or folder to report. Default: everything.
	Path string
	// Strict treats warnings as errors, except those about unset variables.
	Strict bool
	// RequireEnv treats unset variables as errors. Default: they are warnings.
	RequireEnv bool
}

// Validation is the result of [Validate].
type Validation struct {
	Valid      bool           `json:"valid"`
	Files      int            `json:"files"`
	Objects    int            `json:"objects"`
	Errors     int            `json:"errors"`
	Warnings   int            `json:"warnings"`
	Violations []v1.Violation `json:"violations"`

	// Strict is the number of warnings that count as errors.
	Strict int `json:"-"`
}

// Run loads and checks the manifests. Their errors are in the Validation.
func (o Validate) Run(ctx context.Context) (Validation, error) {
	set, violations, err := o.Check.Run(ctx)
	if err != nil {
		return Validation{}, err
	}
	violations = append(violations, o.brokenLocks()...)
	objects, files := set.Objects, set.Files
	if o.Only != nil {
		violations = violationsOf(violations, objects, o.Only)
		objects = slices.DeleteFunc(slices.Clone(objects), func(obj v1.Object) bool { return !o.Only(obj) })
	}
	if o.Path != "" {
		violations = slices.DeleteFunc(violations, func(v v1.Violation) bool { return !Within(o.Path, v.Source) })
		objects = slices.DeleteFunc(slices.Clone(objects), func(obj v1.Object) bool { return !Within(o.Path, obj.Head().Source) })
		files = countFiles(objects, violations)
	}
	unset := o.unset(objects)
	violations = append(violations, unset...)
	manifest.SortViolations(violations)
	r := Validation{Files: files, Objects: len(objects), Violations: violations}
	if r.Violations == nil {
		r.Violations = []v1.Violation{}
	}
	for i, v := range violations {
		if v.IsWarning() {
			r.Warnings++
		} else {
			r.Errors++
			violations[i].Severity = v1.SeverityError
		}
	}
	if o.Strict {
		r.Strict = r.Warnings
		if !o.RequireEnv {
			r.Strict -= len(unset) // CI seldom has the secrets, so unset variables are not strict
		}
	}
	r.Valid = r.Errors+r.Strict == 0
	return r, nil
}

// Within reports whether a position is in a file or folder; "." contains everything.
func Within(path string, at v1.Source) bool {
	return path == "." || at.File == path || strings.HasPrefix(at.File, path+string(filepath.Separator))
}

func countFiles(objects []v1.Object, violations []v1.Violation) int {
	files := map[string]bool{}
	for _, obj := range objects {
		files[obj.Head().Source.File] = true
	}
	for _, v := range violations {
		files[v.Source.File] = true
	}
	return len(files)
}

// violationsOf returns the violations of the objects for which has is true, and those outside of objects. An
// object extends to the next one in its file.
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

// unset returns the environment variables that the manifests read and that are not set.
func (o Validate) unset(objects []v1.Object) []v1.Violation {
	all := onePerVariable(Unset(objects, o.Options.Env))
	if !o.RequireEnv {
		for i := range all {
			all[i].Severity = v1.SeverityWarning
		}
	}
	return all
}

// onePerVariable keeps the first violation for each unset variable, and adds the other positions to its
// message.
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
			places, more = places[:most], " and "+clip.Count(n, "more place")
		}
		out[i].Message += " (it is read at " + strings.Join(places, ", ") + more + ", too)"
	}
	return out
}

// Unset returns the variables that objects read and env does not have. Default of env: os.LookupEnv.
func Unset(objects []v1.Object, env func(string) (string, bool)) []v1.Violation {
	if env == nil {
		env = os.LookupEnv
	}
	asked := map[string]registry.Environment{}
	for _, e := range executors.All(executors.Options{Env: env}) {
		if env, ok := e.(registry.Environment); ok {
			asked[e.Name()] = env
		}
		if c, ok := e.(io.Closer); ok {
			defer c.Close() // there is no connection to close
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
	return slices.DeleteFunc(all, func(f v1.Violation) bool { return f.Forbidden }) // the check reports those
}
