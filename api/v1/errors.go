package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a ValidationError is about.
const (
	// ArgsInvalid means that the arguments of a call violate the input schema.
	ArgsInvalid = "args_invalid"
	// ResultInvalid means that a result violates the output schema.
	ResultInvalid = "result_invalid"
	// ManifestInvalid means that a manifest violates the rules of its kind.
	ManifestInvalid = "manifest_invalid"
)

// The phase of a call in which an ExecutionError arose.
const (
	// PhaseConnect: the upstream could not be reached.
	PhaseConnect = "connect"
	// PhaseExecute: the upstream or the executor answered with a failure.
	PhaseExecute = "execute"
	// PhaseValidate: the request or the answer could not be built or read.
	PhaseValidate = "validate"
	// PhaseTimeout: the time for the call ran out.
	PhaseTimeout = "timeout"
)

// Severities of a [Violation]. The empty severity is an error.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// A Violation is one error in a document, precise enough for a person or a model to correct it.
type Violation struct {
	// Path is the JSON pointer (RFC 6901) of the faulty value; "" is the whole document.
	Path string `json:"path"`
	// Expected describes a correct value, for example "integer".
	Expected string `json:"expected"`
	// Got describes the present value, for example `string "five"`. Bounded in length.
	Got string `json:"got"`
	// Message is one sentence for a person.
	Message string `json:"message"`
	// Source is the place in a manifest; zero for arguments and results.
	Source Source `json:"source,omitzero"`
	// Severity is "" or "error" for an error, "warning" for a warning.
	Severity string `json:"severity,omitempty"`
	// Forbidden reports that the manifest is valid, but that the operator of this program does not permit what it
	// requests.
	Forbidden bool `json:"forbidden,omitempty"`
}

// IsWarning reports whether the violation does not stop its document from being used.
func (f Violation) IsWarning() bool { return f.Severity == SeverityWarning }

// Errors returns the violations that are not warnings, or nil.
func Errors(lists ...[]Violation) (errs []Violation) {
	for _, f := range slices.Concat(lists...) {
		if !f.IsWarning() {
			errs = append(errs, f)
		}
	}
	return errs
}

