package agent

import "fmt"

// ModelError says that the API of a model refused a request, or failed. It holds no
// secrets, and its texts have a bounded length.
type ModelError struct {
	// Provider is the provider's name, such as "openai".
	Provider string
	// Status is the HTTP status. For an error inside a stream it is the status that the error
	// names, or 0.
	Status int
	// Type is the provider's name for the kind of error, such as "rate_limit_error". It is empty if the provider gave no
	// type.
	Type string
	// Message is the message of the provider, with advice if there is any.
	Message string
}

// Error returns "provider: message (status, type)".
func (e *ModelError) Error() string {
	s := e.Message
	switch {
	case e.Status != 0 && e.Type != "":
		s += fmt.Sprintf(" (status %d, %s)", e.Status, e.Type)
	case e.Status != 0:
		s += fmt.Sprintf(" (status %d)", e.Status)
	case e.Type != "":
		s += fmt.Sprintf(" (%s)", e.Type)
	}
	return e.Provider + ": " + s
}
