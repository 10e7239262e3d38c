package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"toolctl.dev/toolctl/internal/tty"
)

// linkFolder returns the folder with the sockets at which the consoles of this user give out new links.
func (a *app) linkFolder() (string, error) {
	dir, _ := a.env("XDG_RUNTIME_DIR")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "toolctl"), nil
}

// linkKey begins the name of the socket. Commands that serve the same manifests have the same key.
func (o *serveOptions) linkKey() string {
	places := append([]string(nil), o.conf.Files...)
	if dsn, err := o.storeDSN(); err == nil && (len(o.conf.Files) == 0 || o.conf.DSN != "") {
		places = append(places, "store", dsn)
	}
	for i, at := range places {
		if _, err := os.Stat(at); err == nil {
			if places[i], err = filepath.Abs(at); err != nil {
				places[i] = at
			}
		}
	}
	raw, _ := json.Marshal([]any{places, o.Pull.Address, o.conf.Namespace, o.conf.Gateway.Subset.Selector}) // texts can always be encoded
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:16]
}

// offerLinks gives this user new links to the console, for "toolctl ui" and SIGUSR1, until the returned functions are called.
func (o *serveOptions) offerLinks(at net.Addr, link func() string, show func(string)) (ended []func()) {
	ended = append(ended, tty.OnUserSignal(func() { show(link()) }))
	_, port, _ := net.SplitHostPort(at.String())
	dir, err := o.linkFolder()
	if err == nil {
		var stop func()
		if stop, err = tty.Answer(filepath.Join(dir, o.linkKey()+"-"+port+".sock"), link); err == nil {
			return append(ended, stop)
		}
	}
	o.log.Debug("'toolctl ui' cannot ask for a new link to this console", slog.Any("error", err))
	return ended
}

// running returns new links to the running consoles of this user that serve the same manifests. If the command line names
// no manifests and the folder has none, it returns links to all consoles. A port other than 0 selects one.
func (o *serveOptions) running(port int) (links []string) {
	dir, err := o.linkFolder()
	if err != nil {
		return nil
	}
	key, at := o.linkKey(), "*"
	if port != 0 {
		at = strconv.Itoa(port)
	}
	if len(o.conf.Files) == 0 && o.conf.Gateway.Subset.Selector == "" && o.conf.Namespace == "" {
		if _, err := o.storeDSN(); err != nil || o.conf.DSN == "" && port != 0 {
			key = "*"
		}
	}
	sockets, _ := fs.Glob(os.DirFS(dir), key+"-"+at+".sock") // the pattern is valid
	for _, socket := range sockets {
		link, err := tty.Ask(filepath.Join(dir, socket))
		if err != nil {
			o.logger().Debug("a console may already be running, but it does not answer", "socket", socket, slog.Any("error", err))
		} else if link != "" {
			links = append(links, link)
		}
	}
	return links
}
