package rollout

import (
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Name is a set as one line: one that is named by several paths has a line for each.
func Name(set string) string { return strings.ReplaceAll(set, "\n", ", ") }

// ObjectName is an object as one line: tool/NAME, with its namespace where that is not the default.
func ObjectName(k v1.Key) string {
	name := strings.ToLower(k.Kind) + "/" + k.Name
	if k.Namespace != v1.DefaultNamespace {
		name += " in namespace " + k.Namespace
	}
	return name
}

// State is how a set stands to its newest revision.
type State struct {
	Revision store.Revision
	// Members are the objects that belong to the set now.
	Members []store.Record
	// Changed are those of them that something else changed since the revision, and Gone what
	// it had and no longer belongs to the set.
	Changed, Gone []v1.Key
}

// Inspect compares a set with its newest revision.
func Inspect(ctx context.Context, st store.Store, newest store.Revision) (*State, error) {
	list, err := st.List(ctx, store.ListOptions{Set: newest.Set})
	if err != nil {
		return nil, err
	}
	s := &State{Revision: newest, Members: list.Records}
	here := make(map[v1.Key]bool, len(list.Records))
	for i := range list.Records {
		r := &list.Records[i]
		here[r.Key()] = true
		if newest.Drifted(r) {
			s.Changed = append(s.Changed, r.Key())
		}
	}
	if len(s.Members) == newest.Objects && s.Changed == nil { // nothing enters a set but by its applies
		return s, nil
	}
	had, err := st.RevisionObjects(ctx, newest.Set, newest.Number)
	if err != nil {
		return nil, err
	}
	for _, r := range had {
		if !here[r.Key()] {
			s.Gone = append(s.Gone, r.Key())
		}
	}
	return s, nil
}

func keySet(keys []v1.Key) map[v1.Key]bool {
	set := make(map[v1.Key]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set
}
