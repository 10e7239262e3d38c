// Package argtext writes the arguments of a call for the person who approves it. Invisible and
// misleading characters are escaped as in JSON, and keys are written in ASCII, so that no key
// looks like another.
package argtext

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf16"

	"toolctl.dev/toolctl/internal/clip"
)

// Bounds of a form. Long values are shortened. Arguments beyond the other bounds are an error,
// because no one can review them.
const (
	maxFormEntries = 200 // keys and list items in total
	maxFormDepth   = 8
	maxFormKey     = 128 // bytes
	maxFormValue   = 256 // bytes
	maxFormText    = 32 << 10
)

// form writes arguments within its bounds.
type form struct {
	in      *json.Decoder
	out     strings.Builder
	entries int

	maxEntries, maxDepth, maxKey, maxValue, maxText int
}

// Form returns the text of arguments for a form: every key and every value, or the start of a
// long value with its length and hash. The error says why a form cannot show the arguments.
func Form(args json.RawMessage) (string, error) {
	return (&form{maxEntries: maxFormEntries, maxDepth: maxFormDepth, maxKey: maxFormKey, maxValue: maxFormValue, maxText: maxFormText}).of(args)
}

// Whole returns the complete text of arguments.
func Whole(args json.RawMessage) (string, error) {
	const all = math.MaxInt
	return (&form{maxEntries: all, maxDepth: all, maxKey: all, maxValue: all, maxText: all}).of(args)
}

func (f *form) of(args json.RawMessage) (string, error) {
	f.in = json.NewDecoder(bytes.NewReader(args))
	f.in.UseNumber()
	if err := f.value(0); err != nil {
		return "", err
	}
	if _, err := f.in.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("they are not valid JSON")
	}
	return f.out.String(), nil
}

func (f *form) value(depth int) error {
	t, err := f.in.Token()
	if err != nil {
		return fmt.Errorf("they are not valid JSON: %w", err)
	}
	switch v := t.(type) {
	case json.Delim:
		return f.children(v, depth)
	case string:
		return f.write(f.shortened(v, func(s string) string { return quote(s, false) }))
	case json.Number:
		return f.write(f.shortened(v.String(), func(s string) string { return s }))
	case bool:
		return f.write(fmt.Sprint(v))
	}
	return f.write("null")
}

// children writes an object or a list with one entry on each line.
func (f *form) children(open json.Delim, depth int) error {
	if depth == f.maxDepth {
		return fmt.Errorf("they are nested deeper than %d levels", f.maxDepth)
	}
	closing := map[json.Delim]string{'{': "}", '[': "]"}[open]
	if err := f.write(open.String()); err != nil {
		return err
	}
	empty := true
	for ; f.in.More(); empty = false {
		if f.entries++; f.entries > f.maxEntries {
			return fmt.Errorf("they have more than %d keys and items", f.maxEntries)
		}
		if !empty {
			f.out.WriteByte(',')
		}
		f.line(depth + 1)
		if open == '{' {
			if err := f.key(); err != nil {
				return err
			}
		}
		if err := f.value(depth + 1); err != nil {
			return err
		}
	}
	if _, err := f.in.Token(); err != nil {
		return fmt.Errorf("they are not valid JSON: %w", err)
	}
	if !empty {
		f.line(depth)
	}
	return f.write(closing)
}

// key writes a key in ASCII, because letters may look like others. A key in another script
// follows in readable form.
func (f *form) key() error {
	t, err := f.in.Token()
	if err != nil {
		return fmt.Errorf("they are not valid JSON: %w", err)
	}
	key, _ := t.(string)
	if len(key) > f.maxKey {
		return fmt.Errorf("a key has %d bytes, more than %d", len(key), f.maxKey)
	}
	text, plain := quote(key, true), quote(key, false)
	if text != plain {
		text += " (" + plain + ")"
	}
	return f.write(text + ": ")
}

func (f *form) line(depth int) { f.out.WriteString("\n" + strings.Repeat("  ", depth)) }

func (f *form) write(s string) error {
	if f.out.Len()+len(s) > f.maxText {
		return fmt.Errorf("their text is longer than %d KiB", f.maxText>>10)
	}
	f.out.WriteString(s)
	return nil
}

// shortened writes a text, or the start of a long one with the length and SHA-256 of the whole.
func (f *form) shortened(s string, write func(string) string) string {
	if len(s) <= f.maxValue {
		return write(s)
	}
	start := clip.Start(s, f.maxValue)
	return fmt.Sprintf("%s… (shortened: %d bytes, sha256 %x)", write(start), len(s), sha256.Sum256([]byte(s)))
}

// quote writes a text as JSON. It escapes invisible characters and, with ascii, all characters
// outside of ASCII.
func quote(s string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < unicode.MaxASCII && unicode.IsPrint(r), !ascii && !unseen(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unseen reports whether a character is invisible, changes how other characters look, or is an
// unusual space.
func unseen(r rune) bool {
	const brailleBlank = 0x2800
	return !unicode.IsPrint(r) || r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
