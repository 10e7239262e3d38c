package action

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lint"
	"toolctl.dev/toolctl/pkg/lock"
)

// Lint finds what is valid but unwise in manifests.
type Lint struct {
	Check
	// Only chooses the objects whose findings are reported. Rules look at all objects: one may be about
	// another. Default: all.
	Only func(v1.Object) bool
	// LockFile is the lock, which has what is known of the tools of MCP servers. Default: the nearest
	// toolctl.lock, from the current folder upwards; there need be none.
	LockFile string
	// Lint are the options of [lint.Check], but for its Lock.
	Lint lint.Options
}

// Linted is what lint found.
type Linted struct {
	lint.Report
	// Objects counts those that were chosen, Files those that were read.
	Objects, Files int
	// Errors are those of all manifests: lint needs manifests without errors.
	Errors []v1.Violation
}

// Run loads the manifests and looks them over.
func (o Lint) Run(ctx context.Context) (Linted, error) {
	o.Places, o.SkipTexts = true, true // the rules have the texts
	set, violations, err := o.Check.Run(ctx)
	if err != nil {
		return Linted{}, err
	}
	path, err := lock.Find(o.LockFile)
	if err != nil {
		return Linted{}, err
	}
	broken := o.brokenLocks()
	if o.Lint.Lock, err = lock.Read(path); err != nil && len(broken) == 0 && (!errors.Is(err, fs.ErrNotExist) || o.LockFile != "") {
		return Linted{}, err
	}
	objects := set.Objects
	if len(broken) > 0 {
		objects = nil // rules would take the lock for one that is missing
	}
	r := Linted{Report: lint.Check(objects, o.Lint), Objects: len(set.Objects), Files: set.Files}
	r.Errors = errorsOf(violations, broken)
	if o.Only == nil {
		return r, nil
	}
	chosen := map[v1.Key]bool{}
	for _, obj := range set.Objects {
		if o.Only(obj) {
			chosen[obj.Head().Key()] = true
		}
	}
	other := func(f lint.Finding) bool { return !chosen[v1.Key{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}] }
	r.Findings, r.Ignored = slices.DeleteFunc(r.Findings, other), slices.DeleteFunc(r.Ignored, other)
	r.Objects = len(chosen)
	return r, nil
}
