package importer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/importer/internal/merge"
	"toolctl.dev/toolctl/pkg/manifest"
)

// WriteOptions are the settings for writing manifests. The zero value works.
type WriteOptions struct {
	// Force overwrites existing files, for importers without a lock file.
	Force bool
	// Prune removes the files of operations that the document no longer contains, unless they were edited by hand.
	Prune bool
	// DryRun reports the changes without writing anything.
	DryRun bool
}

// The values of [Change.Action].
const (
	// ActionCreated: the operation is new.
	ActionCreated = "created"
	// ActionUpdated: the document changed, and the file had no manual edits.
	ActionUpdated = "updated"
	// ActionMerged: the changes of the document were merged with manual edits.
	ActionMerged = "merged"
	// ActionUnchanged: the file needed no change.
	ActionUnchanged = "unchanged"
	// ActionAbsent: the file was removed by hand and is not written again.
	ActionAbsent = "absent"
	// ActionGone: the document no longer contains the operation; the file is kept.
	ActionGone = "gone"
	// ActionPruned: the document no longer contains the operation; the file was removed.
	ActionPruned = "pruned"
	// ActionRefused: a file of that name exists that is not from an import; it is kept.
	ActionRefused = "refused"
)

// Conflicts returns the number of decisions left to the user: conflicts, refused files, and violations of merged
// manifests.
func (r *Result) Conflicts() int {
	n := 0
	for _, c := range r.Changes {
		n += len(c.Conflicts) + len(c.Violations)
		if c.Action == ActionRefused {
			n++
		}
	}
	return n
}

// A Change is the change to the file of one operation.
type Change struct {
	// File is the file name in the folder.
	File string `json:"file"`
	// Operation is method and path. Example: GET /pets/{petId}.
	Operation string `json:"operation"`
	// Action is one of the Action constants.
	Action string `json:"action"`
	// OrderOnly means that the update changed only the order of fields.
	OrderOnly bool `json:"order_only,omitempty"`
	// Conflicts are the fields that the file and the document changed differently. The file keeps its values. Each
	// conflict is reported once.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Violations are those of the manifest after merging.
	Violations []v1.Violation `json:"violations,omitempty"`
}

// A Conflict is a field that was changed both by hand and in the document.
type Conflict struct {
	// Path is the JSON pointer of the field in the manifest.
	Path string `json:"path"`
	// Ours is the value in the file as JSON, or "" if the field is absent.
	Ours string `json:"ours"`
	// Theirs is the value in the document as JSON, or "" if the field is absent.
	Theirs string `json:"theirs"`
}

