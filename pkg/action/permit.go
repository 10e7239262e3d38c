package action

import (
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/permit"
)

// Environment variables with the meaning of the flags --allow-env and --allow-network.
const (
	AllowEnvVariable     = "TOOLCTL_ALLOW_ENV"
	AllowNetworkVariable = "TOOLCTL_ALLOW_NETWORK"
)

// permitted returns the options of a gateway that checks manifests.
func (c *Config) permitted() (o gateway.Options, err error) {
	o = c.Gateway
	if c.Permit == nil {
		return o, nil
	}
	if o.Permit, err = c.Permit.Lookup(c.env); err != nil {
		return o, &UsageError{err}
	}
	if text, ok := c.env(AllowEnvVariable); ok && o.AllowEnv == nil {
		o.AllowEnv = permit.Split(text)
	}
	for _, name := range o.AllowEnv {
		if name != "*" && !envref.IsName(strings.TrimSuffix(name, "*")) {
			return o, usagef("--allow-env: %q is not the name of a variable, which may end in *", name)
		}
	}
	return o, nil
}

// reaching returns the options of a gateway that calls tools and MCP servers. They may reach the public internet, and
// the networks that the flag or the variable allows.
func (c *Config) reaching() (gateway.Options, error) {
	o, err := c.permitted()
	if err != nil || c.Permit == nil {
		return o, err
	}
	if _, err := netaddr.Parse(o.AllowNetwork); err != nil {
		return o, usagef("--allow-network: %w", err)
	}
	value, _ := c.env(AllowNetworkVariable)
	listed := permit.Split(value)
	if _, err := netaddr.Parse(listed); err != nil {
		return o, usagef("%s: %w", AllowNetworkVariable, err)
	}
	o.AllowNetwork = slices.Concat(o.AllowNetwork, listed)
	return o, nil
}
