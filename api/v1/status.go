package v1

import "time"

// Status holds what a store knows about an object besides its manifest. 'list -o json' and 'list -o yaml' show it as the
// field status, which readers of manifests ignore.
type Status struct {
	// Set is the apply set that the object belongs to, and Revision and Commit are the last
	// revision of the set that it was part of, and the commit of git that this was of.
	Set      string `json:"set,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Commit   string `json:"commit,omitempty"`
	// Source is the place of the manifest, as file:line:column.
	Source string `json:"source,omitempty"`
	// Generation starts at 1 and grows when the spec changes; ResourceVersion is the
	// store-wide number of the last change.
	Generation      int64 `json:"generation"`
	ResourceVersion int64 `json:"resourceVersion"`
	// Conditions are Ready, Degraded and Drifted.
	Conditions []Condition `json:"conditions"`
}

// The types of a [Condition].
const (
	// ConditionReady: the object can be used.
	ConditionReady = "Ready"
	// ConditionDegraded: not all of it can be used.
	ConditionDegraded = "Degraded"
	// ConditionDrifted: the object differs from what its set applied, or from the lock.
	ConditionDrifted = "Drifted"
)

// The values of [Condition.Status].
const (
	ConditionTrue    = "True"
	ConditionFalse   = "False"
	ConditionUnknown = "Unknown"
)

// Condition is one aspect of the state of an object, in the form of Kubernetes.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	// Reason is one word for programs, Message a sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// ObservedGeneration is the generation of the object that the condition is about.
	ObservedGeneration int64 `json:"observedGeneration"`
	// LastTransitionTime is when Status became what it is.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Condition returns the condition of a type; a missing condition is unknown.
func (s *Status) Condition(typ string) Condition {
	for _, c := range s.Conditions {
		if c.Type == typ {
			return c
		}
	}
	return Condition{Type: typ, Status: ConditionUnknown}
}