// Write writes one file per manifest into dir, which it creates if needed, and records the changes: see the package
// documentation. It refuses a folder that contains the import of another document. If a file exists, an import without a
// lock file writes nothing.
func (r *Result) Write(ctx context.Context, dir string, o WriteOptions) error {
	r.Changes, r.DryRun = []Change{}, o.DryRun
	if !o.DryRun {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(dir)
	if o.DryRun && errors.Is(err, fs.ErrNotExist) {
		for _, m := range r.Manifests {
			r.Changes = append(r.Changes, Change{File: fileOf(m), Operation: m.Origin, Action: ActionCreated})
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // each file is closed separately
	old := &lock{}
	if r.Origins != nil {
		old, err = readLock(root)
	} else if !o.Force {
		err = r.allNew(root, dir)
	}
	if err != nil {
		return err
	}
	if len(old.Tools) > 0 && old.Source != r.Source && old.Title != r.Title {
		return fmt.Errorf("%s contains the import of %q from %s, not of %q from %s: choose another folder", dir, old.Title, old.Source, r.Title, r.Source)
	}
	w := &folderWriter{Result: r, root: root, opts: o, old: old, next: &lock{Source: r.Source, Title: r.Title, Version: r.Version}}
	err = w.run(ctx)
	if r.Origins != nil {
		slices.SortFunc(r.Changes, func(a, b Change) int { return cmp.Compare(a.File, b.File) })
	}
	return err
}

func fileOf(m Manifest) string { return m.Object.Head().Metadata.Name + ".yaml" }

// allNew returns an error that names the existing files.
func (r *Result) allNew(root *os.Root, dir string) error {
	var errs []error
	for _, m := range r.Manifests {
		if _, err := root.Lstat(fileOf(m)); err == nil {
			errs = append(errs, fmt.Errorf("%s already exists: use --force to overwrite it", filepath.Join(dir, fileOf(m))))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(errs...)
}

type folderWriter struct {
	*Result
	root  *os.Root
	opts  WriteOptions
	old   *lock
	next  *lock
	files map[string]bool // files that belong to an entry
}

func (w *folderWriter) run(ctx context.Context) error {
	entries := map[string]*lockEntry{}
	w.files = map[string]bool{}
	for i := range w.old.Tools {
		e := &w.old.Tools[i]
		entries[e.Operation] = e
		w.files[e.File] = true
	}
	matched := w.match(entries)
	for _, m := range w.Manifests {
		if err := ctx.Err(); err != nil {
			return err
		}
		entry := matched[m.Origin]
		if err := w.manifest(m, entry); err != nil {
			return fmt.Errorf("%s: %w", m.Origin, err)
		}
		if entry != nil {
			delete(entries, entry.Operation)
		}
	}
	if err := w.rest(entries); err != nil {
		return err
	}
	if w.opts.DryRun || w.Origins == nil {
		return nil
	}
	return w.next.write(w.root, w.Options)
}

// match finds the last import of each manifest: the entry with the same method and path, or for a new operation the entry
// with the same name whose operation is gone.
func (w *folderWriter) match(entries map[string]*lockEntry) map[string]*lockEntry {
	gone := map[string]*lockEntry{}
	for op, e := range entries {
		if !w.Origins[op] {
			gone[e.File] = e
		}
	}
	out := map[string]*lockEntry{}
	for _, m := range w.Manifests {
		if e := cmp.Or(entries[m.Origin], gone[fileOf(m)]); e != nil {
			out[m.Origin] = e
		}
	}
	return out
}

// manifest writes or merges the file of one manifest.
func (w *folderWriter) manifest(m Manifest, entry *lockEntry) error {
	raw, err := json.Marshal(m.Object)
	if err != nil {
		return err
	}
	fresh, err := manifest.MarshalYAML(m.Object)
	if err != nil {
		return err
	}
	theirs, err := tree("", raw)
	if err != nil {
		return err
	}
	name := fileOf(m)
	if entry != nil {
		name = entry.File
	} else if w.files[name] { // the file belongs to another manifest, such as that of an operation that had this name before
		name = UniqueName(m.Object.Head().Metadata.Name, m.Origin) + ".yaml"
	}
	w.files[name] = true
	now := lockEntry{Operation: m.Origin, File: name, Written: digest(fresh), Manifest: raw}
	change := Change{File: name, Operation: m.Origin}
	disk, err := readFile(w.root, name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && entry != nil:
		change.Action = ActionAbsent
		now = *entry
	case errors.Is(err, fs.ErrNotExist), w.opts.Force && w.Origins == nil:
		change.Action = ActionCreated
		err = w.write(name, fresh)
	case err != nil:
		return err
	case entry == nil && bytes.Equal(disk, fresh):
		change.Action = ActionUnchanged
	case entry == nil:
		change.Action = ActionRefused
		w.Changes = append(w.Changes, change)
		return nil
	case digest(disk) == entry.Written:
		change.Action = ActionUpdated
		if bytes.Equal(disk, fresh) {
			change.Action = ActionUnchanged
			break
		}
		before, perr := tree(name, disk)
		change.OrderOnly = perr == nil && merge.Equal(before, theirs)
		err = w.write(name, fresh)
	case bytes.Equal(disk, fresh): // a user made the same change
		change.Action = ActionUnchanged
	default:
		now.Written = entry.Written // the file now contains manual edits
		err = w.merge(&change, disk, entry, theirs)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w.Changes = append(w.Changes, change)
	w.next.Tools = append(w.next.Tools, now)
	return nil
}

// maxFile is the maximum size of a manifest that is merged, in bytes; pkg/manifest has the same limit.
const maxFile = 10 << 20

// merge merges the document's changes with those in the file.
func (w *folderWriter) merge(change *Change, disk []byte, entry *lockEntry, theirs any) error {
	ours, err := tree(change.File, disk)
	if err != nil {
		return fmt.Errorf("%s was changed by hand and cannot be read: %w", change.File, err)
	}
	base, err := tree("", entry.Manifest)
	if err != nil {
		return err
	}
	w.ownAnnotations(base, ours, theirs)
	merged, conflicts := merge.Three(base, ours, theirs)
	for _, c := range conflicts {
		change.Conflicts = append(change.Conflicts, Conflict{Path: c.Path, Ours: shown(c.Ours), Theirs: shown(c.Theirs)})
	}
	change.Action = ActionUnchanged
	if merge.Equal(merged, ours) {
		return nil
	}
	change.Action = ActionMerged
	text, err := merge.Edit(disk, ours, merged, manifest.MarshalYAML)
	if err == nil {
		back, perr := tree(change.File, text)
		if perr != nil || !merge.Equal(back, merged) {
			err = errors.New("the edited text says something else")
		}
	}
	if err != nil { // aliases in a changed place: correct values matter more than the layout
		if text, err = manifest.MarshalYAML(merged); err != nil {
			return err
		}
	}
	_, change.Violations = manifest.Decode(change.File, text, manifest.Options{})
	return w.write(change.File, text)
}

// ownAnnotations sets the annotations of the import in base so that they never conflict, because they describe the last
// import. An annotation that the user removed stays removed.
func (w *folderWriter) ownAnnotations(base, ours, theirs any) {
	b := annotations(base)
	if b == nil {
		return
	}
	o, t := annotations(ours), annotations(theirs)
	for _, key := range w.Annotations {
		from := t
		if _, kept := o[key]; kept {
			from = o
		}
		if v, ok := from[key]; ok {
			b[key] = v
		} else {
			delete(b, key)
		}
	}
}

func annotations(tree any) map[string]any {
	m, _ := tree.(map[string]any)
	m, _ = m["metadata"].(map[string]any)
	m, _ = m["annotations"].(map[string]any)
	return m
}

// rest reports the operations of the last import that this import does not write.
func (w *folderWriter) rest(entries map[string]*lockEntry) error {
	for _, e := range w.old.Tools {
		if entries[e.Operation] == nil {
			continue
		}
		if w.Origins[e.Operation] {
			w.next.Tools = append(w.next.Tools, e) // not selected this time, or skipped
			continue
		}
		change := Change{File: e.File, Operation: e.Operation, Action: ActionGone}
		disk, err := readFile(w.root, e.File, maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed on both sides
		case err != nil:
			return err
		case w.opts.Prune && digest(disk) == e.Written:
			change.Action = ActionPruned
			if !w.opts.DryRun {
				if err := w.root.Remove(e.File); err != nil {
					return err
				}
			}
		case w.opts.Prune:
			change.Conflicts = []Conflict{{Ours: "a file changed by hand", Theirs: ""}}
			w.next.Tools = append(w.next.Tools, e)
		default:
			w.next.Tools = append(w.next.Tools, e)
		}
		w.Changes = append(w.Changes, change)
	}
	return nil
}

func (w *folderWriter) write(name string, text []byte) error {
	if w.opts.DryRun {
		return nil
	}
	return writeFile(w.root, name, text)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// shown writes a value of a conflict as JSON.
func shown(v any) string {
	if v == merge.Absent {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
