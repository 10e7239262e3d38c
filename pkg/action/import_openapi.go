package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/openapi"
)

// ImportOpenAPI makes Tool manifests of an OpenAPI document.
type ImportOpenAPI struct {
	// Source is a file, a URL, or "-" for Stdin.
	Source string
	// Include and Exclude are filters as KEY=GLOB.
	Include, Exclude []string
	openapi.Options
	// Given reports whether the caller has set the flag with this name. Other options have the values of the last import
	// into the folder. Default: none is set.
	Given func(flag string) bool
}

// Read reads the document.
func (i *ImportOpenAPI) Read(ctx context.Context, c *Config, dir string) (_ *importer.Result, err error) {
	o := i.Options
	if o.Filter, err = openapi.NewFilter(i.Include, i.Exclude); err != nil {
		return nil, &UsageError{err}
	}
	o.Namespace = c.Namespace
	r := &importer.Result{}
	if dir != "" {
		if r.Reused, err = i.reuse(dir, &o); err != nil {
			return nil, err
		}
	}
	doc, err := openapi.Load(ctx, i.Source, openapi.LoadOptions{Stdin: c.Stdin})
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return r, usagef("%s: %w", unread.Path, unread.Err)
	}
	if err != nil {
		return r, err
	}
	set, err := doc.Import(ctx, o)
	if err != nil {
		return r, err
	}
	set.Reused = r.Reused
	if len(set.Tools)+len(set.Skipped) == 0 {
		return r, &EmptyError{nothing(set)}
	}
	return &set.Result, nil
}

// EmptyError reports a document that has nothing to import.
type EmptyError struct{ text string }

func (e *EmptyError) Error() string { return e.text }

func nothing(set *openapi.Set) string {
	if set.Operations == 0 {
		return set.Source + ": paths: the document has no operations"
	}
	text := fmt.Sprintf("%s: none of %s matches --include and --exclude", set.Source, clip.Count(set.Operations, "operation"))
	if len(set.Tags) > 0 {
		text += "; the tags are " + strings.Join(set.Tags, ", ")
	}
	return clip.Line(text)
}

// reuse sets options that are not given to those of the last import into the folder, and returns these as flags. Without
// this, an update would also change the tools.
func (i *ImportOpenAPI) reuse(dir string, o *openapi.Options) (flags []string, err error) {
	var last openapi.Options
	if err := importer.LastOptions(dir, &last); err != nil {
		return nil, err
	}
	given := i.Given
	if given == nil {
		given = func(string) bool { return false }
	}
	for name, text := range map[string]struct{ now, last *string }{
		"server": {&o.Server, &last.Server}, "namespace": {&o.Namespace, &last.Namespace},
		"prefix": {&o.Prefix, &last.Prefix}, "env-prefix": {&o.EnvPrefix, &last.EnvPrefix},
	} {
		if !given(name) && *text.last != "" {
			*text.now = *text.last
			flags = append(flags, "--"+name+" "+*text.last)
		}
	}
	if !given("allow-private-network") && last.AllowPrivateNetwork {
		o.AllowPrivateNetwork = true
		flags = append(flags, "--allow-private-network")
	}
	slices.Sort(flags)
	return flags, nil
}
