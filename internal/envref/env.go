package envref

import (
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Env is the part of the program's environment that manifests may read.
type Env struct {
	// Lookup returns the value of a variable.
	Lookup func(name string) (value string, ok bool)
	// Allow lists the variables that may be read, as names or as prefixes that end in *. Nil allows
	// all. The program's own variables are never allowed.
	Allow []string
}

// own are the prefixes of the variables that configure this program: its store with the password
// (TOOLCTL_STORE, and libpq variables such as PGPASSWORD) and its telemetry target (OTEL_). The
// author of a manifest may not be the user who runs the program.
var own = []string{"TOOLCTL_", "PG", "OTEL_"}

// Refuses returns the reason why manifests may not read a variable, or "" if they may.
func (e Env) Refuses(name string) string {
	for _, prefix := range own {
		if strings.HasPrefix(strings.ToUpper(name), prefix) { // names ignore case on Windows
			return fmt.Sprintf("environment variable %q belongs to toolctl (%s*), and manifests may not read it: use a variable with another name", name, strings.Join(own, "*, "))
		}
	}
	if e.Allow != nil && !slices.ContainsFunc(e.Allow, func(pattern string) bool { return v1.MatchPattern(pattern, name) }) {
		return fmt.Sprintf("environment variable %q may not be read by manifests here: --allow-env does not list it", name)
	}
	return ""
}

// Violation returns the violation for a manifest that names a variable that it may not read. It
// returns false if the variable may be read.
func (e Env) Violation(path, name string) (v1.Violation, bool) {
	why := e.Refuses(name)
	return v1.Violation{Path: path, Expected: "a variable that manifests may read", Got: name, Message: why, Forbidden: true}, why != ""
}

// Unset returns the violation for a variable without a value.
func Unset(path, name string) v1.Violation {
	return v1.Violation{Path: path, Expected: unset + name, Got: "nothing", Message: fmt.Sprintf("environment variable %q is not set", name)}
}

const unset = "environment variable "

// Unreadable selects the violations about variables that have no value or may not be read.
func Unreadable(all []v1.Violation) []v1.Violation {
	return slices.DeleteFunc(all, func(v v1.Violation) bool { return !v.Forbidden && !strings.HasPrefix(v.Expected, unset) })
}

// Value returns the value of a variable if manifests may read it.
func (e Env) Value(name string) (string, bool) {
	if e.Refuses(name) != "" {
		return "", false
	}
	return e.Lookup(name)
}
