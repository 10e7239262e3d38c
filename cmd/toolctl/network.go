package main

import (
	"strings"

	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/internal/netaddr"
)

// network is what tools and MCP servers may reach besides the public internet.
type network struct {
	private bool     // all of it
	allowed []string // CIDR|HOST[:PORT]
}

const allowNetworkVariable = "TOOLCTL_ALLOW_NETWORK"

// bindNetwork adds the flags that say what tools may reach. where begins their help.
func (a *app) bindNetwork(f *pflag.FlagSet, where string) {
	f.BoolVar(&a.allowPrivate, "allow-private-network", false, where+"let HTTP tools and MCP servers reach loopback and private addresses")
	f.StringArrayVar(&a.allowNetwork, "allow-network", nil, where+"let HTTP tools and MCP servers reach `CIDR|HOST[:PORT]`, such as 10.0.0.0/8 or db.internal:5432; may be repeated ($"+allowNetworkVariable+": separated by commas)")
}

// network reads the flags and the variable: what either allows is allowed.
func (a *app) network() (network, error) {
	n := network{a.allowPrivate, a.allowNetwork}
	if _, err := netaddr.Parse(a.allowNetwork); err != nil {
		return n, usagef("--allow-network: %w", err)
	}
	value, _ := a.env(allowNetworkVariable)
	listed := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	if _, err := netaddr.Parse(listed); err != nil {
		return n, usagef("%s: %w", allowNetworkVariable, err)
	}
	n.allowed = append(n.allowed[:len(n.allowed):len(n.allowed)], listed...)
	return n, nil
}
