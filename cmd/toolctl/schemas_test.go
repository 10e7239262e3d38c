package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/validate"
	"toolctl.dev/toolctl/schemas"
)

// refusedManifests are invalid manifests by kind. Each line has the metadata and the spec.
var refusedManifests = map[string]map[string]string{
	"Tool": {
		"upper case in a name":        `{metadata: {name: GetWeather}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"name with a space":           `{metadata: {name: get weather}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"name that ends in a dash":    `{metadata: {name: get-}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"name with an empty part":     `{metadata: {name: a..b}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"name too long":               `{metadata: {name: ` + strings.Repeat("a", 254) + `}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"namespace with a point":      `{metadata: {name: a, namespace: b.c}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"label value with a space":    `{metadata: {name: a, labels: {team: a b}}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"label value too long":        `{metadata: {name: a, labels: {team: ` + strings.Repeat("a", 64) + `}}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"label key with two slashes":  `{metadata: {name: a, labels: {a/b/c: d}}, spec: {mock_result: 1, description: d, input_schema: {}}}`,
		"no description":              `{metadata: {name: a}, spec: {mock_result: 1, input_schema: {}}}`,
		"no input schema":             `{metadata: {name: a}, spec: {mock_result: 1, description: d}}`,
		"unknown field":               `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, descripton: x}}`,
		"misspelt type":               `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object, properties: {n: {type: integr}}}}}`,
		"misspelt type in items":      `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, output_schema: {type: array, items: {type: strng}}}}`,
		"properties that are a list":  `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object, properties: [a]}}}`,
		"length that is a text":       `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {properties: {a: {minLength: many}}}}}`,
		"length below 0":              `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {properties: {a: {maxLength: -1}}}}}`,
		"input schema of an array":    `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: array}}}`,
		"input schema true":           `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: true}}`,
		"live without http":           `{metadata: {name: a}, spec: {description: d, input_schema: {}, mode: live}}`,
		"mcp without a block":         `{metadata: {name: a}, spec: {description: d, input_schema: {}, mode: mcp}}`,
		"two executors":               `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {url: "http://a.example"}, mcp: {server: b}}}`,
		"no executor":                 `{metadata: {name: a}, spec: {description: d, input_schema: {}}}`,
		"mock without a result":       `{metadata: {name: a}, spec: {description: d, input_schema: {}, mode: mock, http: {url: "http://a.example"}}}`,
		"unknown mode":                `{metadata: {name: a}, spec: {description: d, input_schema: {}, mode: fast}}`,
		"http without a URL":          `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {method: GET}}}`,
		"URL of another scheme":       `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {url: "ftp://a.example"}}}`,
		"unknown method":              `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {url: "http://a.example", method: FETCH}}}`,
		"two kinds of auth":           `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {url: "http://a.example", auth: {bearer_env: A, basic: {username_env: B, password_env: C}}}}}`,
		"certificate without its key": `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {url: "http://a.example", tls: {cert_file: a.pem}}}}`,
		"retry on no status":          `{metadata: {name: a}, spec: {description: d, input_schema: {}, http: {url: "http://a.example", retry: {retry_on: [42]}}}}`,
		"duration without a unit":     `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, cache: {ttl: "5"}}}`,
		"duration in words":           `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, cache: {ttl: 5 minutes}}}`,
		"duration below 0":            `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, cache: {ttl: -5s}}}`,
		"time below 0":                `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, timeout_ms: -1}}`,
		"empty redaction":             `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {}, redact: [""]}}`,
		"an empty keyword":            `{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object}, keywords: [""]}}`,
		"a keyword that is long":      "{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object}, keywords: [" + strings.Repeat("x", v1.MaxKeyword+1) + "]}}",
		"an ask that is long":         "{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object}, examples: [{ask: " + strings.Repeat("x", v1.MaxAsk+1) + "}]}}",
		"more keywords than many":     "{metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object}, keywords: [" + strings.Repeat("x, ", v1.MaxKeywords) + "x]}}",
	},
	"Prompt": {
		"no template":      `{metadata: {name: a}, spec: {description: d}}`,
		"empty template":   `{metadata: {name: a}, spec: {template: ""}}`,
		"pattern of tools": `{metadata: {name: a}, spec: {template: x, tools: ["a*b"]}}`,
		"input is a list":  `{metadata: {name: a}, spec: {template: x, input: []}}`,
		"misspelt type":    `{metadata: {name: a}, spec: {template: x, input: {type: objct}}}`,
		"upper case":       `{metadata: {name: A}, spec: {template: x}}`,
	},
	"MCPServer": {
		"neither command nor URL": `{metadata: {name: a}, spec: {timeout_ms: 5}}`,
		"both":                    `{metadata: {name: a}, spec: {command: x, url: "http://a.example"}}`,
		"headers of a command":    `{metadata: {name: a}, spec: {command: x, headers: {A: b}}}`,
		"arguments of a URL":      `{metadata: {name: a}, spec: {url: "http://a.example", args: [b]}}`,
		"URL of another scheme":   `{metadata: {name: a}, spec: {url: "ws://a.example"}}`,
		"pattern":                 `{metadata: {name: a}, spec: {command: x, tool_filter: {allowlist: ["*x"]}}}`,
		"unknown transport":       `{metadata: {name: a}, spec: {url: "http://a.example", transport: carrier}}`,
	},
	"ToolPolicy": {
		"pattern":              `{metadata: {name: a}, spec: {blocklist: ["*-delete"]}}`,
		"pattern of a limit":   `{metadata: {name: a}, spec: {limits: [{name: l, tools: ["a**"], max_calls: 1, per: day}]}}`,
		"pattern of principal": `{metadata: {name: a}, spec: {match: {principals: [""]}}}`,
		"unknown window":       `{metadata: {name: a}, spec: {limits: [{name: l, max_calls: 1, per: year}]}}`,
		"below 0":              `{metadata: {name: a}, spec: {max_total_tool_calls: -1}}`,
	},
	"Toolset": {
		"an entry of nothing":      `{metadata: {name: a}, spec: {include: [{}]}}`,
		"pattern of tools":         `{metadata: {name: a}, spec: {exclude: [{tools: ["*x"]}]}}`,
		"pattern of servers":       `{metadata: {name: a}, spec: {include: [{servers: [""]}]}}`,
		"pattern of prompts":       `{metadata: {name: a}, spec: {include: [{prompts: ["a*b"]}]}}`,
		"a group without a name":   `{metadata: {name: a}, spec: {groups: [""]}}`,
		"discovery in other words": `{metadata: {name: a}, spec: {discovery: browse}}`,
		"a list of nothing":        `{metadata: {name: a}, spec: {list_limit: 0}}`,
		"fewer than no tokens":     `{metadata: {name: a}, spec: {list_tokens: -1}}`,
		"an unknown field":         `{metadata: {name: a}, spec: {includes: []}}`,
	},
	"Scenario": {
		"no turns":                `{metadata: {name: a}, spec: {turns: []}}`,
		"unknown fault":           `{metadata: {name: a}, spec: {turns: [{calls: [{tool: x}]}], mocks: {x: {fault: {kind: rain}}}}}`,
		"consent in another word": `{metadata: {name: a}, spec: {turns: [{calls: [{tool: x}], consent_overrides: {x: yes}}]}}`,
		"no tool":                 `{metadata: {name: a}, spec: {turns: [{calls: [{args: {}}]}]}}`,
	},
}

// TestSchemasRefuseWhatTheProgramRefuses checks that the published schemas and the program accept and refuse the same
// manifests.
func TestSchemasRefuseWhatTheProgramRefuses(t *testing.T) {
	t.Parallel()
	cache := validate.NewCache(validate.Options{})
	dir := t.TempDir()
	// agree checks a manifest with the program and both schemas, and reports a disagreement.
	agree := func(t *testing.T, kind, text string, taken bool) {
		t.Helper()
		file := filepath.Join(dir, "m.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var report strings.Builder
		code := run(t.Context(), []string{"validate", file}, strings.NewReader(""), io.Discard, &report)
		if want := map[bool]int{true: exitOK, false: exitInvalid}[taken]; code != want {
			t.Errorf("the program: exit code %d, want %d: %s", code, want, report.String())
		}
		raw, violations := manifest.ToJSON(file, []byte(text))
		for _, v := range violations {
			if !v.IsWarning() {
				t.Fatal(v)
			}
		}
		names := []string{"all"}
		if kind != "" {
			names = append(names, kind)
		}
		for _, name := range names {
			schema, ok := schemas.For(name)
			if !ok {
				t.Fatalf("no schema %s", name)
			}
			found, err := cache.Schema(json.RawMessage(schema), validate.Draft7).ValidateJSON(raw)
			if err != nil {
				t.Fatal(err)
			}
			if (len(found) == 0) != taken {
				t.Errorf("the schema %s: %v, but the program takes it: %t", name, found, taken)
			}
		}
	}
	for kind, all := range refusedManifests {
		for name, text := range all {
			t.Run(kind+"/"+name, func(t *testing.T) {
				agree(t, kind, "{apiVersion: toolctl.dev/v1, kind: "+kind+", "+text[1:], false)
			})
		}
	}
	const kit = "{apiVersion: promptkit.altairalabs.ai/v1alpha1, kind: PromptConfig, "
	t.Run("PromptConfig", func(t *testing.T) {
		agree(t, "", kit+`metadata: {name: support}, spec: {task_type: support, version: v1.0.0, description: d, system_template: Hello}}`, true)
	})
	t.Run("PromptConfig/name", func(t *testing.T) {
		agree(t, "", kit+`metadata: {name: ""}, spec: {system_template: Hello}}`, false)
	})
	t.Run("PromptConfig/version", func(t *testing.T) {
		agree(t, "", `{apiVersion: toolctl.dev/v1, kind: PromptConfig, metadata: {name: a}, spec: {template: x}}`, false)
	})
	t.Run("PromptKit/type", func(t *testing.T) {
		tool := `{apiVersion: promptkit.altairalabs.ai/v1alpha1, kind: Tool, metadata: {name: a}, spec: {description: d, mode: mock, mock_result: 1, input_schema: {type: %s}}}`
		agree(t, "", fmt.Sprintf(tool, "objet"), false)
		agree(t, "", fmt.Sprintf(tool, "object"), true)
	})
	for name, text := range map[string]string{
		"a draft-04 schema":   `{apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: a_b.c, labels: {toolctl.dev/group: A_1}}, spec: {mock_result: 1, description: d, cache: {ttl: 1h30m}, input_schema: {$schema: "http://json-schema.org/draft-04/schema#", type: object, properties: {n: {type: integer, minimum: 1, exclusiveMinimum: true}}}}}`,
		"a property named if": `{apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: a}, spec: {mock_result: 1, description: d, input_schema: {type: object, properties: {if: {type: [string, "null"]}, type: {enum: [a]}}, required: [if]}, output_schema: true}}`,
		"a server":            `{apiVersion: toolctl.dev/v1, kind: MCPServer, metadata: {name: a}, spec: {url: "${URL}", headers: {A: b}}}`,
		"an empty toolset":    `{apiVersion: toolctl.dev/v1, kind: Toolset, metadata: {name: a}, spec: {include: [], pinned: ["a-*"], list_limit: 1}}`,
		"what people say":     `{apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: a}, spec: {mock_result: 1, description: d, keywords: [天気], examples: [{ask: "¿Llueve?"}], input_schema: {type: object}}}`,
		"an empty policy":     `{apiVersion: toolctl.dev/v1, kind: ToolPolicy, metadata: {name: a}, spec: {blocklist: ["*", "a-*"]}}`,
	} {
		t.Run("taken/"+name, func(t *testing.T) { agree(t, "", text, true) })
	}
}
