package sqlstore

import (
	"embed"

	"github.com/pressly/goose/v3"
)

// NewestMigration is the version to which the migrations of a backend bring a store.
func NewestMigration(migrations embed.FS) (newest int64, err error) {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		n, err := goose.NumericComponent(f.Name())
		if err != nil {
			return 0, err
		}
		newest = max(newest, n)
	}
	return newest, nil
}
