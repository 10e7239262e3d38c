package textcheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/pkg/validate"
)

// Rule is a rule for a text. Its fields are its parameters, with PromptKit's names, for
// [params.Read] to fill. Where PromptKit has two names for one thing, both are read.
type Rule interface {
	// Check returns how a text breaks the rule; nil if the text meets it.
	Check(text string) *Broken
}

// Broken says how a text breaks a rule.
type Broken struct {
	// Expected and Got are for a report, which may show the text.
	Expected, Got string
	// Reason does not show the text, which may have been refused.
	Reason string
}

// New returns the rule for the assertion type kind, which the manifest calls name; nil if the type does not check a
// text. With promptKit, schemas use PromptKit's JSON Schema draft.
func New(kind, name string, schemas *validate.Cache, promptKit bool) Rule {
	switch kind {
	case "content_excludes":
		return &excludes{words: name == "banned_words", lenient: promptKit}
	case "content_includes":
		return &includes{}
	case "content_includes_any":
		return &includesAny{}
	case "content_matches":
		return &matches{}
	case "field_presence":
		return &hasFields{}
	case "is_valid_json":
		return &Document{}
	case "json_schema":
		draft := validate.Draft2020
		if promptKit {
			draft = validate.Draft7
		}
		return &jsonSchema{schemas: schemas, draft: draft}
	case "max_length":
		return &MaxLength{}
	case "min_length":
		return &minLength{}
	case "sentence_count":
		return &sentenceCount{}
	}
	return nil
}

// Quoted formats texts for a message.
func Quoted(texts []string, join string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = show(t)
	}
	return strings.Join(all, join)
}

func show(v any) string {
	const most = 200 // characters
	return clip.Runes(string(jsontext.Of(v)), most)
}

// Patterns are texts to look for.
type Patterns struct {
	Patterns []string `json:"patterns" need:"patterns"`
}

// Invalid implements [params.Checker].
func (r *Patterns) Invalid() string {
	if slices.Contains(r.Patterns, "") {
		return `parameter "patterns": expected a list of texts`
	}
	return ""
}

type includes struct{ Patterns }

func (r *includes) Check(text string) *Broken { return missing(r.Patterns.Patterns, text) }

// missing returns a violation if a text lacks one of the patterns; nil if the text has all patterns.
func missing(patterns []string, text string) *Broken {
	gone := Missing(patterns, text)
	if gone == nil {
		return nil
	}
	return &Broken{"a text with " + Quoted(gone, " and "), show(text), fmt.Sprintf("it does not have %q", gone[0])}
}

type hasFields struct {
	Fields         []string `json:"fields" need:"fields"`
	RequiredFields []string `json:"required_fields" need:"fields"`
}

func (r *hasFields) Check(text string) *Broken {
	return missing(slices.Concat(r.Fields, r.RequiredFields), text)
}

type includesAny struct{ Patterns }

func (r *includesAny) Check(text string) *Broken {
	if len(Missing(r.Patterns.Patterns, text)) < len(r.Patterns.Patterns) {
		return nil
	}
	return &Broken{"a text with " + Quoted(r.Patterns.Patterns, " or "), show(text), fmt.Sprintf("it has none of %q", r.Patterns.Patterns)}
}

type excludes struct {
	Patterns  []string `json:"patterns" need:"patterns"`
	Words     []string `json:"words" need:"patterns"`
	MatchMode string   `json:"match_mode"`
	words     bool     // whole words are matched if match_mode is missing
	lenient   bool     // an unknown match_mode means substring, as in PromptKit
}

// Invalid implements [params.Checker].
func (r *excludes) Invalid() string {
	if m := r.MatchMode; !r.lenient && m != "" && m != "substring" && m != WordBoundary {
		return fmt.Sprintf("parameter \"match_mode\": expected substring or %s, got %q", WordBoundary, m)
	}
	all := Patterns{slices.Concat(r.Patterns, r.Words)}
	return all.Invalid()
}

func (r *excludes) Check(text string) *Broken {
	words := r.MatchMode == WordBoundary || r.MatchMode == "" && r.words
	found := Found(slices.Concat(r.Patterns, r.Words), text, words)
	if found == "" {
		return nil
	}
	return &Broken{"no text with " + show(found), show(text), fmt.Sprintf("it has %q", found)}
}

type matches struct {
	Pattern     params.Expression `json:"pattern" need:"pattern"`
	ExpectMatch *bool             `json:"expect_match"`
}

func (r *matches) Check(text string) *Broken {
	want := r.ExpectMatch == nil || *r.ExpectMatch
	if r.Pattern.MatchString(text) == want {
		return nil
	}
	expected := "a match of "
	if !want {
		expected = "no match of "
	}
	return &Broken{expected + show(r.Pattern.String()), show(text), fmt.Sprintf("it matches %q: %v", r.Pattern, !want)}
}

