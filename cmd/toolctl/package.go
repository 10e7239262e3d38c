package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/source/oci"
)

func newPackageCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "package",
		Short: "Push, pull, sign and verify manifests in an OCI registry",
		Long: `Keep manifests as packages in an OCI registry. A package holds the manifests and the files
that they name, and nothing else of a folder; the same manifests have the same digest.
'toolctl serve --source oci://HOST/REPOSITORY@sha256:…' serves one.

Who signs in to the registry is what docker knows, or TOOLCTL_OCI_USERNAME and
TOOLCTL_OCI_PASSWORD. Keys are those of Ed25519 or ECDSA as PEM:

  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out keys.pem`,
		Example: `  toolctl package push oci://registry.example.com/tools:v1 -f manifests/
  toolctl package sign oci://registry.example.com/tools@sha256:… --key key.pem
  toolctl package verify oci://registry.example.com/tools:v1 --key keys.pem
  toolctl package pull oci://registry.example.com/tools:v1 --dir tools`,
	}, newPackagePushCmd(a), newPackagePullCmd(a), newPackageSignCmd(a), newPackageVerifyCmd(a))
}

// packageResult is what the commands of packages print with -o json.
type packageResult struct {
	Package string `json:"package"` // by digest
	Digest  string `json:"digest"`
	Objects int    `json:"objects,omitempty"`
	Files   int    `json:"files,omitempty"`
	// Key is who signed.
	Key string `json:"key,omitempty"`
	Dir string `json:"dir,omitempty"`
}

// withPackage opens the repository of an address for a command.
func (a *app) withPackage(address string, do func(*oci.Repository) error) error {
	at, err := source.ParseAddress(address)
	if err != nil || at.IsGit() {
		return usagef("%q: expected oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:…", address)
	}
	r, err := oci.Open(at, oci.Options{Env: a.env})
	if err != nil {
		return usagef("%s: %w", address, err)
	}
	defer a.closing(r)
	return do(r)
}

func (a *app) printPackage(r packageResult, text string) error {
	if a.format() == "json" {
		return printJSON(a.out, r)
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

func newPackagePushCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push oci://HOST/REPOSITORY:TAG -f PATH",
		Short: "Push manifests and the files that they name as a package",
		Long: `Check manifests, and push them with the files that they name as a package. It prints the
address of the package by its digest, which the same manifests have again. With -k what a
kustomization.yaml builds to is pushed.

Output formats (-o): table (the address), json.`,
		Annotations: formats("table", "json"),
		Example: `  toolctl package push oci://registry.example.com/tools:v1 -f manifests/
  toolctl package push oci://registry.example.com/tools:prod -k overlays/prod`,
		Args: exactArgs(1, "one address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(a.files) == 0 {
				return usagef("name the manifests to push with -f")
			}
			return a.withPackage(args[0], func(r *oci.Repository) error { return a.pushPackage(cmd.Context(), r) })
		},
	}
	a.bindSelector(cmd.Flags(), "objects")
	return cmd
}

func (a *app) pushPackage(ctx context.Context, r *oci.Repository) error {
	has, err := a.selected()
	if err != nil {
		return err
	}
	c, err := a.config(ctx)
	if err != nil {
		return err
	}
	set, warnings, err := c.Load(ctx, action.Reading{})
	if err != nil {
		return err
	}
	a.printWarnings(warnings)
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
	digest, err := r.Push(ctx, files)
	if err != nil {
		return sourceError(fmt.Errorf("%s: %w", r, err))
	}
	return a.printPackage(packageResult{Package: r.At(digest), Digest: digest, Objects: len(objects), Files: len(files)}, r.At(digest))
}

// fromOneFolder makes the files of objects relative to the deepest folder that holds all of them and all
// that they name, so that a package does not depend on where it is made, or how its files were given.
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

