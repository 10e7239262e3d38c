package validate

import (
	"reflect"
	"slices"
)

// choose selects what to report about a value that matches no branch of an anyOf or
// oneOf: the problems of the branch that was most likely intended. Fixing
// one branch is enough, so nothing is lost.
func choose(branches [][]problem, base []string) []problem {
	if merged, ok := merge(branches, base); ok {
		return merged
	}
	// A value of another type was not intended for the branch ...
	branches = prefer(branches, func(b []problem) bool {
		return !slices.ContainsFunc(b, func(p problem) bool { return p.keyword == keywordValue && len(p.path) == len(base) })
	})
	// ... nor one with another value in a member that tells the branches apart.
	branches = prefer(branches, func(b []problem) bool {
		return !slices.ContainsFunc(b, func(p problem) bool { return len(p.allowed) == 1 && len(p.path) == len(base)+1 })
	})
	if merged, ok := mergeTags(branches, base); ok {
		return merged
	}
	best := branches[0]
	for _, b := range branches[1:] {
		if len(b) < len(best) {
			best = b
		}
	}
	return best
}

func prefer(branches [][]problem, good func([]problem) bool) [][]problem {
	var kept [][]problem
	for _, b := range branches {
		if good(b) {
			kept = append(kept, b)
		}
	}
	if len(kept) == 0 {
		return branches
	}
	return kept
}

// merge joins branches that each expect a different value at the same place: "expected integer or
// null".
func merge(branches [][]problem, place []string) ([]problem, bool) {
	if len(branches) == 0 {
		return nil, false
	}
	var all problem
	for i, b := range branches {
		if len(b) != 1 || b[0].keyword != keywordValue || !slices.Equal(b[0].path, place) {
			return nil, false
		}
		if i == 0 {
			all = b[0]
			all.types, all.allowed = slices.Clone(all.types), slices.Clone(all.allowed)
			continue
		}
		for _, t := range b[0].types {
			if !slices.Contains(all.types, t) {
				all.types = append(all.types, t)
			}
		}
		for _, a := range b[0].allowed {
			if !slices.ContainsFunc(all.allowed, func(x any) bool { return reflect.DeepEqual(x, a) }) {
				all.allowed = append(all.allowed, a)
			}
		}
	}
	return []problem{all}, true
}

// mergeTags does the same for the member that distinguishes the branches, if no
// branch accepts its value.
func mergeTags(branches [][]problem, base []string) ([]problem, bool) {
	var tags [][]problem
	for _, b := range branches {
		i := slices.IndexFunc(b, func(p problem) bool { return len(p.allowed) == 1 && len(p.path) == len(base)+1 })
		if i < 0 {
			return nil, false
		}
		tags = append(tags, b[i:i+1])
	}
	return merge(tags, tags[0][0].path)
}
