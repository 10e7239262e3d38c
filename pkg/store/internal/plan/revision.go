package plan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
)

// Member is an object in revisions of a set, from First to Last; Last is 0 while the newest revision contains it. The
// cost of a revision therefore depends on the number of changes, not on the size of the set.
type Member struct {
	Row
	Digest      string
	First, Last int64
}

// Revision is a revision to write.
type Revision struct {
	store.Revision
	// Record is the revision as JSON.
	Record []byte
	// Ends are the members whose Last becomes the previous number, Starts are new members.
	Ends   []v1.Key
	Starts []Member
	// Oldest is the first revision to keep. Older revisions are removed, with the members whose Last is before it.
	Oldest int64
}

// DecodeRevision decodes a stored revision.
func DecodeRevision(record []byte) (store.Revision, error) {
	var r store.Revision
	if err := json.Unmarshal(record, &r); err != nil {
		return r, fmt.Errorf("%w: a revision: %w", store.ErrDamaged, err)
	}
	return r, nil
}

// revise plans the revision of the applied set. The rest of p must be complete.
func (w *Wanted) revise(p *Plan, r Reader, now int64) error {
	opts := w.opts
	latest, before, err := r.Latest(opts.Set)
	if err != nil {
		return err
	}
	versions, err := w.membersAfter(p, r)
	if err != nil {
		return err
	}
	if latest.Number == 0 && len(versions) == 0 {
		return nil // the set is empty, such as when all objects stay in other sets
	}
	rev := &Revision{Revision: store.Revision{
		Set: opts.Set, Number: latest.Number + 1, Time: time.UnixMicro(now).UTC(), By: opts.By, Command: cmp.Or(opts.Command, "apply"),
		Source: opts.Source, Commit: opts.Commit, UndoOf: opts.UndoOf,
		Objects: len(versions), ResourceVersion: p.Version, Changes: []store.RevisionChange{},
	}}
	for _, c := range p.Changes {
		if c.Action != store.Unchanged || c.TakenFrom != "" {
			rev.Changes = append(rev.Changes, store.RevisionChange{Action: c.Action, Kind: c.Key.Kind, Namespace: c.Key.Namespace, Name: c.Key.Name, TakenFrom: c.TakenFrom})
		}
	}
	w.noteLeft(rev, &latest, before, versions)
	digests := make(map[v1.Key]string, len(versions))
	for i := range before {
		m := &before[i]
		if at, ok := versions[m.Key]; ok && at == m.Version {
			digests[m.Key] = m.Digest
		} else {
			rev.Ends = append(rev.Ends, m.Key)
		}
	}
	if err := p.start(rev, r, versions, digests); err != nil {
		return err
	}
	rev.Digest = digestOf(digests)
	if opts.ChangesOnly && latest.Number > 0 && len(rev.Changes)+len(rev.Ends)+len(rev.Starts) == 0 &&
		rev.Source == latest.Source && rev.Commit == latest.Commit && !strings.HasSuffix(rev.Commit, "-dirty") && slices.Equal(rev.Left, latest.Left) {
		return nil
	}
	history := cmp.Or(opts.History, store.DefaultHistory)
	rev.Oldest = rev.Number - int64(max(history, 0))
	if rev.Record, err = jsontext.Marshal(&rev.Revision); err != nil {
		return err
	}
	p.Revision = rev
	return nil
}

// membersAfter returns the members of the set after the plan, with their resourceVersions.
func (w *Wanted) membersAfter(p *Plan, r Reader) (map[v1.Key]int64, error) {
	versions, err := r.Versions(w.opts.Set)
	if err != nil {
		return nil, err
	}
	for i := range p.Upserts {
		if row := &p.Upserts[i]; row.Set == w.opts.Set {
			versions[row.Key] = row.Version
		}
	}
	for _, k := range p.Gone {
		delete(versions, k)
	}
	return versions, nil
}

// noteLeft records the members that were not applied.
func (w *Wanted) noteLeft(rev *Revision, latest *store.Revision, before []Member, versions map[v1.Key]int64) {
	given := make(map[v1.Key]bool, len(w.rows))
	for i := range w.rows {
		given[w.rows[i].Key] = true
	}
	earlier := make(map[v1.Key]store.LeftObject, len(latest.Left))
	for _, l := range latest.Left {
		earlier[l.Key()] = l
	}
	was := make(map[v1.Key]bool, len(before))
	for i := range before {
		was[before[i].Key] = true
	}
	for key := range versions {
		if given[key] {
			continue
		}
		l, ok := earlier[key]
		if !ok {
			l = store.LeftObject{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
			if was[key] {
				l.Revision, l.Commit, l.Source = latest.Number, latest.Commit, latest.Source
			}
		}
		rev.Left = append(rev.Left, l)
	}
	slices.SortFunc(rev.Left, func(a, b store.LeftObject) int { return Compare(a.Key(), b.Key()) })
}

// start finds the rows of the members without a digest: those that the plan writes, and those that something else
// changed since the previous revision.
func (p *Plan) start(rev *Revision, r Reader, versions map[v1.Key]int64, digests map[v1.Key]string) error {
	written := byKey(p.Upserts)
	var fresh, missing []v1.Key
	for key := range versions {
		if _, ok := digests[key]; !ok {
			if fresh = append(fresh, key); written[key] == nil {
				missing = append(missing, key)
			}
		}
	}
	rows, err := r.Rows(missing)
	if err != nil {
		return err
	}
	maps.Copy(written, byKey(rows))
	slices.SortFunc(fresh, Compare)
	for _, key := range fresh {
		row := written[key]
		if row == nil {
			return fmt.Errorf("%w: %s is a member of set %q but does not exist", store.ErrDamaged, key, rev.Set)
		}
		m := Member{Row: *row, First: rev.Number}
		if m.Digest, err = row.digest(); err != nil {
			return err
		}
		digests[key] = m.Digest
		rev.Starts = append(rev.Starts, m)
	}
	return nil
}

// digest returns the digest of the manifest and of the files that it names.
func (r *Row) digest() (string, error) {
	h := sha256.New()
	h.Write(r.Manifest)
	if bytes.Contains(r.Origin, []byte(`"files":`)) {
		var from origin
		if err := json.Unmarshal(r.Origin, &from); err != nil {
			return "", fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.Key, err)
		}
		for _, name := range slices.Sorted(maps.Keys(from.Files)) {
			fmt.Fprintf(h, "\n%q %d\n", name, len(from.Files[name]))
			h.Write(from.Files[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// digestOf returns the digest of a set.
func digestOf(digests map[v1.Key]string) string {
	h := sha256.New()
	for _, key := range slices.SortedFunc(maps.Keys(digests), Compare) {
		fmt.Fprintf(h, "%s %s\n", key, digests[key])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
