package v1

import (
	"encoding/json"
	"time"
)

// Call is a request for one execution of a tool.
type Call struct {
	// ID identifies the call in results and in the audit; generated if empty.
	ID string
	// Tool is the name to look up: namespace/name, name, server__tool, server.tool,
	// mcp__server__tool or a server tool's bare name.
	Tool string
	// Namespace restricts the lookup to a namespace; empty searches all.
	Namespace string
	// Args is the JSON object of arguments; empty means {}, and so does null where the tool
	// coerces.
	Args json.RawMessage
	// Session names the conversation that counters belong to; a call without one gets a new session.
	Session string
	// Turn names the turn within the session; calls without a name share one turn.
	Turn string
	// Principal is the caller, for policies and the audit; empty on the command line.
	Principal string
	// Approval names the pending call that this one repeats, by [PendingToolInfo.ID]; empty
	// looks for one of the same caller, tool and arguments.
	Approval string
	// Timeout limits this call in addition to the tool's own timeout; 0 means no further limit.
	Timeout time.Duration
	// Repair states how the arguments of a model were turned into a JSON object, for the result and the audit; see
	// [Result]. A tool with hints.destructive is not called with arguments that were cut off and closed
	// ([RepairClosed]).
	Repair string
}

// RepairClosed is the Repair of arguments that were cut off inside a string or a list,
// which was closed where the text ended.
const RepairClosed = "closed"

// States of a [Result].
const (
	StatusComplete = "complete"
	StatusFailed   = "failed"
	StatusPending  = "pending"
)

// Result is the outcome of a call; `-o json` prints it unchanged.
type Result struct {
	// Tool is the name of the tool as the registry knows it.
	Tool string `json:"tool"`
	// Namespace is the namespace of the tool.
	Namespace string `json:"namespace"`
	// Status is "complete", "failed" or "pending".
	Status string `json:"status"`
	// Content is the result: any JSON value.
	Content json.RawMessage `json:"content,omitempty"`
	// Parts holds text, images, audio and resources beside Content.
	Parts []Part `json:"parts,omitempty"`
	// Structured reports whether Content is the structuredContent of an MCP server.
	Structured bool `json:"-"`
	// Meta is the MCP _meta object of the result, unchanged.
	Meta json.RawMessage `json:"_meta,omitempty"`
	// Error is set when Status is "failed".
	Error *ResultError `json:"error,omitempty"`
	// Pending is set when Status is "pending".
	Pending *PendingToolInfo `json:"pending,omitempty"`
	// Policy is the decision of the policies; nil if none matched.
	Policy *PolicyDecision `json:"policy,omitempty"`
	// Budgets say what is left of each count that limits such calls, after this one; counts of
	// a session without a name, and those of policies in mode audit, are left out.
	Budgets []Budget `json:"-"`
	// Repair says how the arguments, which a model wrote and which were not a JSON object, were made
	// one: "unquoted", "trimmed", "repaired" or "closed"; empty when they were taken as they are.
	Repair string `json:"repair,omitempty"`
	// Effects are what the call did outside this process, or may have done when it failed.
	Effects []Effect `json:"effects,omitempty"`
	// Attempts is the number of attempts of the executor, including the first, on all pages together.
	Attempts int `json:"attempts"`
	// Pages is the number of pages that were requested; 0 for a call without pagination.
	Pages int `json:"pages,omitempty"`
	// DurationMS is how long the call took, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
}

// TextSize returns the approximate number of bytes in the texts of the result.
func (r *Result) TextSize() int {
	n := len(r.Content) + len(r.Meta)
	for i := range r.Parts {
		n += r.Parts[i].TextSize()
	}
	return n
}

// ResultError is an error as JSON.
type ResultError struct {
	// Type is args_invalid, result_invalid, manifest_invalid, execution_failed,
	// connect_failed, timeout, cancelled, mcp_error, policy_refused or not_found.
	Type       string      `json:"type"`
	Message    string      `json:"message"`
	Path       string      `json:"path,omitempty"`
	Violations []Violation `json:"violations,omitempty"`
}

