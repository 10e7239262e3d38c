package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

type editOptions struct{ *app }

func newEditCmd(a *app) *cobra.Command {
	o := &editOptions{a}
	return &cobra.Command{
		Use:   "edit KIND/NAME",
		Short: "Edit an object of the store in $EDITOR",
		Long: `Edit an object of the store in the editor that VISUAL or EDITOR names, else in vi.
When the manifest that was written has errors it is opened again, with the errors
as comments at its top. An empty file, and one that was not changed, ends the edit
and changes nothing.

Output formats (-o): table (a line an object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl edit tool/get-weather
  EDITOR='code --wait' toolctl edit toolpolicy careful -n prod`,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(a.files) > 0 {
				return usagef("edit is for objects of the store: open the files of -f in an editor yourself")
			}
			rs, err := requests(args)
			if err != nil {
				return a.meant(cmd, err)
			}
			if !named(rs) {
				return usagef("expected KIND/NAME or KIND NAME")
			}
			s, err := a.openStore(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s)
			objects, err := action.Objects(cmd.Context(), s, store.ListOptions{})
			if err != nil {
				return err
			}
			reg, err := registry.New(objects, registry.Options{})
			if err != nil {
				return err
			}
			for _, r := range rs {
				for _, name := range r.names {
					it, err := reg.Get(r.kind, a.namespace, name)
					if err != nil {
						return err
					}
					if err := o.edit(cmd.Context(), s, it.Object.Head().Key()); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// note starts the lines of the file that are ours; they are no part of the manifest.
const note = "#| "

// edit lets a person edit one object until it can be applied or they give up.
func (o *editOptions) edit(ctx context.Context, s store.Store, key v1.Key) error {
	rec, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "toolctl-edit-")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			if err := os.RemoveAll(dir); err != nil {
				o.logger().Warn("the folder of the edit is left", "error", err)
			}
		}
	}()
	if err := writeNamed(dir, rec.Object.Head().Files); err != nil {
		return err
	}
	before, err := manifest.MarshalYAML(rec.Object)
	if err != nil {
		return err
	}
	list, err := s.List(ctx, store.ListOptions{})
	if err != nil {
		return err
	}
	beside := action.Placeholders(list.Records)
	file := filepath.Join(dir, key.Name+".yaml")
	head := []string{"Edit the manifest of " + objectName(key) + " in namespace " + key.Namespace + ". Lines that start with \"#|\" are dropped;",
		"an empty file ends the edit and changes nothing. When there are errors, this opens again and names them."}
	var errs []string
	tried := []byte(nil)
	for body := before; ; {
		if body, err = o.ask(ctx, file, head, errs, body); err != nil {
			return err
		}
		switch {
		case len(bytes.TrimSpace(body)) == 0:
			fmt.Fprintln(o.err, "edit cancelled: the file is empty")
			return nil
		case bytes.Equal(body, before) && tried == nil:
			fmt.Fprintln(o.err, "edit cancelled: nothing was changed")
			return nil
		case tried != nil && bytes.Equal(body, tried):
			keep = true
			for i := range errs {
				errs[i] = strings.TrimPrefix(errs[i], "error: ")
			}
			return statusError{exitInvalid, fmt.Sprintf("edit cancelled: the manifest still has errors; it is kept in %s\n  %s", file, strings.Join(errs, "\n  "))}
		}
		tried = body
		obj, violations, err := o.parse(ctx, file, body, rec.Object, beside)
		if err != nil {
			return err
		}
		if len(violations) > 0 {
			errs = errorLines(violations, len(head)+1, file)
			continue
		}
		changes, err := s.Apply(ctx, []v1.Object{obj}, store.ApplyOptions{Expect: map[v1.Key]int64{key: rec.ResourceVersion}, By: o.whoami(), Command: "edit"})
		if err != nil {
			keep = true
			return fmt.Errorf("%w; what was edited is kept in %s", err, file)
		}
		return o.printChanges(o.format(), action.Changes(changes), false)
	}
}

// writeNamed puts the files that the manifest names beside it.
func writeNamed(dir string, files map[string][]byte) error {
	for name, content := range files {
		if !filepath.IsLocal(name) {
			return usagef("the manifest names the file %s, which is in a folder above it: edit its own file, and apply that", name)
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

// ask opens the editor with the text below our lines, and returns what was made of it.
func (o *editOptions) ask(ctx context.Context, file string, head, errs []string, body []byte) ([]byte, error) {
	var b bytes.Buffer
	for _, line := range slices.Concat(head, errs) {
		fmt.Fprintf(&b, "%s%s\n", note, line)
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(note))
	b.Write(body)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		return nil, err
	}
	program, args := o.editorCommand()
	program = cmp.Or(program, "vi")
	if err := o.openEditor(ctx, program, append(args, file)); err != nil {
		return nil, fmt.Errorf("nothing is changed: %w", err)
	}
	after, err := readFile(file, maxArgsBytes)
	if err != nil {
		return nil, err
	}
	for bytes.HasPrefix(after, []byte(strings.TrimSpace(note))) {
		_, after, _ = bytes.Cut(after, []byte("\n"))
	}
	return after, nil
}

// parse reads the text as the manifest that takes the place of an object.
func (o *editOptions) parse(ctx context.Context, file string, body []byte, old v1.Object, beside []v1.Object) (v1.Object, []v1.Violation, error) {
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, nil, err
	}
	c, err := o.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	check, err := c.Checking(action.Reading{Paths: []string{file}, Beside: beside, Places: true, Layout: true})
	if err != nil {
		return nil, nil, err
	}
	set, violations, err := check.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	violations = slices.DeleteFunc(violations, func(f v1.Violation) bool { return f.IsWarning() })
	if len(violations) > 0 {
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

// errorLines writes violations for the file that is opened again, whose lines are below
// ours: head lines and one for each violation.
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
