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

// Environment variables with the same meaning as the flags.
const (
	allowEnvVariable     = "TOOLCTL_ALLOW_ENV"
	allowNetworkVariable = "TOOLCTL_ALLOW_NETWORK"
)

// bindPermit adds the flags for what manifests may do. Their help begins with where.
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

// bindNetwork adds the flags for what manifests may do and what tools may reach. Their help begins with where.
func (a *app) bindNetwork(f *pflag.FlagSet, where string) {
	a.bindPermit(f, where)
	f.StringArrayVar(&a.conf.Gateway.AllowNetwork, "allow-network", nil, where+"let HTTP tools and MCP servers reach `CIDR|HOST[:PORT]`, such as 10.0.0.0/8 or db.internal:5432; may be repeated ($"+allowNetworkVariable+": separated by commas)")
}

// permits reads the flags of bindPermit, and the variables of flags that are not set. Without either, there are no
// rules.
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

// network reads the flag and the variable. Tools and MCP servers may reach the public internet, and the networks that
// either of the two allows.
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

// privateNetwork is the flag --allow-private-network: a list of namespaces, or without a value all of them.
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

// permitArgs returns the flags as arguments for a command line that starts this program.
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
