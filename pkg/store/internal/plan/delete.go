package plan

import (
	"errors"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Delete plans the removal of objects, at a time in microseconds since 1970.
func Delete(r Reader, keys []v1.Key, now int64) (*Plan, error) {
	found, err := r.Rows(keys)
	if err != nil {
		return nil, err
	}
	there := byKey(found)
	var rows []Row
	var missing []error
	seen := make(map[v1.Key]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		if row := there[key]; row != nil {
			rows = append(rows, *row)
			continue
		}
		nf, err := NotFound(r, key)
		if err != nil {
			return nil, err
		}
		missing = append(missing, nf)
	}
	if missing != nil {
		return nil, Refuse(errors.Join(missing...))
	}
	p := &Plan{}
	if p.Version, err = r.Revision(); err != nil {
		return nil, err
	}
	p.Removed, err = p.remove(rows, now)
	return p, err
}

// NotFound returns the error for a missing object, with similar names.
func NotFound(r Reader, key v1.Key) (*v1.NotFoundError, error) {
	names, err := r.Names(key.Kind)
	if err != nil {
		return nil, err
	}
	e := &v1.NotFoundError{Kind: key.Kind, Name: displayName(key)}
	for _, near := range names {
		if near.Name == key.Name || near.Namespace == key.Namespace && v1.Nearest(key.Name, []string{near.Name}) != "" {
			e.Candidates = append(e.Candidates, displayName(near))
		}
	}
	slices.Sort(e.Candidates)
	e.Candidates = e.Candidates[:min(len(e.Candidates), 5)]
	return e, nil
}

func displayName(k v1.Key) string {
	if k.Namespace == v1.DefaultNamespace {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}
