package action

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/internal/regular"
)

// InEditor is the value of EditArgs of [Decide] that opens the editor.
const InEditor = "$EDITOR"

// edited returns the arguments to approve instead, or nil if the person left them unchanged in the editor.
func (d *Decide) edited(ctx context.Context, p *v1.PendingCall) (raw json.RawMessage, err error) {
	var args Arguments
	file, isFile := strings.CutPrefix(d.EditArgs, "@")
	inEditor := d.EditArgs == InEditor
	switch {
	case inEditor:
		if args.File, err = d.inEditor(ctx, p); err != nil || args.File == "" {
			return nil, err
		}
	case isFile:
		args.File = file
	case strings.HasPrefix(strings.TrimSpace(d.EditArgs), "{"):
		args.Flags = []string{d.EditArgs}
	default:
		return nil, usagef("--edit-args %q: expected a JSON object, @FILE, or nothing for $EDITOR", clip.Words(d.EditArgs, 60))
	}
	if raw, _, err = args.Object(d.Config); err == nil {
		err = d.checkEdited(ctx, p, raw)
	}
	switch {
	case inEditor && err != nil:
		d.Noted(fmt.Sprintf("nothing was decided; your text is in %s: fix it and use --edit-args @%[1]s", args.File))
	case inEditor:
		err = os.Remove(args.File)
	}
	return raw, err
}

// inEditor lets the person edit the arguments of a call, and returns the file with the text; "" if it is unchanged.
func (d *Decide) inEditor(ctx context.Context, p *v1.PendingCall) (string, error) {
	f, err := os.CreateTemp("", "toolctl-"+p.ID+"-*.json")
	if err != nil {
		return "", err
	}
	var before bytes.Buffer
	if json.Indent(&before, redact.JSON(p.Args, p.Redact), "", "  ") != nil {
		before = *bytes.NewBufferString("{}")
	}
	_, err = f.WriteString(before.String() + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("write %s: %w", f.Name(), regular.Reason(err))
	}
	if err := d.Editor(ctx, f.Name()); err != nil {
		return "", errors.Join(fmt.Errorf("nothing was decided: %w", err), os.Remove(f.Name()))
	}
	after, err := os.ReadFile(f.Name())
	if err != nil {
		return "", regular.Reason(err)
	}
	if bytes.Equal(bytes.TrimSpace(before.Bytes()), bytes.TrimSpace(after)) {
		return "", os.Remove(f.Name())
	}
	return f.Name(), nil
}

// checkEdited validates arguments with the schema of the tool.
func (d *Decide) checkEdited(ctx context.Context, p *v1.PendingCall, args json.RawMessage) (err error) {
	if len(args) > v1.MaxPendingArgs {
		return usagef("--edit-args: the arguments have %d bytes, and the limit is %d", len(args), v1.MaxPendingArgs)
	}
	w, err := d.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	err = w.Registry.CheckEdited(ctx, p, args)
	if _, ok := errors.AsType[*v1.NotFoundError](err); ok {
		d.Noted(fmt.Sprintf("note: tool %s/%s is unknown here, so its arguments are checked when it is called; pass its manifest with -f", p.Namespace, p.Tool))
		return nil
	}
	return err
}
