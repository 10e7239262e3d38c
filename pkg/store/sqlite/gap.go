package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/jsontext"
)

// gap counts the audit records that this process could not write. It is kept in a file beside the
// store, so that the next process that opens the store can record the gap if this process ends first.
// On a full disk the file may be empty, or missing; then only this process knows the gap.
type gap struct {
	mu   sync.Mutex
	file string // "" until a record is lost
	v1.AuditGap
	written bool // the file contains the gap
}

// gapSuffix separates the store's path from a random name in the file name of a gap.
const gapSuffix = "-gap-"

// KeepGap saves the gap until a record of it is written.
func (s *Store) KeepGap(missing v1.AuditGap) {
	g := &s.gap
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == "" {
		g.file = s.name + gapSuffix + rand.Text()
	}
	text, err := jsontext.Marshal(missing)
	if err == nil {
		err = fileset.Replace(g.file, text, 0o600) // a full disk may truncate a text
	}
	if err == nil {
		g.AuditGap, g.written = missing, true
		return
	}
	if !g.written && os.WriteFile(g.file, nil, 0o600) == nil { // a full disk has room for a name
		g.AuditGap, g.written = v1.AuditGap{Lines: unread}, true
	}
}

// unread is the assumed number of lost records if the file of a gap cannot be read.
const unread = 1

// left reports whether the record of a gap must still be written, and reduces it to the part that is not recorded:
// another process may have found the file and recorded it.
func (g *gap) left(line *v1.AuditRecord) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := os.Lstat(g.file); !g.written || !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	missing := *line.Gap
	missing.Lines -= g.Lines
	line.Gap, g.AuditGap, g.written = &missing, v1.AuditGap{}, false
	return missing.Lines > 0
}

// noted clears the gap after its record was written.
func (g *gap) noted() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.written && os.Remove(g.file) != nil {
		return
	}
	g.AuditGap, g.written = v1.AuditGap{}, false
}

// adoptGaps writes the records of gaps of other processes that ended before they could do so. A process that still runs
// notices that its gap was recorded. Gaps that cannot be recorded now stay for later.
func (s *Store) adoptGaps(ctx context.Context) {
	files, _ := filepath.Glob(escapeGlob(s.name) + gapSuffix + "*") // the pattern is valid
	for _, file := range files {
		taken := s.name + gapSuffix + rand.Text()
		if os.Rename(file, taken) != nil {
			continue // another process took it
		}
		var missing v1.AuditGap
		text, err := os.ReadFile(taken)
		if err == nil {
			err = json.Unmarshal(text, &missing)
		}
		if err != nil || missing.Lines <= 0 {
			at := time.Now().UTC()
			if info, err := os.Stat(taken); err == nil {
				at = info.ModTime().UTC()
			}
			missing = v1.AuditGap{Lines: unread, Since: at, Until: at, Reason: "unknown, and there may be more: the note of it cannot be read"}
		}
		line := v1.AuditRecord{Time: time.Now().UTC(), CallID: rand.Text(), Status: v1.StatusGap, Gap: &missing}
		if s.appendLine(ctx, line.Bound()) == nil {
			_ = os.Remove(taken) // if this fails, the gap is recorded twice
		}
	}
}

// escapeGlob returns a pattern that matches only the path.
func escapeGlob(path string) string {
	var b []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			if os.PathSeparator != '\\' {
				b = append(b, '\\')
			}
		}
		b = append(b, path[i])
	}
	return string(b)
}

// AppendAudit implements [store.Audit].
func (s *Store) AppendAudit(ctx context.Context, line v1.AuditRecord) error {
	if line.Status != v1.StatusGap || line.Gap == nil {
		return s.appendLine(ctx, line)
	}
	if !s.gap.left(&line) {
		return nil
	}
	err := s.appendLine(ctx, line)
	if err == nil {
		s.gap.noted()
	}
	return err
}
