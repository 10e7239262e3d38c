package store

import (
	"context"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Report is what [Check] found.
type Report struct {
	// Objects, Approvals and Overrides are how many there are; of approvals also those that
	// wait no more.
	Objects   int `json:"objects"`
	Approvals int `json:"approvals"`
	Overrides int `json:"overrides"`
	// Runs is how many agent runs wait.
	Runs int `json:"runs"`
	// Revisions is how many there are of all sets.
	Revisions int `json:"revisions"`
	// Audit is what the check of its chain found.
	Audit AuditCheck `json:"audit"`
	// Problems says what is wrong; it is empty when nothing is.
	Problems []string `json:"problems"`
}

// Checker is a store that can check what it is kept in, such as a file.
type Checker interface {
	// CheckData returns what is wrong, empty for nothing.
	CheckData(ctx context.Context) ([]string, error)
}

// Backuper is a store that can copy itself into a file while it is used.
type Backuper interface {
	// Backup writes the store, as it is at one moment, to a new file that is its owner's alone.
	// A file that is there already is an error that is [fs.ErrExist], and a kind of store that
	// has programs of its own for it one that is [errors.ErrUnsupported].
	Backup(ctx context.Context, path string) error
}

// Compacter is a store that can give room back to the disk.
type Compacter interface {
	// Compact gives back what is free. On PostgreSQL and in files of older toolctls it writes all anew:
	// what uses the store waits meanwhile.
	Compact(ctx context.Context) error
}

// Check reads all of a store and says what is wrong with it. The error says that it could
// not be read at all.
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
					err = nil // it ended meanwhile
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
