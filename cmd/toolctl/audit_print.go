package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// auditPrinter prints a list of the audit, line by line.
type auditPrinter interface {
	item(l *auditLine) error
	end() error
}

func (o *auditListOptions) printer(w io.Writer, head store.AuditHead) auditPrinter {
	switch o.format() {
	case "json":
		return &auditJSON{w: w, head: head}
	case "yaml":
		return &auditYAML{w: w, head: head}
	}
	return &auditTable{o: o, w: w, head: head}
}

// auditTable prints columns, whose widths fit the lines of a part.
type auditTable struct {
	o    *auditListOptions
	w    io.Writer
	head store.AuditHead
	t    *table
	n    int
}

func (p *auditTable) item(l *auditLine) error {
	const part = 1000
	if p.n == 0 {
		p.t = newTable(p.w, p.o.columns()...)
	}
	p.t.row(p.o.cells(l)...)
	if p.n++; p.n%part == 0 {
		return p.t.Flush()
	}
	return nil
}

func (p *auditTable) end() error {
	if p.n > 0 {
		if err := p.t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(p.w)
	}
	_, err := fmt.Fprintf(p.w, "%d of %s, head %s\n", p.n, count(int(p.head.Lines), "line"), p.head.Hash)
	return err
}

// auditJSON prints an object: the lines in items; lines is how many were ever written, and head
// the hash of the last one.
type auditJSON struct {
	w    io.Writer
	head store.AuditHead
	n    int
}

func (p *auditJSON) item(l *auditLine) error {
	text, err := jsontext.Marshal(l)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if p.n++; p.n == 1 {
		b.WriteString("{\n  \"items\": [")
	} else {
		b.WriteByte(',')
	}
	b.WriteString("\n    ")
	if err := json.Indent(&b, text, "    ", "  "); err != nil {
		return err
	}
	_, err = p.w.Write(escaped(b.Bytes()))
	return err
}

func (p *auditJSON) end() error {
	open := "\n  "
	if p.n == 0 {
		open = "{\n  \"items\": ["
	}
	_, err := fmt.Fprintf(p.w, "%s],\n  \"lines\": %d,\n  \"head\": %q\n}\n", open, p.head.Lines, p.head.Hash)
	return err
}

// auditYAML prints the same as YAML.
type auditYAML struct {
	w    io.Writer
	head store.AuditHead
	n    int
}

func (p *auditYAML) item(l *auditLine) error {
	if p.n++; p.n == 1 {
		if _, err := io.WriteString(p.w, "items:\n"); err != nil {
			return err
		}
	}
	text, err := manifest.MarshalYAML([]*auditLine{l})
	if err == nil {
		_, err = p.w.Write(text)
	}
	return err
}

func (p *auditYAML) end() error {
	if p.n == 0 {
		if _, err := io.WriteString(p.w, "items: []\n"); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.w, "lines: %d\nhead: %q\n", p.head.Lines, p.head.Hash)
	return err
}
