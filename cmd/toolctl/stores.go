package main

import (
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// stores are the kinds of store that --store can name.
func stores() store.Backends {
	return store.Backends{
		"":       sqlite.Open, // a file's path
		"file":   sqlite.Open,
		"sqlite": sqlite.Open,
		"memory": memory.Open,
	}
}
