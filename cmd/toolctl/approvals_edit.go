package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
)

// editor lets a person edit the arguments of a call. It returns nil when nothing was
// changed; the file with the text is removed then, and left for the caller to name else.
func (o *decideOptions) editor(ctx context.Context, p *v1.PendingCall) (raw json.RawMessage, file string, err error) {
	program, args := o.editorCommand()
	if program == "" {
		return nil, "", usagef("--edit-args without a value opens $EDITOR, which is not set: set it, or give the arguments: --edit-args '{...}' or @FILE")
	}
	f, err := os.CreateTemp("", "toolctl-"+p.ID+"-*.json")
	if err != nil {
		return nil, "", err
	}
	file = f.Name()
	before := shown(p)
	_, err = f.Write(before)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, "", fmt.Errorf("write %s: %w", file, regular.Reason(err))
	}
	if err := o.openEditor(ctx, program, append(args, file)); err != nil {
		return nil, "", errors.Join(fmt.Errorf("nothing is decided: %w", err), os.Remove(file))
	}
	after, err := os.ReadFile(file)
	if err != nil {
		return nil, "", regular.Reason(err)
	}
	if bytes.Equal(bytes.TrimSpace(before), bytes.TrimSpace(after)) {
		return nil, "", os.Remove(file)
	}
	raw, err = o.callArgs(ctx, nil, file)
	return raw, file, err
}
