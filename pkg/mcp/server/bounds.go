package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// bounded returns the result, or an error result if it is too large. A model could not read such a result,
// and each client's copy would cost memory.
func (s *Server) bounded(ctx context.Context, tool string, r *result) *result {
	n := r.size()
	err := s.admission.Result(n)
	if err == nil {
		return r
	}
	s.opts.Logger.WarnContext(ctx, "a result is too large and was not passed on", slog.String("tool", tool), slog.Int64("bytes", n))
	return &result{IsError: true, Content: []wire.Block{wire.TextBlock(fmt.Sprintf("tool %q: %s", tool, err))}}
}

// fits does the same as bounded for results without isError.
func (s *Server) fits(what string, n int64) error {
	if s.admission.Result(n) == nil {
		return nil
	}
	return &jsonrpc.Error{Code: codeUnavailable, Message: fmt.Sprintf("%s: its %d bytes exceed the limit of %d", clip.Bytes(what, 100), n, s.admission.Limits().MaxResultBytes)}
}

// size returns the approximate size of a result in bytes, before JSON escapes.
func (r *result) size() int64 {
	n := int64(len(r.Structured))
	for i := range r.Content {
		n += r.Content[i].Len()
	}
	for k, v := range r.Meta {
		raw, _ := v.(json.RawMessage)
		n += int64(len(k) + len(raw))
	}
	return n
}
