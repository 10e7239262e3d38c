package operator

import (
	"context"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "toolctl.dev/toolctl/api/v1"
)

// WebhookPath is where a validating webhook finds [Validator].
const WebhookPath = "/validate"

// Validator answers a validating webhook with the violations that 'toolctl validate' finds. It
// looks at one object alone, since those that it names may come later: a file that no ConfigMap
// has yet is a warning here, and keeps the object out of the store.
type Validator struct {
	// Reader reads ConfigMaps.
	Reader client.Reader
	// Permissions are those of the operator.
	Permissions Permissions
}

// Handle implements [admission.Handler].
func (v *Validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, u); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(req.Namespace)
	}
	if u.GetName() == "" { // the server finds one for generateName
		u.SetName("generated")
	}
	if deleting(u) { // only finalizers change, and they must
		return admission.Allowed("")
	}
	files, _, err := filesOf(ctx, v.Reader, u)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	got, err := v.Permissions.read(ctx, u, files)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return answer(req, got)
}

// answer denies what has a violation that is not a warning, as the API server denies what its
// schema refuses: each violation is a cause with its field.
func answer(req admission.Request, got *reading) admission.Response {
	var causes []metav1.StatusCause
	var warnings []string
	first := ""
	for _, v := range got.violations {
		if v.IsWarning() || got.isMissing(v) {
			warnings = append(warnings, clipped(sentence(v)))
			continue
		}
		if first == "" {
			first = clipped(sentence(v))
		} else {
			first += "; " + clipped(sentence(v))
		}
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: v1.FieldPath(v.Path), Message: clipped(v.Message)})
	}
	warnings = warnings[:min(len(warnings), maxViolations)]
	if len(causes) == 0 && got.object != nil {
		return admission.Allowed("").WithWarnings(warnings...)
	}
	if first == "" {
		first = "it cannot be read as a manifest"
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false, Warnings: warnings,
		Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: first,
			Details: &metav1.StatusDetails{Group: req.Kind.Group, Kind: req.Kind.Kind, Name: req.Name, Causes: causes[:min(len(causes), maxViolations)]},
		},
	}}
}
