package action

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"toolctl.dev/toolctl/pkg/openapi"
)

// ImportOpenAPI generates Tool manifests from an OpenAPI document.
type ImportOpenAPI struct {
	*Config
	// Source is a file, a URL, or "-" for Stdin.
	Source string
	// Dir is the folder for the files, one for each tool. Default: nothing is written.
	Dir string
	// Include and Exclude are filters as KEY=GLOB.
	Include, Exclude []string
	Tools            openapi.Options
	Folder           openapi.FolderOptions
	// Given reports whether the caller has set the flag with this name. Other options of the tools have the values of the
	// last import into Dir, and Taken is called with these options.
	Given func(flag string) bool
	Taken func(flags []string)
	// Made is called with the tools before they are written.
	Made func(*openapi.Set)
}

// ImportedOpenAPI is the result of an [ImportOpenAPI].
type ImportedOpenAPI struct {
	*openapi.Set
	// Report is nil if nothing was written.
	Report *openapi.Report
}

// Empty reports whether the document has nothing to import.
func (r *ImportedOpenAPI) Empty() bool { return len(r.Tools)+len(r.Skipped) == 0 }

// Run reads the document and writes the tools.
func (i *ImportOpenAPI) Run(ctx context.Context) (_ *ImportedOpenAPI, err error) {
	if i.Dir == "" && (i.Folder.Prune || i.Folder.DryRun) {
		return nil, usagef("--prune and --dry-run need a folder: name it with --out")
	}
	o := i.Tools
	if o.Filter, err = openapi.NewFilter(i.Include, i.Exclude); err != nil {
		return nil, &UsageError{err}
	}
	o.Namespace = i.Namespace
	if i.Dir != "" {
		if err := i.takeLast(&o); err != nil {
			return nil, err
		}
	}
	doc, err := openapi.Load(ctx, i.Source, openapi.LoadOptions{Stdin: i.Stdin})
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return nil, usagef("%s: %w", unread.Path, unread.Err)
	}
	if err != nil {
		return nil, err
	}
	r := &ImportedOpenAPI{}
	if r.Set, err = doc.Import(ctx, o); err != nil || r.Empty() {
		return r, err
	}
	if i.Made != nil {
		i.Made(r.Set)
	}
	if i.Dir != "" {
		r.Report, err = r.WriteFolder(ctx, i.Dir, i.Folder)
	}
	return r, err
}

// takeLast sets options that are not given to those of the last import into the folder. Without this, an update would
// also change the tools.
func (i *ImportOpenAPI) takeLast(o *openapi.Options) error {
	last, err := openapi.LastOptions(i.Dir)
	if err != nil {
		return err
	}
	given := i.Given
	if given == nil {
		given = func(string) bool { return false }
	}
	var taken []string
	for name, text := range map[string]struct{ now, last *string }{
		"server": {&o.Server, &last.Server}, "namespace": {&o.Namespace, &last.Namespace},
		"prefix": {&o.Prefix, &last.Prefix}, "env-prefix": {&o.EnvPrefix, &last.EnvPrefix},
	} {
		if !given(name) && *text.last != "" {
			*text.now = *text.last
			taken = append(taken, "--"+name+" "+*text.last)
		}
	}
	if !given("allow-private-network") && last.AllowPrivateNetwork {
		o.AllowPrivateNetwork = true
		taken = append(taken, "--allow-private-network")
	}
	if slices.Sort(taken); len(taken) > 0 && i.Taken != nil {
		i.Taken(taken)
	}
	return nil
}
