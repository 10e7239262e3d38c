package v1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// How a tool is executed; values of spec.mode. Every other mode has the name of its executor and of its block.
const (
	ModeMock = "mock"
	ModeLive = "live"
	ModeMCP  = "mcp"
)

// ExecutorBlock is a field of [ToolSpec] that says how an executor carries out the tool.
type ExecutorBlock struct {
	// Name is the field, and the name of the executor. Example: http.
	Name string
	// Mode is the value of spec.mode that chooses the executor. Example: live.
	Mode string

	index int // of the Go field
}

// ExecutorBlocks returns the executor blocks of a Tool in the order of the fields: those
// with the tag executor, which names the mode. Everything else that depends on the executors is
// derived from it.
func ExecutorBlocks() []ExecutorBlock { return slices.Clone(executorBlocks()) }

var executorBlocks = sync.OnceValue(func() []ExecutorBlock {
	var all []ExecutorBlock
	for i := range toolSpec.NumField() {
		f := toolSpec.Field(i)
		if mode, ok := f.Tag.Lookup("executor"); ok {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, ExecutorBlock{Name: name, Mode: mode, index: i})
		}
	}
	return all
})

var toolSpec = reflect.TypeFor[ToolSpec]()

// Modes returns the values that spec.mode may have, besides those of extensions: mock, and
// the mode of each executor block.
func Modes() []string {
	modes := []string{ModeMock}
	for _, b := range executorBlocks() {
		modes = append(modes, b.Mode)
	}
	return modes
}

// ExecutorNames returns the names of the executors of [Modes].
func ExecutorNames() []string {
	names := []string{ModeMock}
	for _, b := range executorBlocks() {
		names = append(names, b.Name)
	}
	return names
}

// Blocks returns the names of the executor blocks that the tool has, extensions last.
func (s *ToolSpec) Blocks() []string {
	var names []string
	v := reflect.ValueOf(s).Elem()
	for _, b := range executorBlocks() {
		if !v.Field(b.index).IsNil() {
			names = append(names, b.Name)
		}
	}
	return append(names, s.Extensions.Names()...)
}

// Simulate turns the tool into a mock: mode mock, and no executor block.
func (s *ToolSpec) Simulate() {
	v := reflect.ValueOf(s).Elem()
	for _, b := range executorBlocks() {
		v.Field(b.index).SetZero()
	}
	s.Mode, s.Extensions = ModeMock, nil
}

// Mode returns spec.mode with its default: the executor block that is present, else mock.
func (t *Tool) Mode() string {
	s := &t.Spec
	if s.Mode != "" {
		return s.Mode
	}
	v := reflect.ValueOf(s).Elem()
	for _, b := range executorBlocks() {
		if !v.Field(b.index).IsNil() {
			return b.Mode
		}
	}
	if len(s.Extensions) > 0 {
		return s.Extensions.Names()[0]
	}
	return ModeMock
}

// ExecutorName returns the name of the executor that carries out the tool's mode.
func (t *Tool) ExecutorName() string {
	m := t.Mode()
	if m == modeClient && t.FromPromptKit() {
		return ModeMock
	}
	for _, b := range executorBlocks() {
		if b.Mode == m {
			return b.Name
		}
	}
	return m
}

// RemoteName is the name by which the MCP server of the tool knows it.
func (t *Tool) RemoteName() string {
	if m := t.Spec.MCP; m != nil && m.Tool != "" {
		return m.Tool
	}
	return t.Metadata.Name
}

// Server returns the MCP server of a tool; ok is false for a tool of another mode.
func (t *Tool) Server() (server Key, ok bool) {
	if t.Mode() != ModeMCP || t.Spec.MCP == nil {
		return Key{}, false
	}
	return Key{Kind: KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}, true
}

// modeClient is PromptKit's mode of tools that run on the device of the user. Without such a device PromptKit and
// toolctl mock them.
const modeClient = "client"

// modeA2A is PromptKit's mode of tools that call another agent (Agent2Agent).
const modeA2A = "a2a"

// UnknownMode is the violation of a tool whose mode is none of Modes and of the
// extensions; ok is false when the mode is known.
func (t *Tool) UnknownMode(extensions []Extension) (_ Violation, ok bool) {
	known := Modes()
	for _, e := range extensions {
		if e.Kind == KindTool {
			known = append(known, e.Name)
		}
	}
	m := t.Spec.Mode
	if m == "" || slices.Contains(known, m) || m == modeClient && t.FromPromptKit() {
		return Violation{}, false
	}
	v := Violation{Path: "/spec/mode", Expected: "one of " + strings.Join(known, ", "), Got: quote(m)}
	v.Message = fmt.Sprintf("unknown value %q: expected %s", clip(m), v.Expected)
	v.Message += DidYouMean(m, known)
	if t.FromPromptKit() {
		v.Severity = SeverityWarning // it loads, and is not ready
		if m == modeA2A {
			v.Message = fmt.Sprintf("mode %q calls another agent, which toolctl does not support: the tool loads, but its calls fail", m)
		}
	}
	return v, true
}

// MissingBlock returns the name of the executor block that the tool's mode needs and that
// it does not have; "" when it has what it needs.
func (t *Tool) MissingBlock() string {
	if t.Spec.Mode == "" {
		return "" // the block chose the mode
	}
	v := reflect.ValueOf(&t.Spec).Elem()
	for _, b := range executorBlocks() {
		if b.Mode == t.Spec.Mode && v.Field(b.index).IsNil() {
			return b.Name
		}
	}
	return ""
}

// executorViolations refuses a second block, and a mode whose block is missing.
func (t *Tool) executorViolations() []Violation {
	var fs []Violation
	s := &t.Spec
	blocks := s.Blocks()
	for _, second := range blocks[min(1, len(blocks)):] {
		fs = append(fs, Violation{Path: Pointer("/spec", second), Expected: "one executor block", Got: blocks[0] + " and " + second,
			Message: fmt.Sprintf("a second executor block: a tool has spec.%s or spec.%s, not both", blocks[0], second)})
	}
	if b := t.MissingBlock(); b != "" {
		fs = append(fs, Violation{Path: "/spec/mode", Expected: "spec." + b, Got: "no spec." + b, Message: fmt.Sprintf("mode %s needs spec.%s", s.Mode, b)})
	}
	return fs
}
