package action

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Test plays scenarios over the objects of a set, with mocks unless Options.Live is set.
type Test struct {
	Objects   []v1.Object
	Scenarios []*v1.Scenario
	// Options are those of [scenario.New], but for Mock and ToJSON.
	Options scenario.Options
}

// Run plays the scenarios. One that does not pass is no error.
func (o Test) Run(ctx context.Context) (*scenario.Report, error) {
	o.Options.Mock, o.Options.ToJSON = mockExecutor(), manifest.ToJSON
	runner, err := scenario.New(o.Objects, o.Options)
	if err != nil {
		return nil, err
	}
	return runner.Run(ctx, o.Scenarios), nil
}

// mockExecutor is the one that answers from manifests.
func mockExecutor() registry.Executor {
	for _, e := range executors.All(executors.Options{}) {
		if e.Name() == v1.ModeMock {
			return e
		}
	}
	panic("executors.All has no mock executor")
}
