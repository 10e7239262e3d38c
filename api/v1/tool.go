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
	// Validation sets how strictly arguments and results are checked against their schemas.
	Validation *Validation `json:"validation,omitempty"`
	// OnError is inform (tell the model, which may retry) or return (end the run with the error).
	// Default: inform.
	OnError string `json:"on_error,omitempty" check:"oneof=inform|return"`
	// Cache lets the run of a prompt reuse a result for the same arguments. Default: tools with
	// hints.read_only are called once per run and arguments, other tools every time.
	Cache *Cache `json:"cache,omitempty"`
	// Preference sets whether the tool is offered to models and clients, and in which order.
	// Default: offered, weight 0.
	Preference *Preference `json:"preference,omitempty"`
	// Redact lists values to mask in results, errors and the audit log: JSON pointers (RFC 6901), or
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
	// Keywords are further words by which people ask for the tool: at most 50, each of at most 100 characters. Only the
	// search of tools reads them; clients and models do not see them. Example: [forecast, "how warm is it"].
	Keywords []string `json:"keywords,omitempty"`
	// Resources are files that MCP clients can read as resources.
	// Example: [{file: docs/units.md, title: Units of measurement}].
	Resources []FileResource `json:"resources,omitempty"`

	// HTTP calls a REST API; mode live.
	HTTP *HTTPSpec `json:"http,omitempty" executor:"live"`
	// MCP calls a tool of an MCP server; mode mcp.
	MCP *MCPToolSpec `json:"mcp,omitempty" executor:"mcp"`
	// Exec runs a local command; mode exec.
	Exec *ExecSpec `json:"exec,omitempty" executor:"exec"`
	// Client holds the settings of a tool that runs on a person's device.
	Client *ClientSpec `json:"client,omitempty"`

	// Extensions are the blocks of executors that a program adds in Go.
	Extensions Extensions `json:"-"`
}

// ClientSpec describes a tool that runs on a person's device, as in PromptKit.
type ClientSpec struct {
	// Consent asks the person before each call: every call then needs approval.
	Consent *Consent `json:"consent,omitempty"`
	// TimeoutMS is PromptKit's time limit of the device; toolctl uses timeout_ms of the tool.
	TimeoutMS int `json:"timeout_ms,omitempty" check:"min=0"`
	// Categories name the kinds of data that the tool uses, for people. Example: [location].
	Categories []string `json:"categories,omitempty"`
	// ValidateOutput is a field of PromptKit; toolctl always validates results against output_schema.
	ValidateOutput bool `json:"validate_output,omitempty"`
}

// Consent describes the question to a person before each call of a tool.
type Consent struct {
	// Required makes each call wait for approval. Default: false.
	Required bool `json:"required,omitempty"`
	// Message is the text that the person sees. Example: This app wants to know where you are.
	Message string `json:"message,omitempty"`
	// DeclineStrategy is a field of PromptKit; toolctl refuses a declined call.
	DeclineStrategy string `json:"decline_strategy,omitempty"`
}

// AsksConsent reports whether each call of the tool waits for approval.
func (t *Tool) AsksConsent() bool {
	return t.Spec.Client != nil && t.Spec.Client.Consent != nil && t.Spec.Client.Consent.Required
}

// ToolExample is one call of a tool and its expected result.
type ToolExample struct {
	// Name names the example in reports. Default: its number among the calls, from 1. Example: oslo.
	Name string `json:"name,omitempty"`
	// Ask is what a person would say to get this call, of at most 2000 characters. Only the search of tools reads it. An
	// example with nothing else but a name is not called. Example: Do I need an umbrella in Oslo today?
	Ask string `json:"ask,omitempty"`
	// Args are the arguments. Default: {}. Example: {location: Oslo}.
	Args json.RawMessage `json:"args,omitempty"`
	// Expect describes the expected result, as in a Scenario. Default: status complete.
	Expect *Expect `json:"expect,omitempty"`
}

// IsCall reports whether the example is a call, and not only what a person would say.
func (e ToolExample) IsCall() bool { return e.Ask == "" || len(e.Args) > 0 || e.Expect != nil }

