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

// Lint finds manifests that are valid but unwise.
type Lint struct {
	Check
	// Only selects the objects whose findings are reported. The rules still check all objects, because a
	// finding may concern two. Default: all.
	Only func(v1.Object) bool
	// LockFile is the lock with the tools of MCP servers. Default: the nearest toolctl.lock in the current
	// folder or a parent, if there is one.
	LockFile string
	// Lint are the options of [lint.Check], except its Lock.
	Lint lint.Options
}

// Linted is the result of [Lint].
type Linted struct {
	lint.Report
	// Objects is the number of selected objects, and Files the number of files that were read.
	Objects, Files int
	// Errors are the errors in the manifests: lint needs manifests without errors.
	Errors []v1.Violation
}

// Run loads and checks the manifests.
func (o Lint) Run(ctx context.Context) (Linted, error) {
	o.Places, o.SkipTexts = true, true // the rules of lint check the texts themselves
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
		objects = nil // rules would treat the broken lock as missing
	}
	r := Linted{Report: lint.Check(objects, o.Lint), Objects: len(set.Objects), Files: set.Files}
	r.Errors = v1.Errors(violations, broken)
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
