package scenario_test

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
)

// TestHoldResults checks that results are validated even if calls only warn, and that the manifest does not change.
func TestHoldResults(t *testing.T) {
	warns, enforces := v1.NewObject(v1.KindTool).(*v1.Tool), v1.NewObject(v1.KindTool).(*v1.Tool)
	warns.Spec.Validation = &v1.Validation{Result: v1.Warn}
	got := scenario.HoldResults([]v1.Object{warns, enforces, v1.NewObject(v1.KindPrompt)})
	if held := got[0].(*v1.Tool); held.Spec.Validation.ResultMode() != v1.Enforce || warns.Spec.Validation.ResultMode() != v1.Warn {
		t.Errorf("held %v, was %v", held.Spec.Validation, warns.Spec.Validation)
	}
	if got[1] != v1.Object(enforces) || len(got) != 3 {
		t.Error("what enforces already was changed")
	}
}
