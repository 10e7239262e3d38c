package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// Edit lets a person edit objects of the store.
type Edit struct {
	*Config
	// Requests name the objects.
	Requests []Request
	// Editor opens a file in the editor and returns when the person has closed it.
	Editor func(ctx context.Context, file string) error
}

// Edited is the result for one object.
type Edited struct {
	Key v1.Key
	// Cancelled is the reason why nothing was applied; empty if the object was applied.
	Cancelled string
	Changes   []Change
}

// maxEdited limits an edited manifest, in bytes.
const maxEdited = 10 << 20

// Run edits the objects one by one. If there is an error, it returns the results before it.
func (e *Edit) Run(ctx context.Context) (all []Edited, err error) {
	if len(e.Files) > 0 {
		return nil, usagef("-f does not apply to edit: open the files in an editor yourself")
	}
	err = e.withStore(ctx, false, func(s store.Store) error {
		reg, err := namesOf(ctx, s)
		if err != nil {
			return err
		}
		for _, r := range e.Requests {
			for _, name := range r.Names {
				it, err := reg.Get(r.Kind, e.Namespace, name)
				if err != nil {
					return err
				}
				one, err := e.edit(ctx, s, it.Object.Head().Key())
				if err != nil {
					return err
				}
				all = append(all, one)
			}
		}
		return nil
	})
	return all, err
}

// note starts the lines that toolctl adds to the file; they are not part of the manifest.
const note = "#| "

// edit lets a person edit one object until it can be applied or the person gives up.
func (e *Edit) edit(ctx context.Context, s store.Store, key v1.Key) (done Edited, err error) {
	done.Key = key
	rec, err := s.Get(ctx, key)
	if err != nil {
		return done, err
	}
	dir, err := os.MkdirTemp("", "toolctl-edit-")
	if err != nil {
		return done, err
	}
	keep := false
	defer func() {
		if !keep {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := writeNamed(dir, rec.Object.Head().Files); err != nil {
		return done, err
	}
	before, err := manifest.MarshalYAML(rec.Object)
	if err != nil {
		return done, err
	}
	list, err := s.List(ctx, store.ListOptions{})
	if err != nil {
		return done, err
	}
	beside := Placeholders(list.Records)
	file := filepath.Join(dir, key.Name+".yaml")
	head := []string{"Edit the manifest of " + ObjectName(key) + " in namespace " + key.Namespace + ". Lines that start with \"#|\" are dropped;",
		"an empty file cancels the edit. If the manifest has errors, the editor opens again and lists them."}
	var errs []string
	tried := []byte(nil)
	for body := before; ; {
		if body, err = e.ask(ctx, file, head, errs, body); err != nil {
			return done, err
		}
		switch {
		case len(bytes.TrimSpace(body)) == 0:
			done.Cancelled = "the file is empty"
			return done, nil
		case bytes.Equal(body, before) && tried == nil:
			done.Cancelled = "nothing was changed"
			return done, nil
		case tried != nil && bytes.Equal(body, tried):
			keep = true
			for i := range errs {
				errs[i] = strings.TrimPrefix(errs[i], "error: ")
			}
			return done, invalidf("edit cancelled: the manifest still has errors; it is kept in %s\n  %s", file, strings.Join(errs, "\n  "))
		}
		tried = body
		obj, violations, err := e.parse(ctx, file, body, rec.Object, beside)
		if err != nil {
			return done, err
		}
		if len(violations) > 0 {
			errs = errorLines(violations, len(head)+1, file)
			continue
		}
		changes, err := s.Apply(ctx, []v1.Object{obj}, store.ApplyOptions{Expect: map[v1.Key]int64{key: rec.ResourceVersion}, By: e.By, Command: "edit"})
		if err != nil {
			keep = true
			return done, fmt.Errorf("%w; the edited text is in %s", err, file)
		}
		done.Changes = Changes(changes)
		return done, nil
	}
}

// writeNamed writes the files that a manifest refers to beside it.
func writeNamed(dir string, files map[string][]byte) error {
	for name, content := range files {
		if !filepath.IsLocal(name) {
			return usagef("the manifest refers to the file %s in a parent folder: edit the file of the manifest, and apply it", name)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ask opens the editor with toolctl's lines above the text, and returns the edited text.
func (e *Edit) ask(ctx context.Context, file string, head, errs []string, body []byte) ([]byte, error) {
	var b bytes.Buffer
	for _, line := range slices.Concat(head, errs) {
		fmt.Fprintf(&b, "%s%s\n", note, line)
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(note))
	b.Write(body)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		return nil, err
	}
	if err := e.Editor(ctx, file); err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	after, err := regular.ReadUpTo(file, maxEdited)
	if err != nil {
		return nil, &UsageError{err}
	}
	for bytes.HasPrefix(after, []byte(strings.TrimSpace(note))) {
		_, after, _ = bytes.Cut(after, []byte("\n"))
	}
	return after, nil
}

// parse reads the text as the new manifest of an object.
func (e *Edit) parse(ctx context.Context, file string, body []byte, old v1.Object, beside []v1.Object) (v1.Object, []v1.Violation, error) {
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, nil, err
	}
	check, err := e.Checking(Reading{Paths: []string{file}, Beside: beside, Places: true, Layout: true})
	if err != nil {
		return nil, nil, err
	}
	set, violations, err := check.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	if violations = v1.Errors(violations); len(violations) > 0 {
		return nil, violations, nil
	}
	key := old.Head().Key()
	if len(set.Objects) != 1 || set.Objects[0].Head().Key() != key {
		return nil, []v1.Violation{{Message: fmt.Sprintf("expected the one manifest of %s: an edit cannot change kind, namespace or name", key)}}, nil
	}
	obj := set.Objects[0]
	obj.Head().Source, obj.Head().Fields = old.Head().Source, nil
	return obj, nil, nil
}

// errorLines formats violations for the next edit, in which the manifest follows head lines and one line for each
// violation.
func errorLines(violations []v1.Violation, head int, file string) []string {
	lines := make([]string, len(violations))
	for i, f := range violations {
		place := ""
		if f.Source.File == file && f.Source.Line > 0 {
			place = fmt.Sprintf("line %d: ", f.Source.Line+head+len(violations))
		}
		if f.Path != "" {
			place += v1.FieldPath(f.Path) + ": "
		}
		lines[i] = "error: " + place + clip.Line(f.Message)
	}
	return lines
}
