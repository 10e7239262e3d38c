package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/permit"
)

// Variables that do what flags of the same name do.
const (
	allowEnvVariable     = "TOOLCTL_ALLOW_ENV"
	allowNetworkVariable = "TOOLCTL_ALLOW_NETWORK"
)

// bindPermit adds the flags that say what manifests may do. where begins their help.
func (a *app) bindPermit(f *pflag.FlagSet, where string) {
	for _, p := range permit.Flags() {
		if p.Name == permit.PrivateNetworkFlag {
			f.Var(privateNetwork{p.Value(&a.permitted), &a.conf.Gateway.AllowPrivateNetwork}, p.Name, where+"let HTTP tools and MCP servers reach loopback and private addresses; with =`NAMESPACES`, only manifests of these that "+p.What+", as with --allow-exec ($"+p.Variable+")")
			f.Lookup(p.Name).NoOptDefVal = "true"
			continue
		}
		f.Var(p.Value(&a.permitted), p.Name, where+"let manifests of these `NAMESPACES` "+p.What+"; * is all (default: all for files and a private store, none for PostgreSQL) ($"+p.Variable+")")
	}
	f.StringSliceVar(&a.conf.Gateway.AllowEnv, "allow-env", nil, where+"let manifests read only these environment `VARIABLES`, such as CRM_*,CITIES_TOKEN (default: all; they may never read TOOLCTL_*, PG* and OTEL_*) ($"+allowEnvVariable+")")
}

// bindNetwork adds the flags for what manifests may do and what tools may reach. where begins their help.
func (a *app) bindNetwork(f *pflag.FlagSet, where string) {
	a.bindPermit(f, where)
	f.StringArrayVar(&a.conf.Gateway.AllowNetwork, "allow-network", nil, where+"let HTTP tools and MCP servers reach `CIDR|HOST[:PORT]`, such as 10.0.0.0/8 or db.internal:5432; may be repeated ($"+allowNetworkVariable+": separated by commas)")
}

// permits reads the flags of bindPermit, and the variables of those that were not given. The rules are nil when
// there are none.
func (a *app) permits(g *gateway.Options) (err error) {
	if g.Permit, err = a.permitted.Lookup(a.env); err != nil {
		return usageError{err}
	}
	if text, ok := a.env(allowEnvVariable); ok && g.AllowEnv == nil {
		g.AllowEnv = permit.Split(text)
	}
	for _, name := range g.AllowEnv {
		if name != "*" && !envref.IsName(strings.TrimSuffix(name, "*")) {
			return usagef("--allow-env: %q is not the name of a variable, which may end in *", name)
		}
	}
	return nil
}

// network reads the flag and the variable: what tools and MCP servers may reach besides the public
// internet is what either allows.
func (a *app) network(g *gateway.Options) error {
	if _, err := netaddr.Parse(g.AllowNetwork); err != nil {
		return usagef("--allow-network: %w", err)
	}
	value, _ := a.env(allowNetworkVariable)
	listed := permit.Split(value)
	if _, err := netaddr.Parse(listed); err != nil {
		return usagef("%s: %w", allowNetworkVariable, err)
	}
	g.AllowNetwork = slices.Concat(g.AllowNetwork, listed)
	return nil
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
func permitArgs(g *gateway.Options) (args []string) {
	if g.Permit != nil {
		for _, p := range permit.Flags() {
			if v := p.Value(g.Permit); v.Given() {
				args = append(args, "--"+p.Name+"="+v.String())
			}
		}
	}
	if g.AllowPrivateNetwork {
		args = append(args, "--"+permit.PrivateNetworkFlag)
	}
	if g.AllowEnv != nil {
		args = append(args, "--allow-env="+strings.Join(g.AllowEnv, ","))
	}
	return args
}
