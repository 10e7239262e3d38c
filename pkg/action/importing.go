package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/mcpconfig"
	"toolctl.dev/toolctl/internal/promptpack"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/auditlog"
)

// Import converts a file of another program into manifests.
type Import struct {
	File string
	// As is the format of the file.
	As Format
	// Read returns the content of a file. It may stop one byte after limit.
	Read func(ctx context.Context, file string, limit int) ([]byte, error)
	// Noted is called with notes about data that a manifest cannot express.
	Noted func(notes []string)
}

// Format is a format that [Import] reads.
type Format struct {
	most int // maximum size in bytes
	read func(file string, data []byte) ([]v1.Object, []string, error)
}

// The formats that [Import] reads.
var (
	MCPConfig = Format{1 << 20, func(file string, data []byte) ([]v1.Object, []string, error) {
		servers, notes, err := mcpconfig.Read(file, data)
		objects := make([]v1.Object, len(servers))
		for i, s := range servers {
			objects[i] = s
		}
		return objects, notes, err
	}}
	PromptPack = Format{4 << 20, promptpack.Read}
)

// Run reads the file.
func (i *Import) Run(ctx context.Context) ([]v1.Object, error) {
	data, err := i.Read(ctx, i.File, i.As.most)
	if err != nil {
		return nil, err
	}
	if len(data) > i.As.most {
		return nil, usagef("%s is larger than %d bytes", i.File, i.As.most)
	}
	objects, notes, err := i.As.read(i.File, data)
	if i.Noted != nil {
		i.Noted(notes)
	}
	if err != nil {
		return nil, &InvalidError{err}
	}
	return objects, nil
}

// WriteManifests writes one file for each object into a folder and returns the paths. If one of the files exists, it
// writes nothing and fails, unless force is set.
func WriteManifests(dir string, objects []v1.Object, force bool) (paths []string, err error) {
	texts := make([][]byte, len(objects))
	for i, o := range objects {
		if texts[i], err = manifest.MarshalYAML(o); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var there []string
	for _, o := range objects {
		path := filepath.Join(dir, o.Head().Metadata.Name+".yaml")
		paths = append(paths, path)
		if _, err := os.Lstat(path); err == nil && !force {
			there = append(there, path+" already exists: use --force to overwrite it")
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(there) > 0 {
		return nil, errors.New(strings.Join(there, "\n"))
	}
	for i, text := range texts {
		if err := os.WriteFile(paths[i], text, 0o644); err != nil {
			return paths[:i], err
		}
	}
	return paths, nil
}

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
