package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// Attachments hold large values such as images for the calls of a session. A tool stores a value once, and later calls
// of the same session pass the reference "attachment:NAME" instead of its bytes. Attachments live as long as the
// process. All methods are safe for concurrent use. Create them with [NewAttachments].
type Attachments struct {
	most int64

	mu    sync.Mutex
	size  int64
	last  int64
	held  map[string]map[string]v1.Part // by session and name
	order []attachmentKey               // oldest first
}

type attachmentKey struct{ session, name string }

// AttachmentScheme is the prefix of a reference to an attachment.
const AttachmentScheme = "attachment:"

// maxAttachments is the maximum number of attachments.
const maxAttachments = 4096

// DefaultAttachmentBytes is the limit of [NewAttachments] when its argument is 0.
const DefaultAttachmentBytes = 64 << 20

// NewAttachments returns storage for attachments with a limit in bytes for all of them together; 0 means the default.
// At the limit, the oldest attachments are dropped first.
func NewAttachments(most int64) *Attachments {
	return &Attachments{most: cmp.Or(most, DefaultAttachmentBytes), held: map[string]map[string]v1.Part{}}
}

// Put stores a part for a session and returns its reference. It returns an error if the part is larger than the limit
// or if the session has no name.
func (a *Attachments) Put(session string, p v1.Part) (string, error) {
	size := partSize(p)
	switch {
	case session == "":
		return "", fmt.Errorf("an attachment needs a session, and this call has none")
	case size > a.most:
		return "", fmt.Errorf("the attachment has %d bytes: the limit is %d", size, a.most)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.size+size > a.most || len(a.order) >= maxAttachments {
		a.drop(a.order[0])
	}
	of := a.held[session]
	if of == nil {
		of = map[string]v1.Part{}
		a.held[session] = of
	}
	a.last++ // a reference is never reused
	name := strconv.FormatInt(a.last, 10)
	of[name] = p
	a.size += size
	a.order = append(a.order, attachmentKey{session, name})
	return AttachmentScheme + name, nil
}

// Get returns the part that a reference of a session names.
func (a *Attachments) Get(session, ref string) (v1.Part, bool) {
	name, ok := strings.CutPrefix(ref, AttachmentScheme)
	if !ok || a == nil {
		return v1.Part{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.held[session][name]
	return p, ok
}

// Drop removes all attachments of a session.
func (a *Attachments) Drop(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range slices.Clone(a.order) {
		if k.session == session {
			a.drop(k)
		}
	}
}

// drop removes one attachment. The caller must hold the lock.
func (a *Attachments) drop(k attachmentKey) {
	a.size -= partSize(a.held[k.session][k.name])
	delete(a.held[k.session], k.name)
	if len(a.held[k.session]) == 0 {
		delete(a.held, k.session)
	}
	a.order = slices.DeleteFunc(a.order, func(o attachmentKey) bool { return o == k })
}

// partSize returns the approximate size of a part in memory.
func partSize(p v1.Part) int64 {
	n := len(p.Text) + len(p.Data) + len(p.URI) + len(p.Name) + len(p.Description) + 256
	if r := p.Resource; r != nil {
		n += len(r.Text) + len(r.Blob) + len(r.URI)
	}
	return int64(n)
}

// attached replaces the references in the arguments by their attachments: base64 for binary values, plain text for
// texts. Arguments without a reference are returned unchanged. A tool made in Go gets the references themselves.
func (r *Registry) attached(c *call) (json.RawMessage, error) {
	if r.opts.Attachments == nil || c.tool.goTool() || !bytes.Contains(c.args, []byte(`"`+AttachmentScheme)) {
		return c.args, nil
	}
	doc, err := validate.Decode(c.args)
	if err != nil {
		return nil, err
	}
	var violations []v1.Violation
	var walk func(path string, v any) any
	walk = func(path string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				v[k] = walk(v1.Pointer(path, k), e)
			}
		case []any:
			for i, e := range v {
				v[i] = walk(v1.Pointer(path, fmt.Sprint(i)), e)
			}
		case string:
			if !strings.HasPrefix(v, AttachmentScheme) {
				return v
			}
			p, ok := r.opts.Attachments.Get(c.Session, v)
			if !ok {
				violations = append(violations, v1.Violation{Path: path, Expected: "an attachment of this session", Got: fmt.Sprintf("%.80q", v), Message: fmt.Sprintf("there is no %.80q in this session", v)})
				return v
			}
			return payload(p)
		}
		return v
	}
	doc = walk("", doc)
	if violations != nil {
		slices.SortFunc(violations, func(a, b v1.Violation) int { return strings.Compare(a.Path, b.Path) })
		return nil, v1.NewValidationError(v1.ArgsInvalid, c.tool.spec.Metadata.Name, violations)
	}
	return jsontext.Marshal(doc)
}

// payload returns the text that replaces the reference to a part in an argument.
func payload(p v1.Part) string {
	switch r := p.Resource; {
	case p.Data != "":
		return p.Data
	case r != nil && r.Blob != "":
		return r.Blob
	case r != nil && r.Text != "":
		return r.Text
	case p.URI != "":
		return p.URI
	}
	return p.Text
}
