// Package authoring has tools for agents that write manifests: validate, explain, lint, diff, test
// and examples. Each works like the command with its name, on a text or a folder. The tools read only
// that folder, without its hidden files. They do not write, start processes or use the network.
package authoring

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/lint"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/schemas"
)

// Instructions tell a model how to use the tools.
const Instructions = `These tools help you write manifests for toolctl: YAML objects of the kinds Tool, Prompt, MCPServer, ToolPolicy, Toolset and Scenario (apiVersion: toolctl.dev/v1). They read the folder that this server was started for and never write: write the files yourself.
1. Before you write a kind for the first time, call examples for complete manifests and explain for its fields.
2. Call validate with the text, before or after you write it, until it finds nothing. Each violation names the line, the field and what is expected.
3. Call lint and follow its fixes: a model chooses a tool by its name, description and schema.
4. Write a Scenario for each Tool, and call test: it runs scenarios against mocks, never against the real service.
5. Before you change a manifest that is in use, call diff: a change of class breaking shows a call that worked before and no longer does.`

// Bounds of one call.
const (
	maxText     = 1 << 20  // bytes of a text or file
	maxFolder   = 64 << 20 // bytes of all files
	maxFiles    = 5000
	maxExamples = 3 // for one topic
	perScenario = 10 * time.Second
	// maxRunning limits the number of concurrent calls, because each may hold the maximum input of a call in memory.
	maxRunning = 8
)

// Options are the options of the tools.
type Options struct {
	// Root is the folder. The tools read nothing outside of it. Required.
	Root *os.Root
	// Check defines how manifests are checked. Its Load is not used.
	Check action.Check
	// LockFile is the option of [action.Lint].
	LockFile string

	alone bool // texts are checked without the folder
}

// Tools returns the tools, for gateway.Options.Objects.
func Tools(o Options) []v1.Object {
	running := make(chan struct{}, maxRunning)
	return []v1.Object{
		tool(running, "validate", "Validate manifests", "Find every error and warning in manifests: syntax, fields, types, names, schemas, templates, and references between objects. "+
			"Call it with the text of each manifest that you write or change. Nothing is called or fetched.", o.validate),
		tool(running, "explain", "Explain a kind or field", "Print the documentation of a kind of manifest or of one of its fields: meaning, type, default, allowed values, an example, and the fields below it. "+
			"Use it instead of guessing names of fields.", explain),
		tool(running, "lint", "Lint manifests", "Find likely mistakes and risks in valid manifests: names and descriptions that mislead a model, schemas that providers refuse, tools without safeguards. "+
			"Each finding has a fix. The manifests must be valid first.", o.lint),
		tool(running, "diff", "Compare manifests", "Show what a new text of manifests changes, field by field, and whether that breaks callers, with an example of a call that breaks. "+
			"The other side is the file at path, or the text in before.", o.diff),
		tool(running, "test", "Run scenarios", "Run Scenario manifests against mocks and report what differs from the expectations. No tool is really called. "+
			"It runs the scenarios of the text or path; if there are none, those of the whole folder, so that a changed Tool is tested by the scenarios on disk.", o.test),
		tool(running, "examples", "Show example manifests", "Show complete, valid manifests to start from, with the other manifests that they need. "+
			"Without a topic it lists the examples.", examples),
	}
}

