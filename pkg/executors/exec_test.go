//go:build unix

package executors_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/registry"
)

// execTool returns a tool that runs a shell script. The script is an ordinary argument.
func execTool(dir, script string, edit func(*v1.ExecSpec)) *v1.Tool {
	t := &v1.Tool{
		Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: "run"}, Source: v1.Source{File: filepath.Join(dir, "tool.yaml"), Line: 1, Column: 1}},
		Spec: v1.ToolSpec{Description: "Runs", InputSchema: json.RawMessage(`{"type":"object"}`),
			Exec: &v1.ExecSpec{Command: "/bin/sh", Args: []string{"-c", script}, Output: "text"}},
	}
	if edit != nil {
		edit(t.Spec.Exec)
	}
	return t
}

func execCall(t *testing.T, tool *v1.Tool, args string) (v1.Result, error) {
	t.Helper()
	env := map[string]string{"TOKEN": "s3cr3t-value", "PATH": os.Getenv("PATH")}
	reg, err := registry.New([]v1.Object{tool}, registry.Options{Executors: executors.All(executors.Options{Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reg.Close() })
	return reg.Execute(t.Context(), v1.Call{Tool: "run", Args: json.RawMessage(args)})
}

func TestExec(t *testing.T) {
	t.Setenv("TOOLCTL_LEAK", "leaked")
	for _, tt := range []struct {
		name, script, args string
		edit               func(*v1.ExecSpec)
		want, err          string
	}{
		{"arguments on stdin", "cat", `{"a":[1,9007199254740993]}`, func(s *v1.ExecSpec) { s.Output = "json" }, `{"a":[1,9007199254740993]}`, ""},
		{"no stdin", "cat", `{"a":1}`, func(s *v1.ExecSpec) { s.Stdin = "none" }, `""`, ""},
		{"text", "printf 'a\\nb\\n\\n'", `{}`, nil, `"a\nb\n"`, ""},
		{"lines", "printf 'a\\r\\nb\\n'", `{}`, func(s *v1.ExecSpec) { s.Output = "lines" }, `["a","b"]`, ""},
		{"what is not JSON", "echo hello", `{}`, func(s *v1.ExecSpec) { s.Output = "json" }, "", `did not write valid JSON`},
		{"metacharacters", `printf '%s' "$1"`, `{"q":"; rm -rf / $(id) | & > x ` + "`id`" + ` \"'"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "sh", "{{.q}}") }, `"; rm -rf / $(id) | & > x ` + "`id`" + ` \"'"`, ""},
		{"an argument as an option", "true", `{"q":"--help"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "{{.q}}") }, "", `begins with "-", and the command would read it as an option`},
		{"an argument as an option, behind a blank that is trimmed", "true", `{"q":"--help"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, " {{- .q}}") }, "", `begins with "-", and the command would read it as an option`},
		{"an argument as an option, behind another", "true", `{"a":"","q":"--help"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "{{.a}}-{{.q}}") }, "", `begins with "-", and the command would read it as an option`},
		{"an argument as an option, behind a text that is left out", "true", `{"q":"--help"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "{{if false}}x{{end}}{{.q}}") }, "", `begins with "-", and the command would read it as an option`},
		{"an option that begins as a comment of the template", "true", `{"q":"-x"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "{{/* -o */}}{{.q}}") }, "", `begins with "-", and the command would read it as an option`},
		{"more of a text that is no option", `printf '%s' "$1"`, `{"q":"-x"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "sh", "a {{- .q}}") }, `"a-x"`, ""},
		{"behind --", `printf '%s' "$2"`, `{"q":"--help"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "sh", "--", "{{.q}}") }, `"--help"`, ""},
		{"in an option", `printf '%s' "$1"`, `{"q":"-x"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "sh", "--name={{.q}}") }, `"--name=-x"`, ""},
		{"an absent argument", "true", `{}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "{{.q}}") }, "", `spec.exec.args[2]`},
		{"NUL", "true", `{"q":"a\u0000b"}`, func(s *v1.ExecSpec) { s.Args = append(s.Args, "{{.q}}") }, "", `NUL character`},
		{"no environment", "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=; true", `{}`, nil, `""`, ""},
		{"named environment, masked", `echo "$T $TOOLCTL_LEAK"`, `{}`, func(s *v1.ExecSpec) { s.Env = map[string]string{"T": "<${TOKEN}>"} }, `"<[REDACTED]> "`, ""},
		{"a failure, masked", `echo "no access with $T" >&2; exit 3`, `{}`, func(s *v1.ExecSpec) { s.Env = map[string]string{"T": "${TOKEN}"} }, "", "exit status 3: no access with [REDACTED]"},
		{"a variable that is not set", "true", `{}`, func(s *v1.ExecSpec) { s.Env = map[string]string{"T": "${MISSING}"} }, "", `environment variable "MISSING" is not set`},
		{"no such program", "", `{}`, func(s *v1.ExecSpec) { s.Command = "no-such-program" }, "", `the program "no-such-program" is not in PATH`},
		{"huge output", "while :; do echo 0123456789012345678901234567890123456789; done", `{}`, nil, "", "wrote more than 10 MiB and was stopped"},
		{"huge stderr", "head -c 9000000 /dev/zero | tr '\\0' x >&2; exit 1", `{}`, nil, "", "exit status 1: xxxx"},
	} {
		for _, sandbox := range []string{"auto", "off"} {
			t.Run(tt.name+", sandbox "+sandbox, func(t *testing.T) {
				tool := execTool(t.TempDir(), tt.script, func(s *v1.ExecSpec) {
					if tt.edit != nil {
						tt.edit(s)
					}
					s.Sandbox = sandbox
				})
				res, err := execCall(t, tool, tt.args)
				if string(res.Content) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %s, %v; want %s, %s", res.Content, err, tt.want, tt.err)
				}
				if err != nil && (len(err.Error()) > 9000 || strings.Contains(err.Error(), "s3cr3t")) {
					t.Errorf("the error has %d bytes: %.200s", len(err.Error()), err)
				}
			})
		}
	}
}

