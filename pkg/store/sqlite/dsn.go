package sqlite

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// parseDSN returns the absolute path of the file that a DSN names. Errors show only the scheme, because the rest of a
// foreign DSN may contain a password.
func parseDSN(dsn string) (string, error) {
	const expected = `expected a file's path, "file:PATH" or "sqlite:PATH"`
	path := dsn
	for _, scheme := range []string{"file:", "sqlite:"} {
		if rest, ok := strings.CutPrefix(dsn, scheme); ok {
			if strings.Contains(rest, "?") {
				return "", fmt.Errorf("store: %sPATH takes no options: leave out everything from the %q on", scheme, "?")
			}
			path = strings.TrimPrefix(rest, "//")
		}
	}
	switch scheme, _, foreign := strings.Cut(path, "://"); {
	case foreign:
		return "", fmt.Errorf("store: unknown kind of store %q: %s", scheme, expected)
	case path == "" || strings.ContainsRune(path, 0):
		return "", fmt.Errorf("store: no path: %s", expected)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("store %q: %w", path, err)
	}
	return abs, nil
}

// pageSize is SQLite's default (sqlite.org/pgszchng2016.html).
const pageSize = 4096

// driverDSN returns the driver's DSN for a store in a file.
func driverDSN(path string, maxBytes int64) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	query := "mode=rw&" + settings(maxBytes) // never creates: prepareFile does, with the right permissions
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query}).String()
}

// settings returns the settings of every connection. A connection waits for a short time in SQLite itself, and then
// [Store.retry] continues, because SQLite would not notice that a context has ended. A store may come with a
// repository, so its schema is not trusted (sqlite.org/pragma.html#pragma_trusted_schema).
func settings(maxBytes int64) string {
	q := url.Values{
		"_busy_timeout": {"100"},
		"_synchronous":  {"NORMAL"},
		"_foreign_keys": {"on"},
		"_pragma":       {"trusted_schema(0)"},
		"_txlock":       {"immediate"},
	}
	if maxBytes > 0 {
		q.Add("_pragma", fmt.Sprintf("max_page_count(%d)", max(maxBytes/pageSize, 1)))
	}
	return q.Encode()
}