// tool returns a tool that calls do. Its calls wait for a slot in running, because an agent may send many calls at
// once.
func tool[In, Out any](running chan struct{}, name, title, description string, do func(context.Context, In) (Out, error)) v1.Object {
	t := registry.Func(name, description, func(ctx context.Context, in In) (out Out, err error) {
		select {
		case running <- struct{}{}:
		case <-ctx.Done():
			return out, ctx.Err()
		}
		defer func() { <-running }()
		return do(ctx, in)
	})
	yes, no := true, false
	t.Spec.Hints = &v1.Hints{Title: title, ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
	return t
}

// input is the input of most tools.
type input struct {
	Manifest string `json:"manifest,omitempty" description:"YAML or JSON text of one or more manifests, separated by ---, that need not be on disk. Without it the tool reads path."`
	Path     string `json:"path,omitempty" description:"file or folder relative to the server's folder, such as tools/weather.yaml; with manifest, the file whose content the text replaces (default: the whole folder; with manifest, a new file draft.yaml)"`
}

// read is a folder, and the file or folder in it that a tool is to check.
type read struct {
	load func(ctx context.Context, places bool) (*manifest.Set, error)
	path string
}

// read returns the folder together with the text of the input. It also reads a named file as a text, so that a file
// without a manifest is an error.
func (o Options) read(in input) (*read, error) {
	name := filepath.ToSlash(filepath.Clean(in.Path))
	switch {
	case !filepath.IsLocal(filepath.FromSlash(name)) || hidden(name):
		return nil, fmt.Errorf("path %q is outside of the folder of this server, or hidden: use a path below it, such as tools/weather.yaml", in.Path)
	case len(in.Manifest) > maxText:
		return nil, fmt.Errorf("manifest has %d bytes, and at most %d are read: split it into several files", len(in.Manifest), maxText)
	case in.Manifest != "" && in.Path == "":
		name = "draft.yaml"
	}
	files := &folder{FS: o.Root.FS()}
	if o.alone {
		files.FS = embed.FS{}
	}
	options := manifest.Options{MaxFileBytes: maxText, MaxFiles: maxFiles, MaxDocuments: maxFiles, AllowEmpty: true}
	text := []byte(in.Manifest)
	info, err := files.Stat(name)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return nil, fmt.Errorf("path %q cannot be read: it is a link that leaves the folder of this server, or there is no permission", in.Path)
	case in.Manifest != "" && !missing && info.IsDir():
		return nil, fmt.Errorf("path %q is a folder: name the file for the manifest, such as %s", in.Path, path.Join(name, "draft.yaml"))
	case in.Manifest != "":
	case missing:
		return nil, fmt.Errorf("path %q does not exist: pass the text as manifest, or write the file first", in.Path)
	case info.IsDir():
		name, text = filepath.FromSlash(name), nil
	case info.Size() > maxText:
		return nil, fmt.Errorf("path %q has %d bytes, and at most %d are read", in.Path, info.Size(), maxText)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("path %q is not a file", in.Path)
	default:
		if text, err = fs.ReadFile(files, name); err != nil {
			return nil, fmt.Errorf("path %q: %w", in.Path, err)
		}
	}
	if text != nil {
		if !slices.Contains([]string{".yaml", ".yml", ".json", ".md"}, strings.ToLower(path.Ext(name))) {
			return nil, fmt.Errorf("path %q does not name a manifest: use a name that ends in .yaml, .yml, .json or .md", in.Path)
		}
		options.Drafts = map[string][]byte{name: text}
	}
	return &read{path: filepath.FromSlash(name), load: func(ctx context.Context, places bool) (*manifest.Set, error) {
		options.Fields = places
		set, err := manifest.LoadFS(ctx, files, options)
		if err != nil {
			err = fmt.Errorf("%w (the folder of this server is chosen with 'toolctl mcp authoring -f FOLDER')", err)
		}
		return set, err
	}}, nil
}

func (r *read) only(obj v1.Object) bool { return action.Within(r.path, obj.Head().Source) }

// checked loads the folder. Errors in the named file or folder are an error.
func (o Options) checked(ctx context.Context, in input) (*read, *manifest.Set, error) {
	r, err := o.read(in)
	if err != nil {
		return nil, nil, err
	}
	check := o.Check
	check.Load, check.Places, check.SkipTexts = r.load, true, true
	set, violations, err := check.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	return r, set, r.valid(violations)
}

// valid returns an error with the violations in the named file or folder; nil if there are no violations. It ignores
// violations of the whole folder, because the folder may contain files for other programs.
func (r *read) valid(violations []v1.Violation) error {
	const most = 20
	var bad []string
	if r.path == "." {
		return nil
	}
	for _, v := range violations {
		if !v.IsWarning() && action.Within(r.path, v.Source) {
			bad = append(bad, "\n- "+v.String())
		}
	}
	if len(bad) == 0 {
		return nil
	}
	shown := bad[:min(len(bad), most)]
	return fmt.Errorf("the manifests have %s: correct them first; validate lists all of them%s", clip.Count(len(bad), "error"), strings.Join(shown, ""))
}

