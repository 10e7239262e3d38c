package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/pkg/source"
)

// Types of artifacts and of their layers.
const (
	PackageType    = "application/vnd.toolctl.package.v1"
	PackageLayer   = "application/vnd.toolctl.package.v1.tar+gzip"
	SignatureType  = "application/vnd.toolctl.signature.v1"
	SignatureLayer = "application/vnd.toolctl.signature.v1+json"
)

const (
	maxManifest   = 1 << 20
	maxSignature  = 16 << 10
	maxSignatures = 100
	maxReferrers  = 1000
)

// Environment variables with the credentials for a registry. The default is the configuration of Docker.
const (
	UserVariable     = "TOOLCTL_OCI_USERNAME"
	PasswordVariable = "TOOLCTL_OCI_PASSWORD" //nolint:gosec // it is the name of one
)

// Options configure a [Repository]. The zero value has the defaults.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Transport sends requests. Default: a clone of [http.DefaultTransport].
	Transport *http.Transport
}

// Repository is one repository of a registry, with the tag or digest of an address.
type Repository struct {
	address   source.Address
	remote    *remote.Repository
	transport *http.Transport
}

// Open returns the repository of an address without connecting to it. It connects to a registry on loopback without
// TLS, as Docker does.
func Open(a source.Address, o Options) (*Repository, error) {
	if a.Scheme != source.OCI {
		return nil, fmt.Errorf("%s is not the address of a package", a)
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	r, err := remote.NewRepository(a.Remote)
	if err != nil {
		return nil, err
	}
	host := r.Reference.Registry
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	r.PlainHTTP = netaddr.IsLoopbackHost(strings.Trim(host, "[]"))
	r.MaxMetadataBytes = maxManifest
	r.SkipReferrersGC = true
	client := &auth.Client{Client: &http.Client{Transport: retry.NewTransport(o.Transport)}, Cache: auth.NewCache()}
	client.SetUserAgent("toolctl")
	if password, _ := o.Env(PasswordVariable); password != "" {
		user, _ := o.Env(UserVariable)
		client.Credential = auth.StaticCredential(r.Reference.Registry, auth.Credential{Username: cmp.Or(user, "toolctl"), Password: password})
	} else if known, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		client.Credential = credentials.Credential(known)
	}
	r.Client = client
	return &Repository{address: a, remote: r, transport: o.Transport}, nil
}

func (r *Repository) String() string { return r.address.String() }

// At returns the address of a package by its digest.
func (r *Repository) At(digest string) string { return r.address.Set() + "@" + digest }

// Close closes idle connections.
func (r *Repository) Close() error {
	r.transport.CloseIdleConnections()
	return nil
}

// Digest returns the digest that the address names. It queries the registry only if the address has no digest.
func (r *Repository) Digest(ctx context.Context) (string, error) {
	if _, digest, ok := strings.Cut(r.address.Remote, "@"); ok {
		return digest, nil
	}
	d, err := r.resolve(ctx, cmp.Or(r.remote.Reference.Reference, "latest"))
	return d.Digest.String(), err
}

func (r *Repository) resolve(ctx context.Context, reference string) (v1.Descriptor, error) {
	d, err := r.remote.Resolve(ctx, reference)
	if errors.Is(err, errdef.ErrNotFound) {
		err = fmt.Errorf("the registry has no %s: %w", reference, errdef.ErrNotFound)
	}
	return d, err
}

// Push pushes files as a package, with the tag of the address if it has one, and returns the digest.
func (r *Repository) Push(ctx context.Context, files map[string][]byte) (string, error) {
	if strings.Contains(r.address.Remote, "@") {
		return "", errors.New("a digest names an existing package: push to a tag")
	}
	archive, err := pack(files)
	if err != nil {
		return "", err
	}
	d, err := r.put(ctx, PackageType, PackageLayer, archive, nil)
	if err != nil {
		return "", err
	}
	if tag := r.remote.Reference.Reference; tag != "" {
		err = r.remote.Tag(ctx, d, tag)
	}
	return d.Digest.String(), err
}

// put pushes an artifact with one layer.
func (r *Repository) put(ctx context.Context, kind, layerType string, data []byte, subject *v1.Descriptor) (v1.Descriptor, error) {
	layer := content.NewDescriptorFromBytes(layerType, data)
	if err := r.remote.Push(ctx, layer, bytes.NewReader(data)); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return v1.Descriptor{}, err
	}
	return oras.PackManifest(ctx, r.remote, oras.PackManifestVersion1_1, kind, oras.PackManifestOptions{
		Subject: subject, Layers: []v1.Descriptor{layer}, ManifestAnnotations: map[string]string{v1.AnnotationCreated: "1970-01-01T00:00:00Z"}, // the same each time
	})
}