// ExampleCalls returns the examples that are calls.
func (t *Tool) ExampleCalls() []ToolExample {
	return slices.DeleteFunc(slices.Clone(t.Spec.Examples), func(e ToolExample) bool { return !e.IsCall() })
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

// How strictly a document is checked against its schema; the values of spec.validation.
const (
	Enforce = "enforce"
	Warn    = "warn"
	Off     = "off"
)

// Validation sets how strictly arguments and results are checked against their schemas.
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

// How the run of a prompt treats a failed call; the values of spec.on_error.
const (
	OnErrorInform = "inform"
	OnErrorReturn = "return"
)

// Preference sets whether a tool is offered, and in which order. It is not a policy: a tool
// that is not offered can still be called by its name.
type Preference struct {
	// Enabled says whether serve lists the tool and the run of a prompt offers it. Default: true.
	Enabled *bool `json:"enabled,omitempty"`
	// Weight orders the offered tools: highest first, equal weights by name. If a model can get only
	// some of the tools, those with the lowest weights are left out. Default: 0. Example: 10.
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

// Cache sets how long a result may be reused for the same arguments.
type Cache struct {
	// TTL is the maximum age of a reused result, as a number and a unit such as 90s, 5m or 1h.
	// 0s disables reuse. Required. Example: 5m.
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

func (c *Cache) rules(path string) []Violation {
	if d, err := time.ParseDuration(c.TTL); c.TTL != "" && (err != nil || d < 0) {
		return []Violation{{Path: path + "/ttl", Expected: "a time such as 90s, 5m or 1h", Got: quote(c.TTL), Message: fmt.Sprintf("%s is not a duration: expected a number and a unit, such as 90s, 5m or 1h", quote(c.TTL))}}
	}
	return nil
}

// Values of spec.exec.sandbox; "" is auto.
const (
	SandboxAuto     = "auto"
	SandboxRequired = "required"
	SandboxOff      = "off"
)

// ExecSpec runs a local command for each call. It uses no shell: an argument is one
// argument of the command, whatever it contains. An exit status other than 0 is a failure of
// the tool, reported with the last output of the command on stderr.
type ExecSpec struct {
	// Command is the program: a name that is looked up in the PATH of toolctl, or a path, relative
	// to the manifest. Required. Example: jq.
	Command string `json:"command" check:"required,path"`
	// Args are the arguments of the command, each a Go text/template of its own. Only an item
	// that is written with a leading "-" is an option: if another item renders to a text with a leading
	// "-", the call is refused, unless an item "--" comes before it. Example: [--sort-keys, "{{.filter}}"].
	Args []string `json:"args,omitempty"`
	// Stdin is json, the arguments of the call as a JSON object, or none. Default: json.
	Stdin string `json:"stdin,omitempty" check:"oneof=json|none"`
	// Env is the whole environment of the command. ${VAR} and ${VAR:-default} read variables, whose
	// values are masked in results and errors. Default: no variables. Example: {LANG: C, TOKEN: "${TOKEN}"}.
	Env map[string]string `json:"env,omitempty" check:"env"`
	// WorkingDir is the command's working directory, relative to the manifest. Default: the folder of the manifest.
	WorkingDir string `json:"working_dir,omitempty" check:"path"`
	// Output is the format of stdout: json (one JSON value), text (a string) or lines (an array of strings). Default: json.
	Output string `json:"output,omitempty" check:"oneof=json|text|lines"`
	// Writable are folders and files that the command may write to in its sandbox, relative to the
	// manifest. Default: none. Example: [data].
	Writable []string `json:"writable,omitempty" check:"path"`
	// Sandbox is auto (the command has no network, read-only files and no other processes, if the
	// system supports it: Linux with user namespaces), required (calls are refused elsewhere) or off. Default: auto.
	Sandbox string `json:"sandbox,omitempty" check:"oneof=auto|required|off"`
	// Limits bounds the resources of the command; timeout_ms of the tool bounds its time.
	Limits *ExecLimits `json:"limits,omitempty"`
}

// ExecLimits bounds the resources of each process of a command. 0 means the default.
type ExecLimits struct {
	// CPUSeconds is the processor time in seconds. Default: 60. Example: 5.
	CPUSeconds int `json:"cpu_seconds,omitempty" check:"min=0,max=86400"`
	// MemoryMB is the address space in MiB. Default: 4096. Example: 512.
	MemoryMB int `json:"memory_mb,omitempty" check:"min=0,max=1048576"`
	// FileMB is the maximum size of each written file in MiB. Default: 100. Example: 10.
	FileMB int `json:"file_mb,omitempty" check:"min=0,max=1048576"`
	// Processes is the maximum number of concurrent processes in a sandbox. Default: 128. Example: 16.
	Processes int `json:"processes,omitempty" check:"min=0,max=32768"`
}

// MCPToolSpec binds a tool to one of an MCP server.
type MCPToolSpec struct {
	// Server is the name of an MCPServer manifest. Required. Example: filesystem.
	Server string `json:"server" check:"required"`
	// Tool is the tool's name on that server. Default: the manifest's name. Example: read_file.
	Tool string `json:"tool,omitempty"`
}
