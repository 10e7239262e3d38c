package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// auditPrinter prints a list of audit records one by one, with the number of records of the log and its head.
type auditPrinter struct {
	o    *auditListOptions
	w    *bufio.Writer
	head store.AuditHead
	t    *table
	n    int
}

func (p *auditPrinter) item(l *auditLine) error {
	p.n++
	switch p.o.format() {
	case "json":
		text, err := jsontext.Marshal(l)
		if err != nil {
			return err
		}
		b := bytes.NewBufferString(",\n    ")
		if p.n == 1 {
			b = bytes.NewBufferString("{\n  \"items\": [\n    ")
		}
		if err := json.Indent(b, text, "    ", "  "); err != nil {
			return err
		}
		_, err = p.w.Write(escaped(b.Bytes()))
		return err
	case "yaml":
		text, err := manifest.MarshalYAML([]*auditLine{l})
		if p.n == 1 {
			text = append([]byte("items:\n"), text...)
		}
		_, _ = p.w.Write(text) // Flush returns the error
		return err
	}
	if p.t == nil {
		p.t = newTable(p.w, p.o.columns()...)
	}
	p.t.row(p.o.cells(l)...)
	const part = 1000 // columns are aligned per part, because a table of all records would be held in memory
	if p.n%part == 0 {
		return p.t.Flush()
	}
	return nil
}

func (p *auditPrinter) end() error {
	switch open := ""; p.o.format() {
	case "json":
		if open = "\n  "; p.n == 0 {
			open = "{\n  \"items\": ["
		}
		fmt.Fprintf(p.w, "%s],\n  \"lines\": %d,\n  \"head\": %q\n}\n", open, p.head.Lines, p.head.Hash)
	case "yaml":
		if p.n == 0 {
			open = "items: []\n"
		}
		fmt.Fprintf(p.w, "%slines: %d\nhead: %q\n", open, p.head.Lines, p.head.Hash)
	default:
		if p.t != nil {
			if err := p.t.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(p.w)
		}
		fmt.Fprintf(p.w, "%d of %s, head %s\n", p.n, count(int(p.head.Lines), "line"), p.head.Hash)
	}
	return nil
}