// Pull returns the files of a package. The error is a [source.RevisionError] for other artifacts, or if the content
// does not match its digest.
func (r *Repository) Pull(ctx context.Context, digest string) (map[string][]byte, error) {
	d, err := r.resolve(ctx, digest)
	if err != nil {
		return nil, err
	}
	data, err := r.layer(ctx, d, PackageType, PackageLayer, maxArchive)
	if err != nil {
		return nil, bad(digest, err)
	}
	files, err := unpack(data)
	if err != nil {
		return nil, &source.RevisionError{Revision: digest, Err: err}
	}
	return files, nil
}

// contentError says that an artifact has unexpected content.
type contentError struct{ error }

// bad converts an error about the content of a package to a RevisionError.
func bad(digest string, err error) error {
	if wrong := new(contentError); errors.As(err, wrong) || errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrInvalidDescriptorSize) || errors.Is(err, content.ErrTrailingData) {
		return &source.RevisionError{Revision: digest, Err: err}
	}
	return err
}

// layer reads the only layer of an artifact and verifies all digests.
func (r *Repository) layer(ctx context.Context, d v1.Descriptor, kind, layerType string, most int64) ([]byte, error) {
	if d.Size > maxManifest || d.MediaType != v1.MediaTypeImageManifest {
		return nil, contentError{fmt.Errorf("it is not a toolctl package, but %s of %d bytes", d.MediaType, d.Size)}
	}
	text, err := content.FetchAll(ctx, r.remote.Manifests(), d)
	if err != nil {
		return nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.ArtifactType != kind || len(m.Layers) != 1 || m.Layers[0].MediaType != layerType {
		return nil, contentError{fmt.Errorf("expected an artifact of type %s with one layer of type %s", kind, layerType)}
	}
	l := m.Layers[0]
	if l.Size < 0 || l.Size > most || l.Digest.Validate() != nil {
		return nil, contentError{fmt.Errorf("its layer has %d bytes: expected up to %d", l.Size, most)}
	}
	return content.FetchAll(ctx, r.remote.Blobs(), l)
}

// signature is the layer of a signature.
type signature struct {
	Digest    string `json:"digest"`
	Key       string `json:"key"`
	Signature []byte `json:"signature"`
}

// Sign signs a package.
func (r *Repository) Sign(ctx context.Context, digest string, key *Signer) error {
	subject, err := r.resolve(ctx, digest)
	if err != nil {
		return err
	}
	text, err := key.sign(digest)
	if err != nil {
		return err
	}
	data, err := json.Marshal(signature{digest, key.id, text})
	if err != nil {
		return err
	}
	_, err = r.put(ctx, SignatureType, SignatureLayer, data, &subject)
	return err
}

// errEnough ends a list of referrers.
var errEnough = errors.New("enough")

// Verify returns the ID of a key that signed the package. If there is no such signature, the error is a
// [source.RevisionError].
func (r *Repository) Verify(ctx context.Context, digest string, keys Keys) (string, error) {
	subject, err := r.resolve(ctx, digest)
	if err != nil {
		return "", err
	}
	found, listed, read := "", 0, 0
	err = r.remote.Referrers(ctx, subject, "", func(referrers []v1.Descriptor) error { // registries differ in filtering by type
		for _, d := range referrers {
			if listed++; listed > maxReferrers {
				return errEnough
			}
			if !slices.Contains([]string{SignatureType, v1.MediaTypeEmptyJSON, ""}, d.ArtifactType) {
				continue
			}
			if read++; read > maxSignatures {
				return errEnough
			}
			data, err := r.layer(ctx, d, SignatureType, SignatureLayer, maxSignature)
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				continue // anyone who can push can add broken signatures
			}
			if found = keys.signer(digest, data); found != "" {
				return errEnough
			}
		}
		return nil
	})
	switch {
	case found != "":
		return found, nil
	case err != nil && !errors.Is(err, errEnough):
		return "", err
	}
	return "", &source.RevisionError{Revision: digest, Err: errors.New("the package is not signed by one of the keys")}
}

// signer returns the key that made a signature of the digest.
func (k Keys) signer(digest string, data []byte) string {
	var s signature
	if json.Unmarshal(data, &s) != nil || s.Digest != digest {
		return ""
	}
	i := slices.IndexFunc(k, func(key publicKey) bool { return key.id == s.Key && key.signed(digest, s.Signature) })
	if i < 0 {
		return ""
	}
	return k[i].id
}