// TestExecIsCancelledAsAWhole checks that cancelling a call ends all processes that it started, in its group and in
// the sandbox.
func TestExecIsCancelledAsAWhole(t *testing.T) {
	for _, sandbox := range []string{"auto", "off"} {
		t.Run(sandbox, func(t *testing.T) {
			dir := t.TempDir()
			ready := filepath.Join(dir, "ready")
			if err := syscall.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			// The grandchild ignores SIGTERM and holds the pipes.
			tool := execTool(dir, "sh -c 'trap \"\" TERM; echo up >ready; while :; do sleep 1; done' & wait", func(s *v1.ExecSpec) {
				s.Sandbox, s.Writable = sandbox, []string{"ready"}
			})
			reg, err := registry.New([]v1.Object{tool}, registry.Options{Executors: executors.All(executors.Options{})})
			if err != nil {
				t.Fatal(err)
			}
			defer reg.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				_, _ = os.ReadFile(ready) // ends when the grandchild has written to it
				cancel()
			}()
			_, err = reg.Execute(ctx, v1.Call{Tool: "run"})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestExecTimesOut(t *testing.T) {
	tool := execTool(t.TempDir(), "trap '' TERM; while :; do :; done", nil)
	tool.Spec.TimeoutMS = 300
	_, err := execCall(t, tool, `{}`)
	var failed *v1.ExecutionError
	if !errors.As(err, &failed) || failed.Phase != v1.PhaseTimeout {
		t.Errorf("got %v", err)
	}
}

func TestExecPlanStartsNothing(t *testing.T) {
	dir := t.TempDir()
	tool := execTool(dir, "touch made", func(s *v1.ExecSpec) {
		s.Args = append(s.Args, "sh", "{{.key}}")
		s.Env, s.Sandbox = map[string]string{"T": "${TOKEN}"}, "off"
	})
	tool.Spec.Redact = []string{"key"}
	reg, err := registry.New([]v1.Object{tool}, registry.Options{Executors: executors.All(executors.Options{Env: func(string) (string, bool) { return "s3cr3t-value", true }})})
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	p, err := reg.Plan(t.Context(), v1.Call{Tool: "run", Args: json.RawMessage(`{"key":"hidden-value"}`)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil || strings.Contains(string(text), "hidden-value") || strings.Contains(string(text), "s3cr3t") || !strings.Contains(string(text), `"T":"${TOKEN}"`) {
		t.Errorf("got %s, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "made")); err == nil {
		t.Error("it ran")
	}
}
