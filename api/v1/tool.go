package v1

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Tool declares one tool that an agent can call: what it takes, what it gives
// back, and how a call of it is carried out.
//
//	apiVersion: toolctl.dev/v1
//	kind: Tool
//	metadata:
//	  name: get-weather
//	  labels: {team: demo}
//	spec:
//	  description: Current weather for a place
//	  timeout_ms: 5000
//	  hints: {read_only: true}
//	  input_schema:
//	    type: object
//	    properties: {location: {type: string}}
//	    required: [location]
//	  output_schema:
//	    type: object
//	    properties: {temperature_c: {type: number}}
//	  mock_template: '{"location": "{{.location}}", "temperature_c": 21.5}'
type Tool struct {
	Header
	// Spec says what the tool does. Required.
	Spec ToolSpec `json:"spec" check:"required"`
}

// Default times of a call.
const (
	// DefaultTimeoutMS is the timeout_ms of a tool that names none.
	DefaultTimeoutMS = 30000
)

// ToolSpec says what a tool takes, gives back and does.
type ToolSpec struct {
	// Name is another name for metadata.name, read from PromptKit manifests only; metadata.name wins.
	Name string `json:"name,omitempty"`
	// Description tells a model what the tool does and when to use it. Required.
	// Example: Current weather for a place.
	Description string `json:"description" check:"required"`
	// Mode chooses the executor: mock answers from the manifest, live calls spec.http, and every
	// other mode has the name of its executor and its block. Default: the one executor block that is present; mock when there is none.
	Mode string `json:"mode,omitempty" check:"oneof=@modes"`
	// TimeoutMS is the time for one call in milliseconds, all attempts included.
	// 0 means the default. Default: 30000. Example: 5000.
	TimeoutMS int `json:"timeout_ms,omitempty" check:"min=0"`
	// InputSchema is the JSON Schema of the arguments. Its root type is object. Without
	// $schema it is read as draft 2020-12. Required.
	// Example: {type: object, properties: {location: {type: string}}, required: [location]}.
	InputSchema json.RawMessage `json:"input_schema" check:"required"`
	// OutputSchema is the JSON Schema of the result. Default: every result is accepted.
	// Example: {type: object, required: [temperature_c]}.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Hints describe the tool's effects to clients and to the retry rules.
	Hints *Hints `json:"hints,omitempty"`
	// Validation says how strictly arguments and results are held to their schemas.
	Validation *Validation `json:"validation,omitempty"`
	// OnError says what a failed call means to the run of a prompt: with inform the model is told
	// and may try otherwise, with return the run ends with the error. Default: inform.
	OnError string `json:"on_error,omitempty" check:"oneof=inform|return"`
	// Cache lets the run of a prompt use a result again for the same arguments. Default: tools with
	// hints.read_only answer once for each run and arguments, other tools every time.
	Cache *Cache `json:"cache,omitempty"`
	// Preference says whether the tool is offered to models and clients, and where it stands among
	// the others. Default: offered, weight 0.
	Preference *Preference `json:"preference,omitempty"`
	// Redact lists what is masked in results, errors and the audit: JSON pointers (RFC 6901), or
	// bare key names that match at any depth. Example: [/card/number, password].
	Redact []string `json:"redact,omitempty"`

	// MockResult is the result of a mock call: any JSON value. Example: {conditions: sunny}.
	MockResult json.RawMessage `json:"mock_result,omitempty" check:"null"`
	// MockTemplate is a Go text/template that renders the result as JSON; it wins over mock_result.
	// An argument inside a JSON string is escaped. Functions: json, default, join, upper, lower, trim.
	// Example: '{"greeting": "hello {{.name}}"}'.
	MockTemplate string `json:"mock_template,omitempty"`
	// MockResultFile is a file that holds mock_result, relative to the manifest. Example: results/oslo.json.
	MockResultFile string `json:"mock_result_file,omitempty"`
	// MockTemplateFile is a file that holds mock_template, relative to the manifest. Example: results/weather.tmpl.
	MockTemplateFile string `json:"mock_template_file,omitempty"`
	// MockParts are the multimodal parts of a mock result.
	// Example: [{type: image, media: {file_path: chart.png, mime_type: image/png}}].
	MockParts []Part `json:"mock_parts,omitempty"`

	// Examples are calls that show how the tool is used and what it gives back; "toolctl verify" makes them.
	// Example: [{name: oslo, args: {location: Oslo}, expect: {status: complete}}].
	Examples []ToolExample `json:"examples,omitempty"`
	// Resources are files that MCP clients can read as resources.
	// Example: [{file: docs/units.md, title: Units of measurement}].
	Resources []FileResource `json:"resources,omitempty"`

	// HTTP calls a REST API; mode live.
	HTTP *HTTPSpec `json:"http,omitempty" executor:"live"`
	// MCP calls a tool of an MCP server; mode mcp.
	MCP *MCPToolSpec `json:"mcp,omitempty" executor:"mcp"`
	// Exec runs a local command; mode exec.
	Exec *ExecSpec `json:"exec,omitempty" executor:"exec"`
	// Client says what a tool that a person's device carries out asks of that person.
	Client *ClientSpec `json:"client,omitempty"`

	// Extensions are the blocks of executors that a program adds in Go.
	Extensions Extensions `json:"-"`
}

