package lock_test

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
)

// TestDrift: servers that were not queried have not drifted.
func TestDrift(t *testing.T) {
	server := func(name, version string) lock.Server {
		return lock.Server{Key: v1.Key{Kind: v1.KindMCPServer, Namespace: "default", Name: name}, ProtocolVersion: version}
	}
	f := lock.File{Servers: []lock.Server{server("a", "1"), server("b", "1")}}
	if got := f.Drift([]lock.Server{server("a", "1"), server("c", "1")}); len(got) != 1 || got[0].What != lock.Added {
		t.Errorf("got %v", got)
	}
	if got := f.Drift([]lock.Server{server("a", "2")}); len(got) != 1 || got[0].Server.Name != "a" {
		t.Errorf("got %v", got)
	}
}
