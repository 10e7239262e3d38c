package action

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"toolctl.dev/toolctl/internal/tty"
)

// Consoles are the running consoles of this user, each of which gives out links at a socket that only this user can
// open. Consoles of the same manifests have the same key in the names of their sockets.
type Consoles struct {
	*Config
	// Source is the address of the repository whose manifests are served. Default: none.
	Source string
}

// folder returns the folder of the sockets.
func (c *Consoles) folder() (string, error) {
	dir, _ := c.env("XDG_RUNTIME_DIR")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "toolctl"), nil
}

func (c *Consoles) key() string {
	places := append([]string(nil), c.Files...)
	if dsn, err := c.StoreDSN(false); err == nil && (len(c.Files) == 0 || c.DSN != "") {
		places = append(places, "store", dsn)
	}
	for i, at := range places {
		if _, err := os.Stat(at); err == nil {
			if places[i], err = filepath.Abs(at); err != nil {
				places[i] = at
			}
		}
	}
	raw, _ := json.Marshal([]any{places, c.Source, c.Namespace, c.Gateway.Subset.Selector}) // texts can always be encoded
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:16]
}

// Offer gives this user links to the console at an address until stop is called.
func (c *Consoles) Offer(at net.Addr, link func() string) (stop func(), err error) {
	dir, err := c.folder()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(at.String())
	return tty.Answer(filepath.Join(dir, c.key()+"-"+port+".sock"), link)
}

// Links returns links to the running consoles that show the same manifests. If the options name no manifests and the
// folder has none, it returns links to all consoles. A port other than 0 selects one. The error has the consoles that
// gave no answer.
func (c *Consoles) Links(port int) (links []string, err error) {
	dir, err := c.folder()
	if err != nil {
		return nil, err
	}
	key, at := c.key(), "*"
	if port != 0 {
		at = strconv.Itoa(port)
	}
	if len(c.Files) == 0 && c.Gateway.Subset.Selector == "" && c.Namespace == "" {
		if _, err := c.StoreDSN(false); err != nil || c.DSN == "" && port != 0 {
			key = "*"
		}
	}
	sockets, _ := fs.Glob(os.DirFS(dir), key+"-"+at+".sock") // the pattern is valid
	for _, socket := range sockets {
		link, askErr := tty.Ask(filepath.Join(dir, socket))
		if askErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", socket, askErr))
		} else if link != "" {
			links = append(links, link)
		}
	}
	return links, err
}