// PendingToolInfo describes a call that waits for a decision.
type PendingToolInfo struct {
	// Reason is a code such as "requires_approval".
	Reason string `json:"reason"`
	// Message is one sentence for the person who decides.
	Message  string          `json:"message"`
	ToolName string          `json:"tool_name"`
	Args     json.RawMessage `json:"args,omitempty"`
	// ExpiresAt is when the call can no longer be approved; nil means never.
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	CallbackURL string     `json:"callback_url,omitempty"`
	// Approvers are who may decide, one of each; empty when it is anyone but the caller.
	Approvers []Approvers    `json:"approvers,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
	// ID names the pending call for a later decision.
	ID string `json:"id"`
}

// Decisions of the policies on a call.
const (
	DecisionAllow = "allow"
	DecisionDeny  = "deny"
	// DecisionAudit lets a call through that a policy in mode audit would have refused.
	DecisionAudit = "audit"
	// DecisionPending holds a call until a person has approved it.
	DecisionPending = "pending"
)

// PolicyDecision is what the policies decided on a call.
type PolicyDecision struct {
	// Decision is "allow", "deny", "audit" or "pending".
	Decision string `json:"decision"`
	// Rule is the rule that decided; empty when all rules allowed. A call that was approved
	// is allowed by require_approval.
	Rule string `json:"rule,omitempty"`
	// Policy is the policy of that rule.
	Policy string `json:"policy,omitempty"`
}

// Kinds of [Part].
const (
	PartText         = "text"
	PartImage        = "image"
	PartAudio        = "audio"
	PartVideo        = "video"
	PartDocument     = "document"
	PartResource     = "resource"
	PartResourceLink = "resource_link"
)

// Part is one piece of a multimodal result, close to an MCP content block.
type Part struct {
	// Type is "text", "image", "audio", "video", "document", "resource" or
	// "resource_link". Required. Example: image.
	Type string `json:"type" check:"required,oneof=text|image|audio|video|document|resource|resource_link"`
	// Text is the text of a text part.
	Text string `json:"text,omitempty"`
	// Data is the binary content, base64 (RFC 4648, section 4).
	Data string `json:"data,omitempty"`
	// MIMEType is the media type of data. Example: image/png.
	MIMEType string `json:"mime_type,omitempty"`
	// URI is the address of a resource link. Example: file:///report.pdf.
	URI string `json:"uri,omitempty"`
	// Name is the name of a resource link.
	Name string `json:"name,omitempty"`
	// Title is a name for people.
	Title string `json:"title,omitempty"`
	// Description says what the part holds.
	Description string `json:"description,omitempty"`
	// Size is the size of a linked resource in bytes.
	Size *int64 `json:"size,omitempty"`
	// Resource is an embedded resource.
	Resource *ResourceContents `json:"resource,omitempty"`
	// Icons are the MCP icons of a resource link, as they came.
	Icons json.RawMessage `json:"icons,omitempty"`
	// Annotations are the MCP annotations of the part, as they came.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// Meta is the MCP _meta object of the part, as it came.
	Meta json.RawMessage `json:"_meta,omitempty"`
	// Media names a file or holds data in a manifest's mock_parts; results carry
	// data and mime_type instead.
	Media *Media `json:"media,omitempty"`
}

// TextSize is how many bytes the texts of the part have.
func (p *Part) TextSize() int {
	n := len(p.Text) + len(p.Data)
	if p.Resource != nil {
		n += len(p.Resource.Text) + len(p.Resource.Blob)
	}
	return n
}

// Media is the content of a mock part.
type Media struct {
	// FilePath is a file relative to the manifest. Example: testdata/chart.png.
	FilePath string `json:"file_path,omitempty"`
	// Data is the content itself, base64.
	Data string `json:"data,omitempty"`
	// URL is an address that is passed on and never fetched.
	URL string `json:"url,omitempty"`
	// MIMEType is the media type. Default: from the file's name. Example: image/png.
	MIMEType string `json:"mime_type,omitempty"`
	// Width is the width in pixels.
	Width int `json:"width,omitempty"`
	// Height is the height in pixels.
	Height int `json:"height,omitempty"`
	// Duration is the length in seconds.
	Duration float64 `json:"duration,omitempty"`
	// Caption is a text for people who cannot see or hear the part.
	Caption string `json:"caption,omitempty"`
}

// ResourceContents is an embedded resource: text or a base64 blob.
type ResourceContents struct {
	// URI is the address of the resource. Required. Example: file:///notes.txt.
	URI string `json:"uri" check:"required"`
	// MIMEType is the media type. Example: text/plain.
	MIMEType string `json:"mime_type,omitempty"`
	// Text is the content of a text resource.
	Text string `json:"text,omitempty"`
	// Blob is the content of a binary resource, base64.
	Blob string `json:"blob,omitempty"`
	// Meta is the MCP _meta object of the contents, as it came.
	Meta json.RawMessage `json:"_meta,omitempty"`
}

// NoContent is what models and MCP clients read of a result whose content is null and which has no
// parts: "204 No Content", but for an HTTP response with another status (RFC 9110, section 15.3).
func (r *Result) NoContent() string {
	words := map[int]string{200: "200 OK, no content", 201: "201 Created, no content", 202: "202 Accepted, no content"}
	if last := len(r.Effects) - 1; last >= 0 && words[r.Effects[last].HTTPStatus] != "" {
		return words[r.Effects[last].HTTPStatus]
	}
	return "204 No Content"
}
