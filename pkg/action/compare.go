package action

import (
	"context"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
)

// Compare says what becomes of objects that were read, and what that breaks.
type Compare struct {
	Before, After []v1.Object
	// Only chooses the objects that are compared. Default: all.
	Only func(v1.Object) bool
}

// Run compares the two sides. Objects without a name are on neither.
func (o Compare) Run(ctx context.Context) (*diff.Report, error) {
	chosen := func(objects []v1.Object) []v1.Object {
		return slices.DeleteFunc(slices.Clone(objects), func(obj v1.Object) bool {
			return obj.Head().Metadata.Name == "" || o.Only != nil && !o.Only(obj)
		})
	}
	before, after := chosen(o.Before), chosen(o.After)
	return diff.NewChecker().Manifests(ctx, diff.Pairs(before, after), slices.Concat(after, before))
}