func (o Options) validate(ctx context.Context, in struct {
	input
	Strict bool `json:"strict,omitempty" description:"count warnings as errors"`
}) (action.Validation, error) {
	r, err := o.read(in.input)
	if err != nil {
		return action.Validation{}, err
	}
	v := action.Validate{Check: o.Check, Path: r.path, Strict: in.Strict}
	v.Load, v.Places = r.load, true
	return v.Run(ctx)
}

type explained struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	Text string `json:"text" description:"the documentation"`
}

func explain(_ context.Context, in struct {
	Path      string `json:"path" description:"a kind (tool, prompt, mcpserver, toolpolicy, toolset, scenario) or a field of one, such as tool.spec.http.headers"`
	Recursive bool   `json:"recursive,omitempty" description:"list the fields of all levels; long for a whole kind"`
}) (explained, error) {
	doc, err := schemas.Explain(in.Path, in.Recursive)
	if err != nil {
		return explained{}, errors.New(err.Error()) // drop the type, which would report that a tool was not found
	}
	return explained{Kind: doc.Kind, Path: doc.Path, Text: doc.Text()}, nil
}

func (o Options) lint(ctx context.Context, in input) (lint.Report, error) {
	r, err := o.read(in)
	if err != nil {
		return lint.Report{}, err
	}
	l := action.Lint{Check: o.Check, Only: r.only, LockFile: o.LockFile}
	l.Load = r.load
	found, err := l.Run(ctx)
	if err != nil {
		return lint.Report{}, err
	}
	return found.Report, r.valid(found.Errors)
}

func (o Options) diff(ctx context.Context, in struct {
	Manifest string `json:"manifest" description:"YAML or JSON text of the new manifests"`
	Path     string `json:"path,omitempty" description:"file with the present manifests, relative to the server's folder, such as tools/weather.yaml"`
	Before   string `json:"before,omitempty" description:"text of the present manifests, instead of the file at path"`
}) (diff.Report, error) {
	if in.Path == "" && in.Before == "" {
		return diff.Report{}, errors.New("there is nothing to compare with: name the file with path, or pass its text as before")
	}
	o.alone = in.Path == ""
	r, after, err := o.checked(ctx, input{in.Manifest, in.Path})
	if err != nil {
		return diff.Report{}, err
	}
	was := input{in.Before, in.Path}
	if in.Before == "" {
		was = input{} // the file need not exist yet
	}
	old, err := o.read(was)
	if err != nil {
		return diff.Report{}, err
	}
	before, err := old.load(ctx, true)
	if err != nil {
		return diff.Report{}, err
	}
	report, err := action.Compare{Before: before.Objects, After: after.Objects, Only: r.only}.Run(ctx)
	if err != nil {
		return diff.Report{}, err
	}
	return *report, nil
}

func (o Options) test(ctx context.Context, in input) (scenario.Report, error) {
	r, set, err := o.checked(ctx, in)
	if err != nil {
		return scenario.Report{}, err
	}
	var all, chosen []*v1.Scenario
	for _, obj := range set.Objects {
		if s, ok := obj.(*v1.Scenario); ok {
			all = append(all, s)
			if r.only(s) {
				chosen = append(chosen, s)
			}
		}
	}
	if len(chosen) == 0 {
		chosen = all
	}
	if len(chosen) == 0 {
		return scenario.Report{}, errors.New("there is no Scenario in the text or the folder: write one; examples with topic scenario shows how")
	}
	report, err := action.Test{Objects: set.Objects, Scenarios: chosen, Options: scenario.Options{Timeout: perScenario}}.Run(ctx)
	if err != nil {
		return scenario.Report{}, err
	}
	return *report, nil
}
