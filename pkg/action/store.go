package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

// OpenStore opens the store, and creates it if create is set and it does not exist.
func (c *Config) OpenStore(ctx context.Context, create bool) (store.Store, error) {
	dsn, err := c.StoreDSN(create)
	if err != nil {
		return nil, err
	}
	return c.OpenNamed(ctx, dsn, create)
}

// OpenNamed opens the store that dsn names.
func (c *Config) OpenNamed(ctx context.Context, dsn string, create bool) (store.Store, error) {
	if c.MaxStoreBytes < 0 {
		return nil, usagef("--store-max-bytes %d: expected 0 or more", c.MaxStoreBytes)
	}
	if n := c.MaxStoreConnections; n < 0 || n > 0 && n < 3 {
		return nil, usagef("--store-max-connections %d: expected 3 or more", n)
	}
	s, err := backends.All().Open(ctx, dsn, store.Options{Create: create, MaxBytes: c.MaxStoreBytes, MaxConnections: c.MaxStoreConnections})
	if errors.Is(err, fs.ErrNotExist) {
		shown, _ := store.Shown(dsn)
		return nil, &UsageError{noStoreError{fmt.Errorf("there is no store at %s: apply manifests with 'toolctl apply -f PATH', or pass files with -f", shown)}}
	}
	return s, err
}

// withStore opens the store for do, and creates it first if create is set and it does not exist.
func (c *Config) withStore(ctx context.Context, create bool, do func(store.Store) error) error {
	s, err := c.OpenStore(ctx, create)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// withKept opens the store for a verb that is only about the store. With -f, it fails with the text notFiles.
func (c *Config) withKept(ctx context.Context, notFiles string, do func(store.Store) error) error {
	if err := c.noFiles(notFiles); err != nil {
		return err
	}
	if _, err := c.StoreDSN(false); err != nil {
		return usagef("there is no store: no %s folder here or in a parent; 'toolctl apply -f PATH' creates one, and --store selects another", StoreDir)
	}
	return c.withStore(ctx, false, do)
}

// aboutStore is the text of withKept for most verbs.
const aboutStore = "the command works on the store, not on files"

func (c *Config) noFiles(text string) error {
	if len(c.Files) > 0 {
		return usagef("%s: remove -f, and select a store with --store if it is not the default one", text)
	}
	return nil
}

// StoreDir is the name of the folder with the store.
const StoreDir = ".toolctl"

const storeFile = "state.db"

// StoreDSN returns the address of the store, or with create the address for a new one.
func (c *Config) StoreDSN(create bool) (string, error) {
	if c.DSN != "" {
		return c.DSN, nil
	}
	if v, ok := c.env("TOOLCTL_STORE"); ok && v != "" {
		return v, nil
	}
	return LocalStore(create)
}

// LocalStore returns the path of the store of the current folder or the nearest parent that has one.
func LocalStore(create bool) (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, StoreDir)); err == nil && info.IsDir() {
			return filepath.Join(dir, StoreDir, storeFile), nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if create {
		return filepath.Join(cwd, StoreDir, storeFile), nil
	}
	return "", &UsageError{noStoreError{fmt.Errorf("no manifests: pass files with -f, or create a store with 'toolctl apply -f PATH' (no %s here or in a parent)", StoreDir)}}
}

// StoreFolder returns the folder of the store, for files beside it; "" without a store, or with a store in memory.
func (c *Config) StoreFolder() string {
	dsn, err := c.StoreDSN(false)
	if err != nil {
		return ""
	}
	for _, scheme := range []string{"file:", "sqlite:"} {
		if rest, ok := strings.CutPrefix(dsn, scheme); ok {
			dsn = strings.TrimPrefix(rest, "//")
		}
	}
	if dsn == ":memory:" || strings.HasPrefix(dsn, "memory:") {
		return ""
	}
	if strings.Contains(dsn, "://") { // a database has no folder: use that of a local store
		if dsn, err = LocalStore(true); err != nil {
			return ""
		}
	}
	return filepath.Dir(dsn)
}

// emptyStore replaces a store that does not exist and must not be created.
func emptyStore(ctx context.Context) (store.Store, error) {
	return backends.All().Open(ctx, "memory:", store.Options{Create: true})
}

// noStoreError reports that the store does not exist. Other errors on opening it must not be mistaken for that.
type noStoreError struct{ error }

func missing(err error) bool { return errors.As(err, new(noStoreError)) }

// Objects returns the objects in a store.
func Objects(ctx context.Context, s store.Objects, o store.ListOptions) ([]v1.Object, error) {
	list, err := s.List(ctx, o)
	if err != nil {
		return nil, err
	}
	objects := make([]v1.Object, len(list.Records))
	for i, r := range list.Records {
		objects[i] = r.Object
	}
	return objects, nil
}
