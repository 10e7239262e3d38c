package envref

import (
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Env is what manifests may read of the environment of this program.
type Env struct {
	// Lookup returns the value of a variable.
	Lookup func(name string) (value string, ok bool)
	// Allow lists the variables that may be read, by names and by prefixes that end in *. Nil is
	// all; the program's own variables may not be read in any case.
	Allow []string
}

// own begin the names of the variables that configure this program: its store with the password
// (TOOLCTL_STORE, and PGPASSWORD and the like of libpq) and where its telemetry goes (OTEL_). Who
// writes a manifest need not be who runs the program.
var own = []string{"TOOLCTL_", "PG", "OTEL_"}

// Refuses says why manifests may not read a variable; "" when they may.
func (e Env) Refuses(name string) string {
	for _, prefix := range own {
		if strings.HasPrefix(strings.ToUpper(name), prefix) { // names have no case on Windows
			return fmt.Sprintf("environment variable %q belongs to toolctl (%s*), and manifests may not read it: use a variable with another name", name, strings.Join(own, "*, "))
		}
	}
	if e.Allow != nil && !slices.ContainsFunc(e.Allow, func(pattern string) bool { return v1.MatchPattern(pattern, name) }) {
		return fmt.Sprintf("environment variable %q may not be read by manifests here: --allow-env does not list it", name)
	}
	return ""
}

// Violation is that a manifest names a variable which it may not read; false when it may.
func (e Env) Violation(path, name string) (v1.Violation, bool) {
	why := e.Refuses(name)
	return v1.Violation{Path: path, Expected: "a variable that manifests may read", Got: name, Message: why, Forbidden: true}, why != ""
}

// Unset is that a variable has no value.
func Unset(path, name string) v1.Violation {
	return v1.Violation{Path: path, Expected: unset + name, Got: "nothing", Message: fmt.Sprintf("environment variable %q is not set", name)}
}

const unset = "environment variable "

// Unreadable keeps the violations that say that a variable has no value or may not be read.
func Unreadable(all []v1.Violation) []v1.Violation {
	return slices.DeleteFunc(all, func(v v1.Violation) bool { return !v.Forbidden && !strings.HasPrefix(v.Expected, unset) })
}

// Value returns the value of a variable that a manifest may read.
func (e Env) Value(name string) (string, bool) {
	if e.Refuses(name) != "" {
		return "", false
	}
	return e.Lookup(name)
}
