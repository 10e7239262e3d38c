package openapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
)

// LoadOptions are the settings for loading a document. The zero value works.
type LoadOptions struct {
	// Stdin is read when the source is "-". Default: reading "-" is an error.
	Stdin io.Reader
}

// Load reads the document at source: a file, an http or https URL, or "-" for standard input. A
// document in a file may refer to other files in its folder or below; nothing else is opened or
// fetched. The error for an unusable document is a *[v1.ValidationError].
func Load(ctx context.Context, source string, o LoadOptions) (*Document, error) {
	switch {
	case source == "-":
		if o.Stdin == nil {
			return nil, errors.New("standard input cannot be read here")
		}
		data, err := readAll(o.Stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return Parse(data, "stdin", "", nil)
	case strings.HasPrefix(source, "http://"), strings.HasPrefix(source, "https://"):
		u, err := url.Parse(source)
		if err != nil {
			return nil, err
		}
		data, err := fetch(ctx, source)
		if err != nil {
			return nil, err
		}
		clean := *u
		clean.User, clean.RawQuery, clean.Fragment = nil, "", "" // these may contain secrets
		return Parse(data, clean.String(), clean.String(), nil)
	}
	return loadFile(source)
}

func loadFile(source string) (*Document, error) {
	// References are followed while operations are imported, so the folder stays open while the
	// document is in use. The descriptor is closed when the document is garbage-collected.
	root, err := os.OpenRoot(filepath.Dir(source))
	if err != nil {
		return nil, err
	}
	// The document itself may be a symlink to another folder. The files that it refers to may not.
	st, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name the file of an OpenAPI document", source)
	}
	f, err := regular.Open(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	data, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return Parse(data, filepath.ToSlash(source), "", root.FS())
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := regular.ReadAll(r, doc.MaxBytes)
	if errors.Is(err, regular.ErrTooLarge) {
		err = fmt.Errorf("larger than %d MiB", doc.MaxBytes>>20)
	}
	return data, err
}

const (
	fetchTimeout = time.Minute
	maxRedirects = 5
)

func fetch(ctx context.Context, source string) ([]byte, error) {
	client := &http.Client{Timeout: fetchTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
			return errors.New("a redirect leads from https to http")
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/yaml, text/yaml, */*;q=0.5")
	shown := req.URL.Scheme + "://" + req.URL.Host + req.URL.EscapedPath()
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // its text contains the whole URL
		}
		return nil, &v1.ExecutionError{Phase: v1.PhaseConnect, Message: "cannot fetch " + shown + ": " + err.Error(), Cause: err}
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: expected 200 and an OpenAPI document", shown, resp.Status)
	}
	data, err := readAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown, err)
	}
	return data, nil
}

// Parse reads a document from bytes. source is its name for messages and annotations. base is its
// URL, for relative servers, or "". folder holds the files that it may refer to, or is nil.
func Parse(data []byte, source, base string, folder fs.FS) (*Document, error) {
	name := source
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	set, err := doc.NewSet(data, folder, name)
	if err != nil {
		return nil, invalid(source, v1.Violation{Expected: "an OpenAPI document in YAML or JSON", Message: err.Error()})
	}
	return newDocument(set, source, base)
}

// invalid returns the error for an unusable document: a *[v1.ValidationError] with a message about
// the document.
func invalid(source string, violation v1.Violation) error {
	violation.Source = v1.Source{File: source}
	return &documentError{v1.NewValidationError(v1.ManifestInvalid, "", []v1.Violation{violation})}
}

type documentError struct{ cause *v1.ValidationError }

func (e *documentError) Error() string { return e.cause.Violations[0].String() }

func (e *documentError) Unwrap() error { return e.cause }