// ClientSpec describes a tool that a person's device carries out, as PromptKit does.
type ClientSpec struct {
	// Consent is what the person is asked before each call: the call needs approval then.
	Consent *Consent `json:"consent,omitempty"`
	// TimeoutMS is the device's time for one call; timeout_ms of the tool is what counts here.
	TimeoutMS int `json:"timeout_ms,omitempty" check:"min=0"`
	// Categories say what the tool touches, for people. Example: [location].
	Categories []string `json:"categories,omitempty"`
	// ValidateOutput is PromptKit's; results are validated by output_schema always.
	ValidateOutput bool `json:"validate_output,omitempty"`
}

// Consent is what a person is asked before each call of a tool.
type Consent struct {
	// Required makes each call wait for approval. Default: false.
	Required bool `json:"required,omitempty"`
	// Message is what the person is shown. Example: This app wants to know where you are.
	Message string `json:"message,omitempty"`
	// DeclineStrategy is PromptKit's; a call that is declined is refused.
	DeclineStrategy string `json:"decline_strategy,omitempty"`
}

// AsksConsent reports whether each call of the tool waits for approval.
func (t *Tool) AsksConsent() bool {
	return t.Spec.Client != nil && t.Spec.Client.Consent != nil && t.Spec.Client.Consent.Required
}

// ToolExample is one call of a tool and what is expected of it.
type ToolExample struct {
	// Name names the example in reports. Default: its number, from 1. Example: oslo.
	Name string `json:"name,omitempty"`
	// Args are the arguments. Default: {}. Example: {location: Oslo}.
	Args json.RawMessage `json:"args,omitempty"`
	// Expect says what is expected, as in a Scenario. Default: status complete.
	Expect *Expect `json:"expect,omitempty"`
}

// Hints describe a tool's effects, with the meaning of the MCP tool annotations
// (MCP specification, server/tools, ToolAnnotations).
type Hints struct {
	// Title is a name for people. Example: Current weather.
	Title string `json:"title,omitempty"`
	// ReadOnly says that the tool changes nothing; its calls may be retried. Default: false.
	ReadOnly *bool `json:"read_only,omitempty"`
	// Destructive says that the tool may delete or overwrite. Default: true, unless read_only.
	Destructive *bool `json:"destructive,omitempty"`
	// Idempotent says that a second call with the same arguments changes nothing more;
	// its calls may be retried. Default: false.
	Idempotent *bool `json:"idempotent,omitempty"`
	// OpenWorld says that the tool reaches beyond a closed set of things. Default: true.
	OpenWorld *bool `json:"open_world,omitempty"`
}

// Retryable reports whether a call may be repeated after it may have had an effect.
func (h *Hints) Retryable() bool {
	return h != nil && (h.ReadOnly != nil && *h.ReadOnly || h.Idempotent != nil && *h.Idempotent)
}

// How strictly a document is held to its schema; the values of spec.validation.
const (
	Enforce = "enforce"
	Warn    = "warn"
	Off     = "off"
)

// Validation says how strictly arguments and results are held to their schemas.
type Validation struct {
	// Args is enforce (a violation refuses the call), warn (a violation is logged) or off. Default: enforce.
	Args string `json:"args,omitempty" check:"oneof=enforce|warn|off"`
	// Result is enforce (a violation fails the call), warn (a violation is logged) or off. Default: enforce.
	Result string `json:"result,omitempty" check:"oneof=enforce|warn|off"`
	// Coerce fixes what models often get wrong, such as "5" for an integer, before the
	// arguments are validated. Default: true.
	Coerce *bool `json:"coerce,omitempty"`
}

// ArgsMode returns Args with its default.
func (v *Validation) ArgsMode() string {
	if v == nil || v.Args == "" {
		return Enforce
	}
	return v.Args
}

// ResultMode returns Result with its default.
func (v *Validation) ResultMode() string {
	if v == nil || v.Result == "" {
		return Enforce
	}
	return v.Result
}

// Coerces returns Coerce with its default.
func (v *Validation) Coerces() bool { return v == nil || v.Coerce == nil || *v.Coerce }

// What a failed call means to the run of a prompt; the values of spec.on_error.
const (
	OnErrorInform = "inform"
	OnErrorReturn = "return"
)

// Preference says whether a tool is offered, and where it stands among the others. It is
// no policy: a tool that is not offered can still be called by its name.
type Preference struct {
	// Enabled says whether serve lists the tool and the run of a prompt offers it. Default: true.
	Enabled *bool `json:"enabled,omitempty"`
	// Weight orders what is offered: the heaviest first, equal ones by name. When a model is offered
	// fewer tools than there are, the lightest are left out. Default: 0. Example: 10.
	Weight int `json:"weight,omitempty" check:"min=-1000,max=1000"`
}

