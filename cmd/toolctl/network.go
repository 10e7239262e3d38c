package main

import (
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/pkg/permit"
)

const allowNetworkVariable = "TOOLCTL_ALLOW_NETWORK"

// bindNetwork adds the flags for what manifests may do and what tools may reach. where starts their help texts.
func (a *app) bindNetwork(f *pflag.FlagSet, where string) {
	a.bindPermit(f, where)
	f.StringArrayVar(&a.allowNetwork, "allow-network", nil, where+"let HTTP tools and MCP servers reach `CIDR|HOST[:PORT]`, such as 10.0.0.0/8 or db.internal:5432; may be repeated ($"+allowNetworkVariable+": separated by commas)")
}

// network reads the flag and the variable: what tools and MCP servers may reach besides the public
// internet is what either allows.
func (a *app) network() ([]string, error) {
	if _, err := netaddr.Parse(a.allowNetwork); err != nil {
		return nil, usagef("--allow-network: %w", err)
	}
	value, _ := a.env(allowNetworkVariable)
	listed := permit.Split(value)
	if _, err := netaddr.Parse(listed); err != nil {
		return nil, usagef("%s: %w", allowNetworkVariable, err)
	}
	return append(a.allowNetwork[:len(a.allowNetwork):len(a.allowNetwork)], listed...), nil
}
