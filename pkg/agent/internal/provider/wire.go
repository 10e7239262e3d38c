package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// post sends a JSON document. An answer that is no success is noted in the exchange of
// [Client.Do], which makes the error of it; its body is empty here.
func (c *Client) post(ctx context.Context, address string, header http.Header, accept string, body any) (*http.Response, error) {
	text, err := jsontext.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "toolctl")
	return c.http.Do(req)
}

// Ask sends a JSON document and reads the answer into a value, inside of [Client.Do].
func (c *Client) Ask(ctx context.Context, address string, header http.Header, body, into any) error {
	resp, err := c.post(ctx, address, header, "application/json", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Stream sends a JSON document and hands each event of the answer (the data of
// https://html.spec.whatwg.org/multipage/server-sent-events.html) to each, until that
// returns an error or [ErrDone]. An event without its end is dropped.
func (c *Client) Stream(ctx context.Context, address string, header http.Header, body any, each func(event string, data []byte) error) error {
	resp, err := c.post(ctx, address, header, eventStream, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode < 300 && strings.HasSuffix(media, "json") {
		return c.noStream(resp.Body)
	}
	in := bufio.NewReader(resp.Body)
	var event string
	var data []byte
	for {
		line, err := in.ReadString('\n')
		if err != nil { // what breaks a stream is read as its end
			return nil
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && len(data) > 0:
			if err := each(event, bytes.TrimSuffix(data, []byte("\n"))); errors.Is(err, ErrDone) {
				return nil
			} else if err != nil {
				return err
			}
			event, data = "", nil
		case line == "":
			event = ""
		case name == "event":
			event = value
		case name == "data":
			data = append(append(data, value...), '\n')
		}
	}
}

// noStream is the error of an answer that is a JSON document where a stream was asked for.
func (c *Client) noStream(body io.Reader) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var top struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		return err
	}
	if len(top.Error) > 0 && string(top.Error) != "null" {
		return APIError(raw)
	}
	return c.execution(v1.PhaseValidate, c.host+" answers with one JSON document, and a stream of events was asked for: run it without streaming, or check "+c.config.URLVar, nil)
}

// ErrDone ends a stream that has said all.
var ErrDone = errors.New("done")

// String is a string of an answer. What is no string is empty: servers that speak an API
// more or less put null or something else there.
type String string

// UnmarshalJSON is [json.Unmarshaler].
func (t *String) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = String(s)
	}
	return nil
}

// Count is a number of tokens in an answer. What is no number is 0.
type Count int64

// UnmarshalJSON is [json.Unmarshaler].
func (n *Count) UnmarshalJSON(raw []byte) error {
	var f float64
	if string(raw) != "null" && json.Unmarshal(raw, &f) == nil && f >= 0 && f < 1<<53 {
		*n = Count(f)
	}
	return nil
}
