package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/permit"
)

// TestPipelineFiles checks that the CI files for users are YAML, and that their commands and flags exist.
func TestPipelineFiles(t *testing.T) {
	command := regexp.MustCompile(`(?m)(?:^|[ "'])toolctl ([a-z]+)((?: [^|&;>\n]*)?)`)
	flag := regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`)
	seen := 0
	for _, name := range []string{"action.yml", ".pre-commit-hooks.yaml", "deploy/gitlab/toolctl.gitlab-ci.yml", "deploy/github/check"} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := yaml.Unmarshal(text, &doc); err != nil && strings.HasSuffix(name, "ml") {
			t.Errorf("%s: %v", name, err)
		}
		root := newRootCmd(&app{conf: action.Config{Permit: &permit.Rules{}}})
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			cmd, _, err := root.Find([]string{m[1]})
			if err != nil || cmd == root {
				if !slices.Contains([]string{"manifests"}, m[1]) {
					t.Errorf("%s: toolctl %s: there is no such command", name, m[1])
				}
				continue
			}
			seen++
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				long := strings.TrimLeft(f[1], "-")
				known := cmd.Flag(long) != nil
				if len(long) == 1 {
					known = cmd.Flags().ShorthandLookup(long) != nil || cmd.InheritedFlags().ShorthandLookup(long) != nil
				}
				if !known {
					t.Errorf("%s: toolctl %s has no flag %s", name, m[1], f[1])
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d commands were found", seen)
	}
}
