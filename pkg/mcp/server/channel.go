package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp"
)

// channel leads to the client of a request while the request is answered.
type channel interface {
	// notify sends a notification, before the answer.
	notify(ctx context.Context, method string, params any) error
	// ask sends a request as it is and returns the answer as it came.
	ask(ctx context.Context, q mcp.InputRequest) (json.RawMessage, error)
}

// sdkChannel is that of a request which the SDK received: over stdin, and of prompts and
// resources. The context says to the SDK which request is meant.
type sdkChannel struct{ session *sdk.ServerSession }

func channelOf(req sdk.Request) channel {
	session, _ := req.GetSession().(*sdk.ServerSession)
	return sdkChannel{session}
}

func (c sdkChannel) notify(ctx context.Context, method string, params any) error {
	switch p := params.(type) {
	case *sdk.ProgressNotificationParams:
		return c.session.NotifyProgress(ctx, p)
	case *sdk.LoggingMessageParams:
		return c.session.Log(ctx, p)
	case *sdk.ElicitationCompleteParams:
		return c.session.NotifyElicitationComplete(ctx, p)
	}
	return fmt.Errorf("the client is not sent %s", method)
}

func (c sdkChannel) ask(ctx context.Context, q mcp.InputRequest) (answer json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	ctx = context.WithValue(ctx, rawKey{}, q)
	var res sdk.Result
	switch q.Method {
	case methodElicit:
		var p struct {
			Mode string `json:"mode"`
		}
		_ = json.Unmarshal(q.Params, &p) // a mode of another type is the client's to refuse
		if p.Mode != "url" {
			p.Mode = "form"
		}
		res, err = c.session.Elicit(ctx, &sdk.ElicitParams{Mode: p.Mode})
	case methodSample:
		res, err = c.session.CreateMessageWithTools(ctx, nil)
	case methodRoots:
		res, err = c.session.ListRoots(ctx, nil)
	default:
		return nil, &v1.MCPError{Code: jsonrpc.CodeMethodNotFound, Message: "the client is not asked " + clip.Bytes(q.Method, 100)}
	}
	if err != nil {
		var refused *jsonrpc.Error
		if errors.As(err, &refused) {
			return nil, &v1.MCPError{Code: refused.Code, Message: refused.Message}
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return rawAnswer(res)
}