// String returns the violation as "file:line:column: path: message", without the missing parts. Paths in manifests read
// as spec.http.url.
func (f Violation) String() string {
	var b strings.Builder
	if !f.Source.IsZero() {
		b.WriteString(f.Source.String())
		b.WriteString(": ")
	}
	if f.IsWarning() {
		b.WriteString("warning: ")
	}
	if f.Path != "" {
		if f.Source.IsZero() {
			b.WriteString(f.Path)
		} else {
			b.WriteString(FieldPath(f.Path))
		}
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Source is a place in a file. Lines and columns start at 1; columns count characters.
type Source struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// IsZero reports whether the place is unknown.
func (s Source) IsZero() bool { return s == Source{} }

// String returns "file:line:column", without the parts that are zero.
func (s Source) String() string {
	switch {
	case s.Line == 0:
		return s.File
	case s.Column == 0:
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Line, s.Column)
}

// ValidationError reports that arguments, a result or a manifest violate their rules.
type ValidationError struct {
	// Type is [ArgsInvalid], [ResultInvalid] or [ManifestInvalid].
	Type string
	// Tool is the name of the tool, or of the manifest as kind/name.
	Tool string
	// Path is the JSON pointer of the first violation.
	Path string
	// Detail is one sentence about all violations.
	Detail string
	// Violations lists every violation.
	Violations []Violation
}

// NewValidationError makes a ValidationError from violations; the first one gives Path and Detail.
func NewValidationError(typ, tool string, violations []Violation) *ValidationError {
	e := &ValidationError{Type: typ, Tool: tool, Violations: violations}
	if len(violations) > 0 {
		e.Path = violations[0].Path
		e.Detail = violations[0].Message
	}
	return e
}

func (e *ValidationError) Error() string {
	what := map[string]string{
		ArgsInvalid: "invalid arguments", ResultInvalid: "invalid result", ManifestInvalid: "invalid manifest",
	}[e.Type]
	var b strings.Builder
	if e.Tool != "" {
		fmt.Fprintf(&b, "tool %q: ", e.Tool)
	}
	b.WriteString(what)
	if len(e.Violations) == 0 {
		b.WriteString(": " + e.Detail)
		return b.String()
	}
	for i, f := range e.Violations {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(f.String())
	}
	return b.String()
}

// ExecutionError reports that the execution of a call failed.
type ExecutionError struct {
	Tool string
	// Phase is [PhaseConnect], [PhaseExecute], [PhaseValidate] or [PhaseTimeout].
	Phase   string
	Message string
	// Cause is the error behind it, if any.
	Cause error
}

func (e *ExecutionError) Error() string {
	s := fmt.Sprintf("tool %q: %s", e.Tool, e.Message)
	if e.Tool == "" {
		s = e.Message
	}
	return s
}

func (e *ExecutionError) Unwrap() error { return e.Cause }

// MCPError is an error of an MCP server, or of the connection to it.
type MCPError struct {
	// Server is the name of the MCPServer manifest.
	Server string
	// Code is the JSON-RPC error code; 0 when the server could not be reached.
	Code    int64
	Message string
	// Data is further information from the server about the error, as JSON; may be nil.
	Data json.RawMessage
	// Detail replaces Message for the operators of the server: it may contain the address, the exit of the process and
	// its stderr. [Detailed] includes it; Error does not, because callers see that text. Empty if Message is complete.
	Detail string
	// Cause is the error behind it, if any.
	Cause error
}

func (e *MCPError) Error() string {
	switch {
	case e.Code != 0:
		return fmt.Sprintf("mcp server %q: %s (code %d)", e.Server, e.Message, e.Code)
	case e.Detail != "":
		return fmt.Sprintf("mcp server %q: %s; its operators can see why", e.Server, e.Message)
	}
	return fmt.Sprintf("mcp server %q: %s", e.Server, e.Message)
}

// Detailed returns the text of an error for the operators of the servers, with the Detail of an [MCPError].
func Detailed(err error) string {
	var e *MCPError
	if !errors.As(err, &e) || e.Detail == "" {
		return err.Error()
	}
	return strings.Replace(err.Error(), e.Error(), fmt.Sprintf("mcp server %q: %s", e.Server, e.Detail), 1)
}

func (e *MCPError) Unwrap() error { return e.Cause }

// PolicyError reports that a ToolPolicy refused a call.
type PolicyError struct {
	Tool string
	// Policy is the name of the ToolPolicy, with its namespace when that is not "default".
	Policy string
	// Rule is the field of the policy that refused, for example "max_total_tool_calls" or "limits[0]".
	Rule    string
	Message string
	// Limit and Used are the figures of a counting rule; both 0 for the others.
	Limit, Used int64
	// Source is the place of the rule in its manifest.
	Source Source
}

func (e *PolicyError) Error() string {
	s := fmt.Sprintf("tool %q: refused by policy %q, rule %s: %s", e.Tool, e.Policy, e.Rule, e.Message)
	if !e.Source.IsZero() {
		s += " (" + e.Source.String() + ")"
	}
	return s
}

// ErrStoreUnavailable is wrapped by the error of a call that was refused because the database that counts and records
// calls cannot be reached.
var ErrStoreUnavailable = errors.New("cannot be reached")

// NotFoundError reports that a name matches no object, or more than one.
type NotFoundError struct {
	// Kind is the requested kind, for example "Tool".
	Kind string
	// Name is the name as it was asked for.
	Name string
	// Ambiguous reports whether the name matches all Candidates; otherwise the candidates are similar names.
	Ambiguous bool
	// Candidates are full names, sorted.
	Candidates []string
}

func (e *NotFoundError) Error() string {
	kind := strings.ToLower(e.Kind)
	switch {
	case e.Ambiguous:
		return fmt.Sprintf("%s %q is ambiguous: it matches %s", kind, e.Name, strings.Join(e.Candidates, " and "))
	case len(e.Candidates) > 0:
		return fmt.Sprintf("%s %q not found; did you mean %s?", kind, e.Name, strings.Join(quoteAll(e.Candidates), " or "))
	}
	return fmt.Sprintf("%s %q not found", kind, e.Name)
}

func quoteAll(s []string) []string {
	q := make([]string, len(s))
	for i := range s {
		q[i] = fmt.Sprintf("%q", s[i])
	}
	return q
}

// FieldPath converts a JSON pointer to the notation that people use for fields: "/spec/limits/0/max_calls" is
// "spec.limits[0].max_calls".
func FieldPath(pointer string) string {
	if pointer == "" {
		return ""
	}
	var b strings.Builder
	for _, tok := range Tokens(pointer) {
		switch {
		case index.MatchString(tok) && b.Len() > 0:
			b.WriteString("[" + tok + "]")
		case plainKey.MatchString(tok):
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(tok)
		default:
			q, _ := json.Marshal(tok) // a string always marshals
			b.WriteString("[" + string(q) + "]")
		}
	}
	return b.String()
}

// Pointer appends tokens to a JSON pointer, escaping "~" and "/" (RFC 6901, section 3).
func Pointer(base string, tokens ...string) string {
	for _, t := range tokens {
		if strings.ContainsAny(t, "~/") {
			t = strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
		}
		base += "/" + t
	}
	return base
}

// Tokens splits a JSON pointer and unescapes its tokens (RFC 6901, section 4).
func Tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		if strings.IndexByte(t, '~') >= 0 {
			tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		}
	}
	return tokens
}

