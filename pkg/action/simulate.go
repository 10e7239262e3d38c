package action

import (
	"context"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/auditlog"
)

// Simulate evaluates policies on recorded calls.
type Simulate struct {
	*Config
	// Audit is a file with one audit record of JSON per line. Default: the audit log of the store.
	Audit string
	// Since skips earlier calls.
	Since time.Time
}

// Run evaluates the policies on the calls in their order.
func (s *Simulate) Run(ctx context.Context) (sim *scenario.Simulation, err error) {
	records, err := s.records(ctx)
	if err != nil {
		return nil, err
	}
	err = s.within(ctx, func(w *Workspace) (err error) {
		sim, err = scenario.Simulate(ctx, w.Registry.Objects(), records)
		return err
	})
	return sim, err
}

// records reads the recorded calls.
func (s *Simulate) records(ctx context.Context) (records []v1.AuditRecord, err error) {
	if s.Audit == "" {
		err := s.withStore(ctx, false, func(from store.Store) (err error) {
			records, err = store.ListAudit(ctx, from, store.AuditFilter{Since: s.Since})
			return err
		})
		return records, err
	}
	f, err := regular.Open(s.Audit)
	if err != nil {
		return nil, &UsageError{err}
	}
	defer f.Close()
	if records, err = auditlog.Read(f, s.Since); err != nil {
		return nil, invalidf("%s: %w", s.Audit, err)
	}
	return records, nil
}
