package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/replica"
)

// replicaOptions are the flags of "toolctl serve" that make it one of several.
type replicaOptions struct {
	keyFile string
	address string
}

// replicaNeedsHTTP are the flags that mean nothing over stdin and stdout.
var replicaNeedsHTTP = []string{"replica-key-file", "replica-address"}

// replicaShutdownDelay is --shutdown-delay with replicas: a balancer that asks for /readyz once a second has seen
// that this one stops, and the others know it.
const replicaShutdownDelay = 5 * time.Second

func (o *replicaOptions) bindReplica(f *pflag.FlagSet) {
	f.StringVar(&o.keyFile, "replica-key-file", "", "file with the shared key of all replicas on one store: a line of 64 hex digits, and a second line while you change keys; needs --http and a store")
	f.StringVar(&o.address, "replica-address", "", "address at which the other replicas reach this one, such as http://10.0.0.7:8080 (default: the listen address, or the first one that is not loopback if it listens on all)")
}

func (o *replicaOptions) checkReplica(cmd *cobra.Command) error {
	if o.keyFile == "" {
		if cmd.Flags().Changed("replica-key-file") {
			return usagef("--replica-key-file: expected the path of a file")
		}
		if o.address != "" {
			return usagef("--replica-address needs --replica-key-file: the key that the replicas share")
		}
		return nil
	}
	if o.address != "" {
		if err := replica.CheckAddress(o.address); err != nil {
			return usagef("--replica-address %q: %w", o.address, err)
		}
	}
	switch _, err := seal.ReadFile(o.keyFile); {
	case errors.Is(err, fs.ErrNotExist):
		return usagef("--replica-key-file: %w: make it with: (umask 077; openssl rand -hex 32 > FILE)", err)
	case err != nil:
		return statusError{exitInvalid, fmt.Sprintf("--replica-key-file: %s", err)}
	}
	return nil
}

// replicas is for the options of the gateway.
func (o *replicaOptions) replicas() *gateway.Replicas {
	if o.keyFile == "" {
		return nil
	}
	return &gateway.Replicas{KeyFile: o.keyFile, Address: o.address}
}
