package plan

import (
	"crypto/rand"
	"fmt"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Reader reads the store for a plan. All methods see the same version of the store.
type Reader interface {
	// Revision returns the last resourceVersion.
	Revision() (int64, error)
	// Rows returns the existing rows for some keys, in any order.
	Rows(keys []v1.Key) ([]Row, error)
	// Members returns the rows of a set, in any order.
	Members(set string) ([]Row, error)
	// Versions returns the resourceVersions of the members of a set.
	Versions(set string) (map[v1.Key]int64, error)
	// Latest returns the newest revision of a set, or the zero value, and the key, resourceVersion and digest of its
	// members, in any order.
	Latest(set string) (store.Revision, []Member, error)
	// Names returns the keys of the objects of a kind, by namespace and name.
	Names(kind string) ([]v1.Key, error)
}

// Plan lists the changes to make. Making a plan changes nothing.
type Plan struct {
	// Changes is the result of an apply, Removed that of a delete.
	Changes []store.Change
	Removed []store.Record
	// Upserts are rows to write, Gone rows to remove.
	Upserts []Row
	Gone    []v1.Key
	// Log has an event for each new resourceVersion; Version is the last one.
	Log     []Event
	Version int64
	// Revision is the new revision of the applied set, or nil.
	Revision *Revision

	at     int64 // microseconds since 1970
	commit string
}

// takenOver is the action in the audit log for an object that only moved to another set.
const takenOver = "taken over"

// Event is an entry in the log of changes.
type Event struct {
	Type store.EventType
	Row  Row
	// Before is the previous resourceVersion, or 0.
	Before int64
}

// Events decodes a part of the log. If it returns an error, it also returns the events before it.
func Events(log []Event) (events []store.Event, err error) {
	for i := range log {
		rec, err := log[i].Row.Decode()
		if err != nil {
			return events, err
		}
		events = append(events, store.Event{Type: log[i].Type, Record: rec})
	}
	return events, nil
}

// Kept returns the part of the log that remains if only the last changes are kept.
func (p *Plan) Kept(keep int64) []Event { return p.Log[max(int64(len(p.Log))-keep, 0):] }

// Lines returns the audit records of a plan, one for each changed object. removal is the action for removed objects.
func (p *Plan) Lines(by, command, removal string) []v1.AuditRecord {
	lines := make([]v1.AuditRecord, len(p.Log))
	from := map[v1.Key]string{} // previous sets of moved objects
	for _, c := range p.Changes {
		if c.TakenFrom != "" {
			from[c.Key] = c.TakenFrom
		}
	}
	for i, e := range p.Log {
		ch := &v1.AuditChange{Command: command, Kind: e.Row.Key.Kind, Name: e.Row.Key.Name, Set: e.Row.Set, TakenFrom: from[e.Row.Key], From: e.Before, To: e.Row.Version, Commit: p.commit}
		switch e.Type {
		case store.Added:
			ch.Action = string(store.Created)
		case store.Modified:
			ch.Action = string(store.Configured)
		case store.Deleted:
			ch.Action = removal
		}
		lines[i] = Line(time.UnixMicro(e.Row.Updated).UTC(), by, e.Row.Key.Namespace, ch)
	}
	for _, c := range p.Changes { // that only moved to another set
		if c.TakenFrom != "" && c.Action == store.Unchanged {
			ch := &v1.AuditChange{Command: command, Action: takenOver, Kind: c.Key.Kind, Name: c.Key.Name, Set: c.After.Set, TakenFrom: c.TakenFrom, From: c.Before.ResourceVersion, To: c.After.ResourceVersion, Commit: p.commit}
			lines = append(lines, Line(time.UnixMicro(p.at).UTC(), by, c.Key.Namespace, ch))
		}
	}
	return lines
}

// Line returns the audit record of a change of the store.
func Line(at time.Time, by, namespace string, ch *v1.AuditChange) v1.AuditRecord {
	line := v1.AuditRecord{Time: at, CallID: rand.Text(), Principal: by, Namespace: namespace, Status: v1.StatusChanged, Change: ch}
	if ch.Kind == v1.KindTool {
		line.Tool = ch.Name
	}
	return line
}

// Refusal marks an error that is about objects rather than the store.
type Refusal struct{ Err error }

// Refuse marks an error as a Refusal.
func Refuse(err error) error       { return &Refusal{err} }
func (r *Refusal) Error() string   { return r.Err.Error() }
func (r *Refusal) Unwrap() []error { return []error{r.Err} }

// remove plans the removal of rows and returns their records.
func (p *Plan) remove(rows []Row, now int64) ([]store.Record, error) {
	records, err := DecodeAll(rows)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p.Gone = append(p.Gone, r.Key)
		p.Version++
		before := r.Version
		r.Version, r.Updated = p.Version, now
		p.Log = append(p.Log, Event{Type: store.Deleted, Row: r, Before: before})
	}
	return records, nil
}

func byKey(rows []Row) map[v1.Key]*Row {
	m := make(map[v1.Key]*Row, len(rows))
	for i := range rows {
		m[rows[i].Key] = &rows[i]
	}
	return m
}

func places(a, b v1.Source) string {
	if a.IsZero() || b.IsZero() {
		return ""
	}
	return fmt.Sprintf(": at %s and at %s", a, b)
}