func newPackagePullCmd(a *app) *cobra.Command {
	var dir, keyFile string
	cmd := &cobra.Command{
		Use:   "pull oci://HOST/REPOSITORY[:TAG][@DIGEST] --dir DIR",
		Short: "Write the files of a package into a new folder",
		Long: `Write the files of a package into a new or empty folder: all of them, or none after an error.
With --key one of the keys in the file must have signed the package.

toolctl refuses packages with names that begin with a dot, that some systems cannot tell
apart, or that are both a file and a folder.

Output formats (-o): table, json.`,
		Annotations: formats("table", "json"),
		Example:     `  toolctl package pull oci://registry.example.com/tools@sha256:… --dir tools`,
		Args:        exactArgs(1, "one address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return usagef("name the folder to write with --dir")
			}
			if err := newFolder(dir); err != nil {
				return err
			}
			return a.withPackage(args[0], func(r *oci.Repository) error { return a.pullPackage(cmd.Context(), r, dir, keyFile) })
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write; it is made, or is empty")
	cmd.Flags().StringVar(&keyFile, "key", "", "file of public keys, of which one has to have signed the package")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func (a *app) pullPackage(ctx context.Context, r *oci.Repository, dir, keyFile string) error {
	var keys oci.Keys
	if keyFile != "" {
		var err error
		if keys, err = readKeys(keyFile); err != nil {
			return err
		}
	}
	res := packageResult{Dir: dir}
	files, err := func() (files map[string][]byte, err error) {
		if res.Digest, err = r.Digest(ctx); err != nil {
			return nil, err
		}
		if keys != nil {
			if res.Key, err = r.Verify(ctx, res.Digest, keys); err != nil {
				return nil, err
			}
		}
		return r.Pull(ctx, res.Digest)
	}()
	if err != nil {
		return sourceError(fmt.Errorf("%s: %w", r, err))
	}
	if err := fileset.Write(dir, files); err != nil {
		return err
	}
	res.Package, res.Files = r.At(res.Digest), len(files)
	return a.printPackage(res, fmt.Sprintf("%s of %s written to %s", count(len(files), "file"), res.Package, dir))
}

func newPackageSignCmd(a *app) *cobra.Command {
	keyFile := ""
	cmd := &cobra.Command{
		Use:   "sign oci://HOST/REPOSITORY[:TAG][@DIGEST] --key FILE",
		Short: "Sign a package",
		Long: `Sign a package with a private key of Ed25519 or ECDSA. The signature is put beside the
package, where the registry lists what refers to it.

Output formats (-o): table, json.`,
		Annotations: formats("table", "json"),
		Example:     `  toolctl package sign oci://registry.example.com/tools@sha256:… --key key.pem`,
		Args:        exactArgs(1, "one address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keyFile == "" {
				return usagef("name the private key with --key")
			}
			key, err := readSigner(keyFile)
			if err != nil {
				return err
			}
			return a.withPackage(args[0], func(r *oci.Repository) error {
				digest, err := r.Digest(cmd.Context())
				if err == nil {
					err = r.Sign(cmd.Context(), digest, key)
				}
				if err != nil {
					return sourceError(fmt.Errorf("%s: %w", r, err))
				}
				return a.printPackage(packageResult{Package: r.At(digest), Digest: digest, Key: key.ID()}, r.At(digest)+" signed by key "+key.ID())
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "file with the private key, as PEM")
	return cmd
}

func newPackageVerifyCmd(a *app) *cobra.Command {
	keyFile := ""
	cmd := &cobra.Command{
		Use:   "verify oci://HOST/REPOSITORY[:TAG][@DIGEST] --key FILE",
		Short: "Check that a key signed a package",
		Long: `Check that one of the keys in a file signed a package. The exit code is 3 when none did.

Output formats (-o): table, json.`,
		Annotations: formats("table", "json"),
		Example:     `  toolctl package verify oci://registry.example.com/tools:v1 --key keys.pem`,
		Args:        exactArgs(1, "one address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keyFile == "" {
				return usagef("name the public keys with --key")
			}
			keys, err := readKeys(keyFile)
			if err != nil {
				return err
			}
			return a.withPackage(args[0], func(r *oci.Repository) error {
				digest, err := r.Digest(cmd.Context())
				key := ""
				if err == nil {
					key, err = r.Verify(cmd.Context(), digest, keys)
				}
				if err != nil {
					return sourceError(fmt.Errorf("%s: %w", r, err))
				}
				return a.printPackage(packageResult{Package: r.At(digest), Digest: digest, Key: key}, r.At(digest)+" is signed by key "+key)
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "key", "", "file of public keys as PEM, of which one has to have signed")
	return cmd
}

func readKeys(file string) (oci.Keys, error) {
	text, err := regular.ReadFile(file)
	if err != nil {
		return nil, usagef("--key: %w", err)
	}
	keys, err := oci.ReadKeys(text)
	if err != nil {
		return nil, statusError{exitInvalid, file + ": " + err.Error()}
	}
	return keys, nil
}

// readSigner reads a private key, which is its owner's alone.
func readSigner(file string) (*oci.Signer, error) {
	if err := perm.File(file); err != nil {
		return nil, err
	}
	text, err := regular.ReadFile(file)
	if err != nil {
		return nil, usagef("--key: %w", err)
	}
	key, err := oci.ReadSigner(text)
	if err != nil {
		return nil, statusError{exitInvalid, file + ": " + err.Error()}
	}
	return key, nil
}
