package main

import (
	"strings"

	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/pkg/permit"
)

// permitted are the flags that say what manifests may do on this machine.
type permitted struct {
	rules   permit.Rules
	env     []string
	private bool // everything may reach private addresses
}

// bindPermit adds the flags that say what manifests may do. where begins their help.
func (a *app) bindPermit(f *pflag.FlagSet, where string) {
	for _, p := range permit.Flags() {
		if p.Name == permit.PrivateNetworkFlag {
			f.Var(privateNetwork{p.Value(&a.permit.rules), &a.permit.private}, p.Name, where+"let HTTP tools and MCP servers reach loopback and private addresses; with =`NAMESPACES`, only manifests of these that "+p.What+", as with --allow-exec ($"+p.Variable+")")
			f.Lookup(p.Name).NoOptDefVal = "true"
			continue
		}
		f.Var(p.Value(&a.permit.rules), p.Name, where+"let manifests of these `NAMESPACES` "+p.What+"; * is all (default: all for files and a private store, none for PostgreSQL) ($"+p.Variable+")")
	}
	f.StringSliceVar(&a.permit.env, "allow-env", nil, where+"let manifests read only these environment `VARIABLES`, such as CRM_*,CITIES_TOKEN (default: all; they may never read TOOLCTL_*, PG* and OTEL_*) ($"+allowEnvVariable+")")
}

const allowEnvVariable = "TOOLCTL_ALLOW_ENV"

// permits reads the flags, and the variables of those that were not given. The rules are nil when
// there are none.
func (a *app) permits() (*permit.Rules, []string, error) {
	rules, err := a.permit.rules.Lookup(a.env)
	if err != nil {
		return nil, nil, usageError{err}
	}
	env := a.permit.env
	if text, ok := a.env(allowEnvVariable); ok && env == nil {
		env = permit.Split(text)
	}
	for _, name := range env {
		if name != "*" && !envref.IsName(strings.TrimSuffix(name, "*")) {
			return nil, nil, usagef("--allow-env: %q is not the name of a variable, which may end in *", name)
		}
	}
	return rules, env, nil
}

// privateNetwork is a flag that lists namespaces, and that without a value is about everything.
type privateNetwork struct {
	permit.Namespaces
	all *bool
}

func (p privateNetwork) Set(text string) error {
	if text == "true" || text == "false" {
		*p.all = text == "true"
		return nil
	}
	return p.Namespaces.Set(text)
}

// permitArgs are the flags again, for a command line that runs this program elsewhere.
func (a *app) permitArgs() ([]string, error) {
	rules, env, err := a.permits()
	var args []string
	if rules != nil {
		for _, p := range permit.Flags() {
			if v := p.Value(rules); v.Given() {
				args = append(args, "--"+p.Name+"="+v.String())
			}
		}
	}
	if a.permit.private {
		args = append(args, "--"+permit.PrivateNetworkFlag)
	}
	if env != nil {
		args = append(args, "--allow-env="+strings.Join(env, ","))
	}
	return args, err
}
