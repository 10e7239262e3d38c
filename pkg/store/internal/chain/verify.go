package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Kind is the kind of the change in the audit record of a prune.
const Kind = "Audit"

// Row is an audit record as stored, with the columns that filters use.
type Row struct {
	ID, Time                         int64 // microseconds since 1970
	Tool, Session, Status, Principal string
	Text, Hash                       []byte
}

// State is the data that a backend stores about the chain in addition to its records.
type State struct {
	// Written is the last ID in use, Before the last record that is older than the chain, and Pruned the last pruned
	// record. They are 0 if there is no such record.
	Written, Before, Pruned int64
	// Start is the hash of the record Pruned.
	Start Hash
	// Open are the records of intent without an outcome, by call.
	Open map[string][]int64
}

// note updates the records of intent without an outcome after a record was written.
func note(open map[string][]int64, id int64, r *v1.AuditRecord) {
	switch lines := open[r.CallID]; {
	case Begins(r.Status):
		open[r.CallID] = append(lines, id)
	case Ends(r.Status) && len(lines) > 1:
		open[r.CallID] = lines[1:]
	case Ends(r.Status):
		delete(open, r.CallID)
	}
}

// Verifier verifies the chain record by record.
type Verifier struct {
	want  string // a hash that must occur
	state State

	said             *v1.AuditChange    // the newest record of a prune
	links            Links              // of the rows so far
	lastLink, pruned int64              // the ID of the last link, and the number of removed records
	open             map[string][]int64 // by call: records of intent without an outcome
	head             Hash
	lastID           int64 // of the last record, 0 before the first
	lines, unchained int64
	violation        *store.AuditBreak
}

// NewVerifier returns a Verifier. Unless head is "", it must be the hash of a record.
func NewVerifier(head string) (*Verifier, error) {
	v := &Verifier{want: strings.ToLower(head), open: map[string][]int64{}}
	if v.want != "" && (len(v.want) != 2*len(v.head) || strings.Trim(v.want, "0123456789abcdef") != "") {
		return nil, fmt.Errorf("audit: head %q: expected the %d hexadecimal digits of a line's hash", v.want, 2*len(v.head))
	}
	v.found()
	return v, nil
}

// Start sets the stored state of the chain. It must be called before the first Add.
func (v *Verifier) Start(s State) {
	v.state, v.head, v.lastID, v.pruned = s, s.Start, s.Pruned, s.Pruned
	v.found()
}

// Add verifies the next row. It reports whether the chain is intact so far.
func (v *Verifier) Add(r *Row) bool {
	v.violation = v.check(r)
	return v.violation == nil
}

// End returns the result.
func (v *Verifier) End() store.AuditCheck {
	v.end(v.state.Open)
	return store.AuditCheck{Lines: v.lines, Unchained: v.unchained, Pruned: v.pruned, Head: v.head.String(), Broken: v.violation}
}

// found clears the required hash if the current record has it.
func (v *Verifier) found() {
	if v.want == v.head.String() {
		v.want = ""
	}
}

func (v *Verifier) check(r *Row) *store.AuditBreak {
	v.links.Add(r.ID, r.Hash, r.IsLink())
	if r.IsLink() && r.ID > v.lastID { // end checks whether it may be a link
		v.pruned += r.ID - v.lastID
		v.head, v.lastID, v.lastLink = Hash{}, r.ID, r.ID
		copy(v.head[:], r.Hash)
		v.found()
		return nil
	}
	if r.Hash == nil && v.lines == 0 && r.ID <= v.state.Before {
		v.unchained++
		v.lastID = r.ID
		return nil
	}
	var record v1.AuditRecord
	err := json.Unmarshal(r.Text, &record)
	violation := func(format string, args ...any) *store.AuditBreak {
		return &store.AuditBreak{Line: r.ID, CallID: record.CallID, Time: record.Time, Message: fmt.Sprintf(format, args...)}
	}
	next := v.head.Next(r.Text)
	switch {
	case (v.lines > 0 || v.lastLink > v.state.Before) && r.ID != v.lastID+1:
		return &store.AuditBreak{Line: v.lastID + 1, Message: missing(v.lastID+1, r.ID-1)}
	case r.Hash == nil:
		return violation("it has no hash: it was added, or its hash was removed")
	case !bytes.Equal(next[:], r.Hash):
		return violation("its hash does not match: it was changed, or a line before it was removed or moved")
	case err != nil:
		return violation("it is not a record: %v", err)
	}
	for _, c := range []struct{ name, column, record string }{
		{"time", fmt.Sprint(r.Time), fmt.Sprint(record.Time.UnixMicro())}, {"tool", r.Tool, record.Tool}, {"session", r.Session, record.Session},
		{"status", r.Status, record.Status}, {"principal", r.Principal, record.Principal},
	} {
		if c.column != c.record {
			return violation("its column %s was changed: expected %q, got %q", c.name, c.record, c.column)
		}
	}
	v.head, v.lastID = next, r.ID
	v.lines++
	v.found()
	v.follow(r.ID, &record)
	return nil
}

// follow processes a record that describes other records.
func (v *Verifier) follow(id int64, r *v1.AuditRecord) {
	note(v.open, id, r)
	if c := r.Change; r.Status == v1.StatusChanged && c != nil && c.Kind == Kind {
		v.said = c
	}
}

// end looks for records that are missing at the end.
func (v *Verifier) end(open map[string][]int64) {
	switch {
	case v.violation != nil:
	case v.lastID < v.state.Written:
		v.violation = &store.AuditBreak{Line: v.lastID + 1, Message: missing(v.lastID+1, v.state.Written) + " at the end"}
	case v.lastLink > 0 && (v.said == nil || v.said.Links != v.links.Digest()):
		v.violation = &store.AuditBreak{Line: v.lastLink, Message: "the remaining lines before it are not those that the last prune kept: lines were changed or removed"}
	case v.state.Pruned > 0 && (v.said == nil || v.said.To != v.state.Pruned+1):
		v.violation = &store.AuditBreak{Line: v.state.Pruned, Message: "it and earlier records are missing, and no record states that they were pruned"}
	case !v.sameOpen(open):
		v.violation = &store.AuditBreak{Line: v.lastID, Message: "the list of calls without an outcome was changed: 'toolctl audit list --all' shows every line"}
	case v.want != "" && v.state.Pruned > 0:
		v.violation = &store.AuditBreak{Line: v.lastID + 1, Message: fmt.Sprintf("no line has the hash %s: the line was before line %d and was pruned, lines at the end were removed, or the whole audit log was rewritten", v.want, v.state.Pruned)}
	case v.want != "":
		v.violation = &store.AuditBreak{Line: v.lastID + 1, Message: "no line has the hash " + v.want + ": lines at the end were removed, or the whole audit was rewritten"}
	}
}

// sameOpen compares the stored calls without an outcome with those of the records. If the times of records are out of
// order, the outcome of a call may have been pruned before its record of intent.
func (v *Verifier) sameOpen(open map[string][]int64) bool {
	if v.lastLink > 0 {
		for call, lines := range v.open {
			v.open[call] = slices.DeleteFunc(lines, func(id int64) bool { return id < v.lastLink && !slices.Contains(open[call], id) })
			if len(v.open[call]) == 0 {
				delete(v.open, call)
			}
		}
	}
	return maps.EqualFunc(open, v.open, slices.Equal[[]int64])
}

func missing(first, last int64) string {
	if first == last {
		return "it was removed"
	}
	return fmt.Sprintf("it and those up to line %d were removed", last)
}