// RedactRules are the rules of redact and of http.redact: what the tool masks, wherever it stands.
func (t *Tool) RedactRules() []string {
	if t.Spec.HTTP == nil || len(t.Spec.HTTP.Redact) == 0 {
		return t.Spec.Redact
	}
	return slices.Concat(t.Spec.Redact, t.Spec.HTTP.Redact)
}

// Offered reports whether the tool is offered to models and clients.
func (t *Tool) Offered() bool {
	p := t.Spec.Preference
	return p == nil || p.Enabled == nil || *p.Enabled
}

// Weight returns preference.weight with its default.
func (t *Tool) Weight() int {
	if t.Spec.Preference == nil {
		return 0
	}
	return t.Spec.Preference.Weight
}

// Cache says how long a result may be used again for the same arguments.
type Cache struct {
	// TTL is how old a result may be, as a number and a unit such as 90s, 5m or 1h. 0s means that no
	// result is used again. Required. Example: 5m.
	TTL string `json:"ttl" check:"required"`
}

// Lifetime returns TTL as a duration; 0 when it is none.
func (c *Cache) Lifetime() time.Duration {
	d, err := time.ParseDuration(c.TTL)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

func (c *Cache) validate(path string) []Violation {
	if d, err := time.ParseDuration(c.TTL); c.TTL != "" && (err != nil || d < 0) {
		return []Violation{{Path: path + "/ttl", Expected: "a time such as 90s, 5m or 1h", Got: quote(c.TTL), Message: fmt.Sprintf("%s is not a time: expected a number and a unit, such as 90s, 5m or 1h", quote(c.TTL))}}
	}
	return nil
}

// Values of spec.exec.sandbox; "" is auto.
const (
	SandboxAuto     = "auto"
	SandboxRequired = "required"
	SandboxOff      = "off"
)

// ExecSpec runs a local command for each call. No shell is between: an argument is one
// argument of the command, whatever it holds. An exit status other than 0 is a failure
// that the tool reports, with the end of what the command wrote to stderr.
type ExecSpec struct {
	// Command is the program: a name that is looked up in the PATH of toolctl, or a path, relative
	// to the manifest. Required. Example: jq.
	Command string `json:"command" check:"required,path"`
	// Args are the arguments of the command, each a Go text/template of its own. An item is an
	// option only when it is written with a "-" in front: any other whose rendered text begins with
	// "-" has the call refused, unless an item "--" stands before it. Example: [--sort-keys, "{{.filter}}"].
	Args []string `json:"args,omitempty"`
	// Stdin is json, the arguments of the call as a JSON object, or none. Default: json.
	Stdin string `json:"stdin,omitempty" check:"oneof=json|none"`
	// Env is the whole environment of the command. ${VAR} and ${VAR:-default} read variables, whose
	// values are masked in results and errors. Default: no variables. Example: {LANG: C, TOKEN: "${TOKEN}"}.
	Env map[string]string `json:"env,omitempty"`
	// WorkingDir is the command's working directory, relative to the manifest. Default: the folder of the manifest.
	WorkingDir string `json:"working_dir,omitempty" check:"path"`
	// Output says what stdout is: json (one JSON value), text (a string) or lines (an array of strings). Default: json.
	Output string `json:"output,omitempty" check:"oneof=json|text|lines"`
	// Writable are folders and files that the command may write to in its sandbox, relative to the
	// manifest. Default: none. Example: [data].
	Writable []string `json:"writable,omitempty" check:"path"`
	// Sandbox is auto (the command has no network, read-only files and no other processes, where the
	// system allows that: Linux with user namespaces), required (calls are refused elsewhere) or off. Default: auto.
	Sandbox string `json:"sandbox,omitempty" check:"oneof=auto|required|off"`
	// Limits bound what the command may use; timeout_ms of the tool bounds its time.
	Limits *ExecLimits `json:"limits,omitempty"`
}

// ExecLimits bound what each process of a command may use. 0 means the default.
type ExecLimits struct {
	// CPUSeconds is the processor time in seconds. Default: 60. Example: 5.
	CPUSeconds int `json:"cpu_seconds,omitempty" check:"min=0,max=86400"`
	// MemoryMB is the address space in MiB. Default: 4096. Example: 512.
	MemoryMB int `json:"memory_mb,omitempty" check:"min=0,max=1048576"`
	// FileMB is the size of each file that is written, in MiB. Default: 100. Example: 10.
	FileMB int `json:"file_mb,omitempty" check:"min=0,max=1048576"`
	// Processes is the most processes at once, in a sandbox. Default: 128. Example: 16.
	Processes int `json:"processes,omitempty" check:"min=0,max=32768"`
}

// MCPToolSpec binds a tool to one of an MCP server.
type MCPToolSpec struct {
	// Server is the name of an MCPServer manifest. Required. Example: filesystem.
	Server string `json:"server" check:"required"`
	// Tool is the tool's name on that server. Default: the manifest's name. Example: read_file.
	Tool string `json:"tool,omitempty"`
}
