package console

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
)

// resultView is the result of a call as it is shown.
type resultView struct {
	v1.Result
	Problem string // why the call failed
	Text    string // the text of textual content
	Tree    *tree
	Table   *table
	JSON    string
	Parts   []partView
	Cut     bool
}

// partView is a part of a result beside its content.
type partView struct {
	Kind, Name, MIME string
	Text             string
	// Data is the data URL of an image or audio of a type that cannot contain scripts.
	Data  template.URL
	Bytes int
}

// tree is a JSON value as a collapsible list.
type tree struct {
	Key   string
	Keyed bool
	Value string // the number of parts of an object or a list, or a scalar value
	Kind  string
	Many  []*tree
	Count int
	Open  bool
}

// table is a list of objects.
type table struct {
	Of      string // the field of the result that has the list; empty for the whole result
	Part    bool   // the result has other fields
	Columns []string
	Rows    [][]string
	All     int // number of rows of the result, including those that are not shown
}

// Limits of the displayed result. The API returns results in full.
const (
	maxShown     = 256 << 10
	maxTreeNodes = 2000
	maxTableRows = 200
	maxColumns   = 20
)

func viewResult(res v1.Result) *resultView {
	v := &resultView{Result: res}
	raw := res.Content
	if len(raw) > maxShown {
		v.Cut = true
	}
	whole, err := decode(raw)
	switch text, isText := whole.(string); {
	case len(raw) == 0:
	case err != nil:
		v.Text = shownText(string(raw))
	case isText:
		v.Text = shownText(text)
	default:
		nodes := 0
		v.Tree = treeOf("", false, whole, &nodes, 0)
		if v.Table = tableOf(whole); v.Table != nil && v.Table.Part {
			for _, one := range v.Tree.Many { // the table below shows it
				one.Open = one.Open && one.Key != v.Table.Of
			}
		}
	}
	if len(raw) > 0 {
		v.JSON = shownText(indented(raw))
	}
	for _, p := range res.Parts {
		v.Parts = append(v.Parts, viewPart(p))
	}
	return v
}

// shownText returns a text for display: truncated, with characters visible that hide or reorder others.
func shownText(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return inspect.Show(s)
}

// drawable are the media types that a browser shows without running scripts.
var drawable = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/x-wav", "audio/mpeg", "audio/ogg", "audio/mp4", "audio/webm", "audio/flac"}

func viewPart(p v1.Part) partView {
	v := partView{Kind: p.Type, Name: p.Title, MIME: p.MIMEType, Text: shownText(p.Text)}
	v.Name = cmp.Or(v.Name, p.Name)
	if p.URI != "" {
		v.Text = shownText(p.URI + "\n" + p.Description)
	}
	if r := p.Resource; r != nil {
		v.MIME, v.Text = r.MIMEType, shownText(r.Text)
		if v.Name == "" {
			v.Name = r.URI
		}
		v.Bytes = base64.StdEncoding.DecodedLen(len(r.Blob))
	}
	if p.Data == "" {
		return v
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	v.Bytes = len(data)
	mime := strings.ToLower(strings.TrimSpace(p.MIMEType))
	switch {
	case err != nil:
		v.Text = "the data is not valid base64"
	case slices.Contains(drawable, mime):
		v.Data = template.URL("data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)) //nolint:gosec // a kind of the list above, and base64
		v.Kind, _, _ = strings.Cut(mime, "/")
	case strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "json"):
		v.Text = shownText(string(data))
	}
	return v
}

func treeOf(key string, keyed bool, v any, nodes *int, depth int) *tree {
	*nodes++
	t := &tree{Key: inspect.Show(clipped(key, 200)), Keyed: keyed, Open: depth < 2}
	each := func(key string, v any) {
		if *nodes < maxTreeNodes && depth < maxNesting {
			t.Many = append(t.Many, treeOf(key, true, v, nodes, depth+1))
		}
	}
	switch v := v.(type) {
	case *object:
		t.Kind, t.Count, t.Value = "object", len(v.keys), clip.Count(len(v.keys), "field")
		for _, k := range v.keys {
			each(k, v.of[k])
		}
	case []any:
		t.Kind, t.Count, t.Value = "list", len(v), clip.Count(len(v), "item")
		for i, one := range v {
			each(strconv.Itoa(i), one)
		}
	case string:
		t.Kind, t.Value = "text", shownText(v)
	case json.Number:
		t.Kind, t.Value = "number", v.String()
	default:
		t.Kind, t.Value = "word", jsonText(v)
	}
	if t.Kind == "list" && t.Count > 50 {
		t.Open = false
	}
	return t
}

// tableOf returns a list of objects, or an object with one such list, as a table; nil for other values.
func tableOf(v any) *table {
	if o, ok := v.(*object); ok {
		var only *table
		for _, k := range o.keys {
			if t := tableOf(listOnly(o.of[k])); t != nil {
				if only != nil {
					return nil
				}
				only = t
				t.Of, t.Part = inspect.Show(clipped(k, 200)), len(o.keys) > 1
			}
		}
		return only
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	t := &table{All: len(list)}
	for _, one := range list {
		o, ok := one.(*object)
		if !ok {
			return nil
		}
		for _, k := range o.keys {
			if !slices.Contains(t.Columns, k) {
				t.Columns = append(t.Columns, k)
			}
		}
		if len(t.Columns) > maxColumns {
			return nil
		}
	}
	for _, one := range list[:min(len(list), maxTableRows)] {
		o := one.(*object)
		row := make([]string, len(t.Columns))
		for i, k := range t.Columns {
			if o.has(k) {
				row[i] = inspect.Show(clipped(plainText(o.of[k]), 300))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	for i, k := range t.Columns {
		t.Columns[i] = inspect.Show(clipped(k, 100))
	}
	return t
}

func listOnly(v any) any {
	if list, ok := v.([]any); ok {
		return list
	}
	return nil
}
