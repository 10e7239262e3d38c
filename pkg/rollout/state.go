package rollout

import (
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Name returns the name of a set on one line; a set named by several paths has one line for each.
func Name(set string) string { return strings.ReplaceAll(set, "\n", ", ") }

// ObjectName returns the name of an object: tool/NAME, with the namespace unless it is the default.
func ObjectName(k v1.Key) string {
	name := strings.ToLower(k.Kind) + "/" + k.Name
	if k.Namespace != v1.DefaultNamespace {
		name += " in namespace " + k.Namespace
	}
	return name
}

// State compares a set with its newest revision.
type State struct {
	Revision store.Revision
	// Members are the objects that now belong to the set.
	Members []store.Record
	// Changed are the members that were changed outside the set since the revision, and Gone the objects that
	// no longer belong to the set.
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
	if len(s.Members) == newest.Objects && s.Changed == nil { // only applies add objects to a set
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
