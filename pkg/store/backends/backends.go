// Package backends lists the kinds of store that a program can open.
package backends

import (
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/postgres"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// All returns the kinds of store that --store can name, by the scheme of their DSN.
func All() store.Backends {
	return store.Backends{
		"":       sqlite.Open, // a file path
		"file":   sqlite.Open,
		"sqlite": sqlite.Open,
		"memory": memory.Open,

		"postgres":   postgres.Open,
		"postgresql": postgres.Open,
	}
}
