package action

import (
	"context"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
)

// Compare finds the differences between two lists of objects, and what they break.
type Compare struct {
	Before, After []v1.Object
	// Only selects the objects to compare. Default: all.
	Only func(v1.Object) bool
}

// Run compares the two sides. It ignores objects without a name.
func (o Compare) Run(ctx context.Context) (*diff.Report, error) {
	chosen := func(objects []v1.Object) []v1.Object {
		return slices.DeleteFunc(slices.Clone(objects), func(obj v1.Object) bool {
			return obj.Head().Metadata.Name == "" || o.Only != nil && !o.Only(obj)
		})
	}
	before, after := chosen(o.Before), chosen(o.After)
	return diff.NewChecker().Manifests(ctx, diff.Pairs(before, after), slices.Concat(after, before))
}
