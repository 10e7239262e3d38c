package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/source/oci"
	"toolctl.dev/toolctl/pkg/store"
)

// Export writes the manifests of the store, and the files that they refer to, to a new folder.
type Export struct {
	*Config
	Selector string
	Dir      string
}

// Exported is the result of an [Export].
type Exported struct{ Objects, Files int }

// Run writes all files or none.
func (e *Export) Run(ctx context.Context) (*Exported, error) {
	if e.Dir == "" {
		return nil, errNoDir
	}
	has, err := Labeled(e.Selector)
	if err != nil {
		return nil, err
	}
	done := &Exported{}
	return done, e.withKept(ctx, aboutStore, func(s store.Store) error {
		objects, err := Objects(ctx, s, store.ListOptions{Layout: true})
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(o v1.Object) bool { return !has(o) || e.Namespace != "" && o.Head().Namespace() != e.Namespace })
		if err := newFolder(e.Dir); err != nil {
			return err
		}
		files, err := manifest.Export(objects)
		done.Objects, done.Files = len(objects), len(files)
		if err != nil {
			return err
		}
		return fileset.Write(e.Dir, files)
	})
}

var errNoDir = usagef("name the folder to write with --dir")

// newFolder refuses a folder that is not empty.
func newFolder(dir string) error {
	if dir == "" {
		return errNoDir
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return usagef("--dir %s: it is not empty: name a new folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef("--dir %s: %w", dir, err)
	}
	return nil
}

// Package has the verbs for manifests in an OCI registry, at oci://HOST/REPOSITORY[:TAG][@DIGEST]: [Package.Push],
// [Package.Pull], [Package.Sign] and [Package.Verify].
type Package struct {
	*Config
	Address string
	// Selector selects the objects to push. Default: all.
	Selector string
	// Dir is the new folder for the files of a pulled package.
	Dir string
	// Key is a file with the private key for signing, or with public keys, one of which must have signed.
	Key string
	// Warned is called with the warnings about pushed manifests.
	Warned func([]v1.Violation)
}

// Packaged is the result of a verb of [Package].
type Packaged struct {
	Package string `json:"package"` // address with the digest
	Digest  string `json:"digest"`
	Objects int    `json:"objects,omitempty"`
	Files   int    `json:"files,omitempty"`
	// Key is the ID of the key that signed.
	Key string `json:"key,omitempty"`
	Dir string `json:"dir,omitempty"`
}

// with opens the repository for do.
func (p *Package) with(do func(*oci.Repository, *Packaged) error) (*Packaged, error) {
	at, err := source.ParseAddress(p.Address)
	if err != nil || at.IsGit() {
		return nil, usagef("%q: expected oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:…", p.Address)
	}
	r, err := oci.Open(at, oci.Options{Env: p.env})
	if err != nil {
		return nil, usagef("%s: %w", p.Address, err)
	}
	done := &Packaged{}
	err = errors.Join(do(r, done), r.Close())
	done.Package = r.At(done.Digest)
	return done, err
}

// withDigest resolves the address to a digest for do.
func (p *Package) withDigest(ctx context.Context, do func(*oci.Repository, *Packaged) error) (*Packaged, error) {
	return p.with(func(r *oci.Repository, done *Packaged) (err error) {
		if done.Digest, err = r.Digest(ctx); err == nil {
			err = do(r, done)
		}
		return registryError(r, err)
	})
}

func registryError(r *oci.Repository, err error) error {
	if err == nil {
		return nil
	}
	return SourceError(fmt.Errorf("%s: %w", r, err))
}

// Push checks the manifests and pushes them with the files that they refer to.
func (p *Package) Push(ctx context.Context) (*Packaged, error) {
	if len(p.Files) == 0 {
		return nil, usagef("name the manifests to push with -f")
	}
	return p.with(func(r *oci.Repository, done *Packaged) error {
		has, err := Labeled(p.Selector)
		if err != nil {
			return err
		}
		set, warnings, err := p.Load(ctx, Reading{})
		if err != nil {
			return err
		}
		if p.Warned != nil {
			p.Warned(warnings)
		}
		objects := slices.DeleteFunc(set.Objects, func(o v1.Object) bool { return !has(o) })
		if len(objects) == 0 {
			return usagef("no objects to push")
		}
		if err := fromOneFolder(objects); err != nil {
			return err
		}
		files, err := manifest.Export(objects)
		if err != nil {
			return err
		}
		done.Objects, done.Files = len(objects), len(files)
		done.Digest, err = r.Push(ctx, files)
		return registryError(r, err)
	})
}

// fromOneFolder makes the paths of objects relative to the deepest folder that contains all of them and the
// files they refer to, so that a package does not depend on the folder in which it is built.
func fromOneFolder(objects []v1.Object) error {
	top := ""
	holds := func(dir string) bool { return dir == top || strings.HasPrefix(dir, strings.TrimSuffix(top, "/")+"/") }
	for _, o := range objects {
		h := o.Head()
		if h.Source.File == "" || h.Source.File == "-" {
			continue
		}
		file, err := filepath.Abs(h.Source.File)
		if err != nil {
			return err
		}
		h.Source.File = file
		named := []string{file}
		for name := range h.Files {
			named = append(named, filepath.Join(filepath.Dir(file), name))
		}
		for _, name := range named {
			dir := filepath.ToSlash(filepath.Dir(name))
			if top == "" {
				top = dir
			}
			for !holds(dir) && top != path.Dir(top) {
				top = path.Dir(top)
			}
		}
	}
	for _, o := range objects {
		h := o.Head()
		if !filepath.IsAbs(h.Source.File) {
			continue
		}
		var err error
		if h.Source.File, err = filepath.Rel(filepath.FromSlash(top), h.Source.File); err != nil {
			return err
		}
	}
	return nil
}

// Pull writes the files of a package to a new folder.
func (p *Package) Pull(ctx context.Context) (*Packaged, error) {
	if err := newFolder(p.Dir); err != nil {
		return nil, err
	}
	var keys oci.Keys
	if p.Key != "" {
		var err error
		if keys, err = readKey(p.Key, oci.ReadKeys); err != nil {
			return nil, err
		}
	}
	var files map[string][]byte
	done, err := p.withDigest(ctx, func(r *oci.Repository, done *Packaged) (err error) {
		if keys != nil {
			if done.Key, err = r.Verify(ctx, done.Digest, keys); err != nil {
				return err
			}
		}
		files, err = r.Pull(ctx, done.Digest)
		return err
	})
	if err != nil {
		return nil, err
	}
	done.Dir, done.Files = p.Dir, len(files)
	return done, fileset.Write(p.Dir, files)
}

// Sign signs a package with a private key.
func (p *Package) Sign(ctx context.Context) (*Packaged, error) {
	if p.Key == "" {
		return nil, usagef("name the private key with --key")
	}
	if err := perm.File(p.Key); err != nil { // only the owner may read a private key
		return nil, err
	}
	key, err := readKey(p.Key, oci.ReadSigner)
	if err != nil {
		return nil, err
	}
	return p.withDigest(ctx, func(r *oci.Repository, done *Packaged) error {
		done.Key = key.ID()
		return r.Sign(ctx, done.Digest, key)
	})
}

// Verify checks that one of the public keys signed a package.
func (p *Package) Verify(ctx context.Context) (*Packaged, error) {
	if p.Key == "" {
		return nil, usagef("name the public keys with --key")
	}
	keys, err := readKey(p.Key, oci.ReadKeys)
	if err != nil {
		return nil, err
	}
	return p.withDigest(ctx, func(r *oci.Repository, done *Packaged) (err error) {
		done.Key, err = r.Verify(ctx, done.Digest, keys)
		return err
	})
}

func readKey[K any](file string, read func([]byte) (K, error)) (key K, err error) {
	text, err := regular.ReadFile(file)
	if err != nil {
		return key, usagef("--key: %w", err)
	}
	if key, err = read(text); err != nil {
		err = invalidf("%s: %w", file, err)
	}
	return key, err
}

// UnavailableError reports that something a verb needs, such as a registry, cannot be reached now.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// SourceError classifies the error of a source: an error in a revision is an [InvalidError], and every other
// error an [UnavailableError].
func SourceError(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, new(*source.RevisionError)):
		return &InvalidError{err}
	}
	return &UnavailableError{err}
}
