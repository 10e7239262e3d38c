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

// NewOrigin makes an origin of a package. With a file of keys it has to be signed by one of them;
// the file is read again when it changes. Without, the address has to have a digest: a tag is
// whatever somebody pushed last.
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

// Trust is what the file of keys holds.
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

// Older returns nothing: what a tag was before is not known.
func (o *Origin) Older(context.Context, string) ([]string, error) { return nil, nil }

// Descends is true: digests have no order, and a tag may name any of them.
func (o *Origin) Descends(context.Context, string, string) (bool, error) { return true, nil }
