package action

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Test runs scenarios with the objects of a set, with mocks unless Options.Live is set.
type Test struct {
	Objects   []v1.Object
	Scenarios []*v1.Scenario
	// Options are the options of [scenario.New], except Mock and ToJSON.
	Options scenario.Options
}

// Run runs the scenarios. A scenario that fails is not an error.
func (o Test) Run(ctx context.Context) (*scenario.Report, error) {
	o.Options.Mock, o.Options.ToJSON = mockExecutor(), manifest.ToJSON
	runner, err := scenario.New(o.Objects, o.Options)
	if err != nil {
		return nil, err
	}
	return runner.Run(ctx, o.Scenarios), nil
}

// mockExecutor returns the executor that answers from manifests.
func mockExecutor() registry.Executor {
	for _, e := range executors.All(executors.Options{}) {
		if e.Name() == v1.ModeMock {
			return e
		}
	}
	panic("executors.All has no mock executor")
}
