package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// gap counts the audit records that this process could not write. It is kept in a file beside the
// store, so that the next process that opens the store can record the gap if this process ends first.
// On a full disk the file may be empty, or missing; then only this process knows the gap.
type gap struct {
	mu   sync.Mutex
	file string // "" until something is missing
	v1.AuditGap
	written bool // the file holds it
}

// gapSuffix is between a store's path and what tells its gaps apart.
const gapSuffix = "-gap-"

// KeepGap keeps what is missing until a line on it is written.
func (s *Store) KeepGap(missing v1.AuditGap) {
	g := &s.gap
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == "" {
		g.file = s.name + gapSuffix + rand.Text()
	}
	// Written beside it first: a disk that is full may take a part.
	text, err := jsontext.Marshal(missing)
	part := g.file + ".part"
	if err == nil {
		err = os.WriteFile(part, text, 0o600)
	}
	if err == nil {
		err = os.Rename(part, g.file)
	}
	if err == nil {
		g.AuditGap, g.written = missing, true
		return
	}
	_ = os.Remove(part)
	if !g.written && os.WriteFile(g.file, nil, 0o600) == nil { // on a disk that is full there is room for a name
		g.AuditGap, g.written = v1.AuditGap{Lines: unread}, true
	}
}

// unread is how many lines a note stands for that cannot be read: one at least.
const unread = 1

// left is what of a line on a gap is still to be written: another process may have found
// the file and written it. It returns false for nothing.
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

// noted forgets the gap: a line of it was written.
func (g *gap) noted() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.written && os.Remove(g.file) != nil {
		return
	}
	g.AuditGap, g.written = v1.AuditGap{}, false
}

// adoptGaps writes the lines on gaps of processes that ended before they could. One that
// runs finds that it was done for it. What cannot be written now is left for later.
func (s *Store) adoptGaps(ctx context.Context) {
	files, _ := filepath.Glob(escapeGlob(s.name) + gapSuffix + "*") // the pattern is well formed
	for _, file := range files {
		if strings.HasSuffix(file, ".part") {
			continue // it is being written
		}
		taken := s.name + gapSuffix + rand.Text()
		if os.Rename(file, taken) != nil {
			continue // another process has it
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
			_ = os.Remove(taken) // else it is written once more
		}
	}
}

// escapeGlob makes a path a pattern that fits it alone.
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
