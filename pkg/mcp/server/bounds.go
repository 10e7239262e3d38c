package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"toolctl.dev/toolctl/internal/clip"
)

const defaultMaxResult = 16 << 20

// bounded returns the result, or in place of one that is too large a result that says
// so. A model cannot read as much anyway, and each client's copy costs memory.
func (s *Server) bounded(ctx context.Context, tool string, r *result) *result {
	n := r.size()
	if n <= s.opts.MaxResultBytes {
		return r
	}
	s.opts.Logger.WarnContext(ctx, "a result is too large and was not passed on", slog.String("tool", tool), slog.Int64("bytes", n), slog.Int64("most", s.opts.MaxResultBytes))
	return &result{Type: r.Type, IsError: true, Content: []block{textBlock(fmt.Sprintf(
		"tool %q: the call was made, but its result of %d bytes is not passed on: it is larger than the %d that this server allows; ask for less, such as a page or a part", tool, n, s.opts.MaxResultBytes))}}
}

// fits is bounded for what has no isError.
func (s *Server) fits(what string, n int64) error {
	if n <= s.opts.MaxResultBytes {
		return nil
	}
	return &jsonrpc.Error{Code: codeUnavailable, Message: fmt.Sprintf("%s: its %d bytes are more than the %d that this server passes on", clip.Bytes(what, 100), n, s.opts.MaxResultBytes)}
}

// size is about how many bytes a result is, before what is escaped in JSON.
func (r *result) size() int64 {
	n := int64(len(r.Structured))
	for i := range r.Content {
		n += r.Content[i].size()
	}
	for k, v := range r.Meta {
		raw, _ := v.(json.RawMessage)
		n += int64(len(k) + len(raw))
	}
	return n
}

func (b *block) size() int64 {
	n := len(b.Text) + len(b.Data) + len(b.URI) + len(b.Name) + len(b.Title) + len(b.Description) + len(b.Icons) + len(b.Annotations) + len(b.Meta)
	if b.Resource != nil {
		n += int(b.Resource.size())
	}
	return int64(n)
}

func (c *contents) size() int64 {
	n := len(c.URI) + len(c.Blob) + len(c.Meta)
	if c.Text != nil {
		n += len(*c.Text)
	}
	return int64(n)
}
