package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// Ready is the condition of a custom resource that is in the store as it is here.
const Ready = "Ready"

// Reasons of the condition.
const (
	reasonApplied   = "Applied"           // the store has it
	reasonInvalid   = "Invalid"           // status.violations says why it does not
	reasonForbidden = "NotPermitted"      // the object is right, and asks for what its namespace may not do
	reasonOwned     = "OwnedByAnotherSet" // the store has another object of this name
	reasonFailed    = "StoreFailed"       // the store could not be written; it is tried again
)

// maxViolations and maxText bound what a status says.
const (
	maxViolations = 50
	maxText       = 2000
)

// state is what became of a custom resource.
type state struct {
	reason, message string
	version         int64 // of the object in the store
	violations      []v1.Violation
}

func failure(err error) state { return state{reason: reasonFailed, message: clipped(err.Error())} }

func clipped(s string) string { return clip.Bytes(s, maxText) }

// invalid says which violations keep a custom resource out of the store.
func invalid(violations []v1.Violation) state {
	s := state{reason: reasonInvalid, violations: violations}
	more, wrong := 0, false
	for _, v := range violations {
		wrong = wrong || !v.IsWarning() && !v.Forbidden
		switch {
		case v.IsWarning():
		case s.message == "":
			s.message = clipped(sentence(v))
		default:
			more++
		}
	}
	if s.message != "" && !wrong {
		s.reason = reasonForbidden
	}
	switch {
	case s.message == "":
		s.message = "it cannot be read as a manifest"
	case more > 0:
		s.message += fmt.Sprintf(" (and %d more in status.violations)", more)
	}
	return s
}

// sentence is a violation in one line.
func sentence(v v1.Violation) string {
	if v.Path == "" {
		return v.Message
	}
	return v1.FieldPath(v.Path) + ": " + v.Message
}

// write writes the status of a custom resource when it says something new, and an event with it.
func (r *reconciler) write(ctx context.Context, u *unstructured.Unstructured, s state) error {
	before := u.DeepCopy()
	ready := "False"
	if s.reason == reasonApplied {
		ready = "True"
	}
	old := conditionOf(u)
	since := time.Now().UTC().Format(time.RFC3339)
	if old != nil && old["status"] == ready {
		since, _ = old["lastTransitionTime"].(string)
	}
	status := map[string]any{
		"observedGeneration": u.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": Ready, "status": ready, "reason": s.reason, "message": s.message,
			"observedGeneration": u.GetGeneration(), "lastTransitionTime": since,
		}},
	}
	if version := s.version; version != 0 {
		status["storeVersion"] = version
	} else if version, ok, _ := unstructured.NestedInt64(u.Object, "status", "storeVersion"); ok {
		status["storeVersion"] = version // what the store has is the last that was valid
	}
	if list := violationsOf(s.violations); len(list) > 0 {
		status["violations"] = list
	}
	if equality.Semantic.DeepEqual(u.Object["status"], status) {
		return nil
	}
	u.Object["status"] = status
	if err := r.client.Status().Patch(ctx, u, client.MergeFrom(before)); err != nil {
		return err
	}
	if old == nil || old["reason"] != s.reason || old["message"] != s.message || old["observedGeneration"] != u.GetGeneration() {
		typ := corev1.EventTypeNormal
		if ready == "False" {
			typ = corev1.EventTypeWarning
		}
		r.events.Eventf(u, nil, typ, s.reason, "Apply", "%s", clip.Bytes(s.message, 1000)) // an event takes 1024
	}
	return nil
}

func conditionOf(u *unstructured.Unstructured) map[string]any {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == Ready {
			return c
		}
	}
	return nil
}

// violationsOf is violations as the status has them.
func violationsOf(violations []v1.Violation) []any {
	var list []any
	for _, v := range violations[:min(len(violations), maxViolations)] {
		severity := v1.SeverityError
		if v.IsWarning() {
			severity = v1.SeverityWarning
		}
		one := map[string]any{"path": v.Path, "severity": severity, "message": clipped(v.Message)}
		if v.Expected != "" {
			one["expected"] = clipped(v.Expected)
		}
		if v.Got != "" {
			one["got"] = clipped(v.Got)
		}
		list = append(list, one)
	}
	return list
}
