package store

import (
	"context"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Report is the result of [Check].
type Report struct {
	// Objects, Approvals and Overrides are the numbers of these. Approvals include those that no longer wait.
	Objects   int `json:"objects"`
	Approvals int `json:"approvals"`
	Overrides int `json:"overrides"`
	// Runs is the number of waiting agent runs.
	Runs int `json:"runs"`
	// Revisions is the number of revisions of all sets.
	Revisions int `json:"revisions"`
	// Audit is the result of the check of the audit chain.
	Audit AuditCheck `json:"audit"`
	// Problems describes all problems found.
	Problems []string `json:"problems"`
}

// Checker is a store that can check its own storage, such as a file.
type Checker interface {
	// CheckData returns the problems found.
	CheckData(ctx context.Context) ([]string, error)
}

// Backuper is a store that can copy itself into a file while it is in use.
type Backuper interface {
	// Backup writes a consistent copy of the store to a new file that only its owner can access. The error is
	// [fs.ErrExist] if the file exists, and [errors.ErrUnsupported] for a kind of store with backup programs of its
	// own.
	Backup(ctx context.Context, path string) error
}

// Compacter is a store that can return unused space to the disk.
type Compacter interface {
	// Compact returns unused space to the disk. On PostgreSQL and in files of older versions of toolctl it rewrites all
	// data: other users of the store wait for it.
	Compact(ctx context.Context) error
}

// Check reads the whole store and reports problems. It returns an error if the store cannot be read at all.
func Check(ctx context.Context, s Store) (Report, error) {
	r := Report{Problems: []string{}}
	if c, ok := s.(Checker); ok {
		problems, err := c.CheckData(ctx)
		if err != nil {
			return r, err
		}
		r.Problems = append(r.Problems, problems...)
	}
	for _, part := range []func() error{
		func() error {
			list, err := s.List(ctx, ListOptions{})
			r.Objects = list.Total
			return err
		},
		func() error {
			calls, err := s.ListApprovals(ctx)
			r.Approvals = len(calls)
			return err
		},
		func() error {
			all, err := s.Overrides(ctx)
			r.Overrides = len(all)
			return err
		},
		func() error {
			all, err := s.ListRuns(ctx)
			r.Runs = len(all)
			for i := 0; i < len(all) && err == nil; i++ {
				if _, err = s.GetRun(ctx, all[i].ID); errors.As(err, new(*v1.NotFoundError)) {
					err = nil // deleted in the meantime
				}
			}
			return err
		},
		func() error {
			all, err := s.Revisions(ctx, RevisionQuery{})
			r.Revisions = len(all)
			for i := 0; i < len(all) && err == nil; i++ {
				_, err = s.RevisionObjects(ctx, all[i].Set, all[i].Number)
			}
			return err
		},
		func() (err error) {
			r.Audit, err = s.VerifyAudit(ctx, "")
			if err == nil && r.Audit.Broken != nil {
				r.Problems = append(r.Problems, "audit: "+r.Audit.Broken.Error())
			}
			return err
		},
	} {
		switch err := part(); {
		case err == nil:
		case errors.Is(err, ErrDamaged):
			r.Problems = append(r.Problems, err.Error())
		default:
			return r, err
		}
	}
	return r, nil
}