var (
	index    = regexp.MustCompile(`^[0-9]+$`)
	plainKey = regexp.MustCompile(`^[a-zA-Z0-9_$-]+$`)
)

// Types of a [ResultError], in addition to [ArgsInvalid], [ResultInvalid] and [ManifestInvalid].
const (
	TypeExecutionFailed = "execution_failed"
	TypeConnectFailed   = "connect_failed"
	TypeTimeout         = "timeout"
	TypeCancelled       = "cancelled"
	TypeMCPError        = "mcp_error"
	TypePolicyRefused   = "policy_refused"
	TypeNotFound        = "not_found"
	TypeInternal        = "internal"
)

// NewResultError turns an error of this package into its JSON form. It returns
// nil for nil.
func NewResultError(err error) *ResultError {
	if err == nil {
		return nil
	}
	r := &ResultError{Type: TypeInternal, Message: err.Error()}
	var (
		invalid  *ValidationError
		exec     *ExecutionError
		mcp      *MCPError
		refused  *PolicyError
		notFound *NotFoundError
		typed    interface{ ResultErrorType() string } // of other packages
	)
	switch {
	case errors.As(err, &invalid):
		r.Type, r.Path, r.Violations = invalid.Type, invalid.Path, invalid.Violations
	case errors.As(err, &refused):
		r.Type = TypePolicyRefused
	case errors.As(err, &notFound):
		r.Type = TypeNotFound
	case errors.As(err, &exec):
		switch exec.Phase {
		case PhaseConnect:
			r.Type = TypeConnectFailed
		case PhaseTimeout:
			r.Type = TypeTimeout
		case PhaseValidate:
			r.Type = ResultInvalid
		default:
			r.Type = TypeExecutionFailed
		}
		if errors.Is(err, context.Canceled) {
			r.Type = TypeCancelled
		}
	case errors.As(err, &mcp):
		r.Type = TypeMCPError
	case errors.As(err, &typed):
		r.Type = typed.ResultErrorType()
	case errors.Is(err, context.Canceled):
		r.Type = TypeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		r.Type = TypeTimeout
	}
	return r
}
