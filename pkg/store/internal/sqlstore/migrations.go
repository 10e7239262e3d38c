package sqlstore

import (
	"embed"

	"github.com/pressly/goose/v3"
)

// NewestMigration returns the newest version among the migrations of a backend.
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
