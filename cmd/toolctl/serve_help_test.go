package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// The help of serve lists every flag exactly once.
func TestServeFlagGroups(t *testing.T) {
	cmd := newServeCmd(&app{})
	cmd.InitDefaultHelpFlag()
	listed := map[string]int{}
	for _, g := range serveFlagGroups {
		for _, name := range g.flags {
			listed[name]++
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("group %s lists --%s, which serve does not have", g.title, name)
			}
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if n := listed[f.Name]; !f.Hidden && n != 1 {
			t.Errorf("--%s is in %d groups, expected 1", f.Name, n)
		}
	})
}
