package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/source"
)

// Origin is a package as the origin of a [source.Remote].
type Origin struct {
	*Repository
	keyFile string
}

var _ source.Origin = (*Origin)(nil)

// NewOrigin returns the origin of a package. With a file of keys, one of the keys must have signed the package; the
// file is read again after changes. Without it, the address must have a digest, because anyone who can push can move a
// tag.
func NewOrigin(r *Repository, keyFile string) (*Origin, error) {
	o := &Origin{r, keyFile}
	if keyFile == "" && r.remote.Reference.ValidateReferenceAsDigest() != nil {
		return nil, fmt.Errorf("%s is a tag, which can move: use a digest, such as %s@sha256:…, or require signatures", r, r.address.Set())
	}
	if keyFile != "" {
		if _, _, err := o.keys(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *Origin) keys() (Keys, string, error) {
	text, err := regular.ReadFile(o.keyFile)
	if err != nil {
		return nil, "", err
	}
	keys, err := ReadKeys(text)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", o.keyFile, err)
	}
	sum := sha256.Sum256(text)
	return keys, hex.EncodeToString(sum[:]), nil
}

// Head returns the digest that the address names.
func (o *Origin) Head(ctx context.Context) (string, error) { return o.Digest(ctx) }

// Trust returns the content of the file of keys.
func (o *Origin) Trust() (string, error) {
	if o.keyFile == "" {
		return "", nil
	}
	_, digest, err := o.keys()
	return digest, err
}

// Fetch writes the files of a package.
func (o *Origin) Fetch(ctx context.Context, digest, dir string) (source.Files, error) {
	all := source.Files{Path: "."}
	if o.keyFile != "" {
		keys, _, err := o.keys()
		if err != nil {
			return all, err
		}
		if _, err := o.Verify(ctx, digest, keys); err != nil {
			return all, err
		}
	}
	files, err := o.Pull(ctx, digest)
	if err != nil {
		return all, err
	}
	return all, fileset.Write(dir, files)
}

// Older returns nothing, because the earlier digests of a tag are unknown.
func (o *Origin) Older(context.Context, string) ([]string, error) { return nil, nil }

// Descends returns true, because digests have no order, and a tag may name any digest.
func (o *Origin) Descends(context.Context, string, string) (bool, error) { return true, nil }