// MaxLength bounds the length of a text.
type MaxLength struct {
	Max           count `json:"max" need:"max"`
	MaxCharacters count `json:"max_characters" need:"max"`
	MaxChars      count `json:"max_chars" need:"max"`
	MaxTokens     count `json:"max_tokens" need:"max"`
}

// count is a limit. 0 counts as not given: then another parameter must give a limit.
type count int

// UnmarshalJSON implements [json.Unmarshaler].
func (n *count) UnmarshalJSON(raw []byte) error {
	var whole params.Whole
	if err := whole.UnmarshalJSON(raw); err != nil {
		return err
	}
	if whole < 0 {
		return fmt.Errorf("expected a whole number above 0, got %d", whole)
	}
	*n = count(whole)
	return nil
}

func (r *MaxLength) bytes() int { return int(cmp.Or(r.Max, r.MaxCharacters, r.MaxChars)) }

// Cut returns the beginning of a text that has too many bytes; "" if the text is within the limit.
func (r *MaxLength) Cut(text string) string {
	if most := r.bytes(); most > 0 && len(text) > most {
		return clip.Start(text, most)
	}
	return ""
}

// Check implements [Rule].
func (r *MaxLength) Check(text string) *Broken {
	if most := r.bytes(); most > 0 && len(text) > most {
		return &Broken{fmt.Sprintf("at most %d bytes", most), fmt.Sprintf("%d: %s", len(text), show(text)), tooMany(len(text), "byte", most)}
	}
	if n, most := Tokens(text), int(r.MaxTokens); most > 0 && n > most {
		return &Broken{"at most " + clip.Count(most, "token"), fmt.Sprintf("about %d", n), fmt.Sprintf("it has about %s, and at most %d are allowed", clip.Count(n, "token"), most)}
	}
	return nil
}

func tooMany(n int, what string, most int) string {
	return fmt.Sprintf("it has %s, and at most %d are allowed", clip.Count(n, what), most)
}

type minLength struct {
	Min           count `json:"min" need:"min"`
	MinCharacters count `json:"min_characters" need:"min"`
	MinChars      count `json:"min_chars" need:"min"`
}

func (r *minLength) Check(text string) *Broken {
	least := int(cmp.Or(r.Min, r.MinCharacters, r.MinChars))
	if len(text) >= least {
		return nil
	}
	return &Broken{fmt.Sprintf("at least %d bytes", least), fmt.Sprintf("%d: %s", len(text), show(text)),
		fmt.Sprintf("it has %s, and at least %d are needed", clip.Count(len(text), "byte"), least)}
}

type sentenceCount struct {
	Max          count `json:"max" need:"max"`
	MaxSentences count `json:"max_sentences" need:"max"`
}

func (r *sentenceCount) Check(text string) *Broken {
	n, most := Sentences(text), int(cmp.Or(r.Max, r.MaxSentences))
	if n <= most {
		return nil
	}
	return &Broken{fmt.Sprintf("at most %d sentences", most), fmt.Sprintf("%d: %s", n, show(text)), tooMany(n, "sentence", most)}
}

// Document extracts JSON from a text: the whole text or, depending on the parameters, the first code block or the
// first object or array.
type Document struct {
	AllowWrapped bool `json:"allow_wrapped"`
	ExtractJSON  bool `json:"extract_json"`
}

// Read reads the document.
func (r *Document) Read(text string) (any, error) {
	return validate.Decode(json.RawMessage(JSON(text, r.AllowWrapped, r.ExtractJSON)))
}

// Check implements [Rule].
func (r *Document) Check(text string) *Broken {
	if _, err := r.Read(text); err != nil {
		return &Broken{"JSON", show(text), "it is not valid JSON"}
	}
	return nil
}

type jsonSchema struct {
	Schema json.RawMessage `json:"schema" need:"schema"`
	Document
	schemas *validate.Cache
	draft   validate.Draft
}

func (r *jsonSchema) Check(text string) *Broken {
	const fits = "JSON that fits the schema"
	doc, err := r.Read(text)
	if err != nil {
		return &Broken{fits, show(text), "it is not valid JSON"}
	}
	violations, err := r.schemas.Schema(r.Schema, r.draft).Validate(doc)
	switch {
	case err != nil:
		return &Broken{"a valid JSON Schema", err.Error(), err.Error()}
	case len(violations) == 0:
		return nil
	}
	all := make([]string, len(violations))
	for i, v := range violations {
		all[i] = v.String()
	}
	return &Broken{fits, strings.Join(all, "; "), all[0]}
}

// Invalid implements [params.Checker].
func (r *jsonSchema) Invalid() string {
	if err := r.schemas.Schema(r.Schema, r.draft).Compile(); err != nil {
		return `parameter "schema": ` + err.Error()
	}
	return ""
}
