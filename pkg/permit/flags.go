package permit

import (
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Flag is the flag for one of the [Rules], and the variable that is its default.
type Flag struct {
	Name, Variable string
	// What completes the phrase "let manifests of these namespaces …".
	What string
	list func(*Rules) *[]string
}

// Flags returns all flags.
func Flags() []Flag {
	return []Flag{
		{execFlag, "TOOLCTL_ALLOW_EXEC", "run programs as tools (spec.exec)", func(r *Rules) *[]string { return &r.Exec }},
		{unsandboxedFlag, "TOOLCTL_ALLOW_UNSANDBOXED", "run them without a sandbox", func(r *Rules) *[]string { return &r.Unsandboxed }},
		{commandFlag, "TOOLCTL_ALLOW_COMMAND", "start MCP servers (spec.command)", func(r *Rules) *[]string { return &r.Command }},
		{PrivateNetworkFlag, "TOOLCTL_ALLOW_PRIVATE_NETWORK", "say allow_private_network", func(r *Rules) *[]string { return &r.PrivateNetwork }},
	}
}

// Names of flags.
const (
	execFlag        = "allow-exec"
	unsandboxedFlag = "allow-unsandboxed"
	commandFlag     = "allow-command"
	// PrivateNetworkFlag is the flag for [Rules.PrivateNetwork].
	PrivateNetworkFlag = "allow-private-network"
)

// Value returns the flag's value for a command line: namespaces separated by commas. After a given flag its list is not
// nil, even if it is empty.
func (f Flag) Value(r *Rules) Namespaces { return Namespaces{f.list(r)} }

// Lookup reads the variables of flags that were not given. It returns nil if there are neither flags nor variables.
func (r *Rules) Lookup(env func(string) (string, bool)) (*Rules, error) {
	out, given := *r, false
	for _, f := range Flags() {
		to := f.list(&out)
		if text, ok := env(f.Variable); ok && *to == nil {
			if err := (Namespaces{to}).Set(text); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Variable, err)
			}
		}
		given = given || *to != nil
	}
	if !given {
		return nil, nil
	}
	return &out, nil
}

// Own returns the rules for the user's own manifests, which may do everything for which there is no flag; nil stays
// nil.
func (r *Rules) Own() *Rules {
	if r == nil {
		return nil
	}
	own := *r
	for _, f := range Flags() {
		if list := f.list(&own); *list == nil {
			*list = []string{"*"}
		}
	}
	return &own
}

// Namespaces is a list of namespaces as a flag.
type Namespaces struct{ list *[]string }

// Set adds the namespaces in a text.
func (n Namespaces) Set(text string) error {
	names := Split(text)
	for _, name := range names {
		if name != "*" && !v1.IsName(name) {
			return fmt.Errorf("%q is not the name of a namespace: expected names with commas between them, or *", name)
		}
	}
	*n.list = append(append([]string{}, *n.list...), names...)
	return nil
}

// String returns the list in the form of the flag.
func (n Namespaces) String() string {
	if n.list == nil { // package flag calls String on a zero value
		return ""
	}
	return strings.Join(*n.list, ",")
}

// Type returns the name of the value's type in help texts.
func (Namespaces) Type() string { return "strings" }

// Given reports whether the flag was given.
func (n Namespaces) Given() bool { return *n.list != nil }

// Split returns the items of a list separated by commas or blanks. The result is never nil.
func Split(text string) []string {
	return append([]string{}, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
}
