package source

import (
	"fmt"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// Status describes the used revision of a [Remote]. It contains no secrets.
type Status struct {
	// Source is the address.
	Source string `json:"source"`
	// Revision is the used commit or package digest; it is empty before the first good one.
	Revision string `json:"commit,omitempty"`
	// Since is when it was first used here.
	Since *time.Time `json:"since,omitempty"`
	// Checked is when the source was last reached.
	Checked *time.Time `json:"checked,omitempty"`
	// RolledBackFrom is the previously used revision, if Revision does not descend from it.
	RolledBackFrom string `json:"rolled_back_from,omitempty"`
	// Failed says why the source's newest revision is not used; it is absent if that revision is used.
	Failed *Failure `json:"failed,omitempty"`
}

// Failure is a revision that is not used, or a source that cannot be reached.
type Failure struct {
	// Revision is empty if the source could not be reached.
	Revision string    `json:"commit,omitempty"`
	At       time.Time `json:"at"`
	// Places are the positions of the first violations, as FILE:LINE:COLUMN.
	Places []string `json:"places,omitempty"`
	// Reason is the error, without contents of manifests.
	Reason string `json:"reason"`
}

func (f *Failure) String() string {
	text := f.Reason
	if f.Revision != "" {
		text = Named(f.Revision) + ": " + text
	}
	if len(f.Places) > 0 {
		text += ": " + strings.Join(f.Places, ", ")
	}
	return text
}

// Named returns a revision in words.
func Named(revision string) string {
	if strings.HasPrefix(revision, "sha256:") {
		return revision // the digest of a package
	}
	return "commit " + revision
}

// RevisionError says that a revision must not be served.
type RevisionError struct {
	Revision string
	// Violations are the violations of its manifests; Err is any other error.
	Violations []v1.Violation
	Err        error
}

func (e *RevisionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s", Named(e.Revision), e.Err)
	}
	const shown = 100
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", Named(e.Revision), clip.Count(len(e.Violations), "error"))
	for i, v := range e.Violations {
		if i == shown {
			fmt.Fprintf(&text, "\n  and %d more", len(e.Violations)-shown)
			break
		}
		text.WriteString("\n  " + v.String())
	}
	return text.String()
}

func (e *RevisionError) Unwrap() error { return e.Err }

// judge returns the error for a revision with violations.
func judge(revision string, violations []v1.Violation) error {
	bad := &RevisionError{Revision: revision}
	seen := map[string]bool{}
	for _, v := range violations {
		if text := v.String(); !v.IsWarning() && !seen[text] {
			seen[text] = true
			bad.Violations = append(bad.Violations, v)
		}
	}
	if len(bad.Violations) == 0 {
		return nil
	}
	return bad
}

// Status returns the status of the used revision.
func (r *Remote) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// using records that a revision is used from now on, from which revision it rolled back, and why a newer one is not
// used.
func (r *Remote) using(revision, from string, newer *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.status.Revision != revision {
		r.status.Revision, r.status.Since, r.status.RolledBackFrom = revision, &now, from
	}
	r.status.Checked, r.status.Failed = &now, newer
}

// unchanged records that the source has no new revision.
func (r *Remote) unchanged(t *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.status.Checked, r.status.Failed = &now, t.failure
}

// failed records why the newest revision is not used, and returns the error.
func (r *Remote) failed(revision string, err error) error {
	const places, reason = 3, 300
	f := &Failure{Revision: revision, At: r.now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	bad, ok := err.(*RevisionError) //nolint:errorlint // read and Load do not wrap it
	switch {
	case ok && bad.Err == nil:
		f.Reason = clip.Count(len(bad.Violations), "error")
		for _, v := range bad.Violations[:min(places, len(bad.Violations))] {
			f.Places = append(f.Places, v.Source.String())
		}
	case ok:
		f.Reason = clip.Bytes(bad.Err.Error(), reason)
	default:
		f.Reason = clip.Bytes(strings.TrimPrefix(err.Error(), r.status.Source+": "), reason)
	}
	if revision != "" {
		r.status.Checked = &f.At
	}
	r.status.Failed = f
	return err
}

func (r *Remote) now() time.Time { return r.opts.Now().UTC().Truncate(time.Second) }
