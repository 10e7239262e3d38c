package action

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/anthropic"
	"toolctl.dev/toolctl/pkg/agent/google"
	"toolctl.dev/toolctl/pkg/agent/openai"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/manifest"
)

// modelOptions are the options of a provider.
type modelOptions struct {
	// env returns a variable, such as OPENAI_API_KEY.
	env func(string) (string, bool)
	// script is the file of a scripted model; its first skip replies are already used. flag is the flag that
	// names the file.
	script, flag string
	skip         int
}

// modelProviders returns the model providers by their names in spec.provider and --provider. It is the only
// list of them.
func modelProviders() map[string]func(modelOptions) (agent.Model, error) {
	return map[string]func(modelOptions) (agent.Model, error){
		scripted.Provider: newScripted,
		openai.Name: func(o modelOptions) (agent.Model, error) {
			return orNil(openai.New(openai.Options{Env: o.env}))
		},
		anthropic.Name: func(o modelOptions) (agent.Model, error) {
			return orNil(anthropic.New(anthropic.Options{Env: o.env}))
		},
		google.Name: func(o modelOptions) (agent.Model, error) {
			return orNil(google.New(google.Options{Env: o.env}))
		},
	}
}

// orNil returns a nil interface instead of an interface that holds a nil pointer.
func orNil[M agent.Model](m M, err error) (agent.Model, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Providers returns the names of the model providers, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(modelProviders())) }

// newModel returns the model of a provider.
func newModel(provider string, o modelOptions) (agent.Model, error) {
	all := modelProviders()
	if provider == "gemini" { // the name in prompts of PromptKit
		provider = google.Name
	}
	if make := all[provider]; make != nil {
		return make(o)
	}
	names := Providers()
	return nil, usagef("unknown provider %q: expected one of %s%s", provider, strings.Join(names, ", "), v1.DidYouMean(provider, names))
}

// maxScriptBytes limits the file of a scripted model.
const maxScriptBytes = 10 << 20

func newScripted(o modelOptions) (agent.Model, error) {
	if o.script == "" {
		return nil, usagef("provider scripted needs %s FILE, a list of replies of the model", o.flag)
	}
	data, err := regular.ReadUpTo(o.script, maxScriptBytes)
	if err == nil && len(data) > maxScriptBytes {
		err = fmt.Errorf("more than %d bytes", maxScriptBytes)
	}
	if err != nil {
		return nil, usagef("%s %s: %w", o.flag, o.script, regular.Reason(err))
	}
	raw, violations := manifest.ToJSON(o.script, data)
	if len(violations) == 0 {
		var replies []v1.ModelReply
		if replies, violations = scripted.Parse(raw); len(violations) == 0 {
			return scripted.New(replies, scripted.Options{Skip: o.skip}), nil
		}
	}
	return nil, scriptViolations(o.flag, o.script, violations)
}

// scriptViolations returns an error with all violations of a script.
func scriptViolations(flag, file string, violations []v1.Violation) error {
	if len(violations) == 1 && !violations[0].Source.IsZero() {
		return invalidf("%s %s", flag, violations[0])
	}
	text := violations[0].String()
	if len(violations) > 1 {
		text = clip.Count(len(violations), "error")
		for i := range violations {
			text += "\n  " + violations[i].String()
		}
	}
	return invalidf("%s %s: %s", flag, file, text)
}
