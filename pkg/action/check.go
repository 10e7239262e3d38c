package action

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Check finds the violations of manifests that can be found without a call.
type Check struct {
	// Load reads the manifests. With places, it keeps the position of every field, see manifest.Options.Fields.
	Load func(ctx context.Context, places bool) (*manifest.Set, error)
	// Places makes Load keep the positions at once. By default the manifests are read a second time when a
	// violation needs a position, because positions take more memory than the objects.
	Places bool
	// Namespace is the namespace of objects without a namespace. Default: v1.DefaultNamespace.
	Namespace string
	// Beside are objects that the manifests may refer to.
	Beside []v1.Object
	// SkipTexts omits the warnings about texts that models read.
	SkipTexts bool
	// Locks are lock files that [Validate] and [Lint] check too; they need not exist.
	Locks []string
	// Options are the options of [Violations].
	Options gateway.Options
}

// brokenLocks returns the violations in Locks: a gateway would refuse to start with them.
func (c Check) brokenLocks() (out []v1.Violation) {
	for _, path := range c.Locks {
		if _, err := lock.Read(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			text := strings.TrimPrefix(regular.Reason(err).Error(), path+": ")
			out = append(out, v1.Violation{Source: v1.Source{File: path}, Message: text})
		}
	}
	return out
}

// Run loads and checks the manifests. The violations are sorted by place, warnings included.
func (c Check) Run(ctx context.Context) (*manifest.Set, []v1.Violation, error) {
	set, err := c.Load(ctx, c.Places)
	if err != nil {
		return nil, nil, err
	}
	violations, err := c.Set(ctx, set)
	if err == nil && !c.Places && len(violations) > len(set.Violations) {
		c.Places = true
		return c.Run(ctx)
	}
	return set, violations, err
}

// Set checks manifests that are already loaded.
func (c Check) Set(ctx context.Context, set *manifest.Set) ([]v1.Violation, error) {
	elsewhere := intoNamespace(set.Objects, c.Namespace)
	found, err := Violations(ctx, set.Objects, c.Beside, c.Options)
	if err != nil {
		return nil, err
	}
	if !c.SkipTexts {
		found = append(found, inspectTexts(set.Objects)...)
	}
	for _, obj := range set.Objects {
		if s, ok := obj.(*v1.Scenario); ok && !s.Broken() {
			found = append(found, scenario.Check(s)...)
		}
	}
	violations := slices.Concat(set.Violations, elsewhere, found)
	manifest.SortViolations(violations)
	return violations, ctx.Err()
}
