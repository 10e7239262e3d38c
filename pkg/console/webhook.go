package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
)

// Message formats of a [Webhook].
const (
	FormatJSON  = "json"
	FormatSlack = "slack"
)

// Webhook receives a POST for each call that starts to wait for approval, signed as in Standard Webhooks
// 1.0: webhook-signature is "v1," and the base64 of the HMAC-SHA256, keyed with Secret, of webhook-id,
// webhook-timestamp and the body, joined by periods.
type Webhook struct {
	// URL is the address to POST to. Required.
	URL string
	// Secret is the key of the HMAC. Required, except for FormatSlack, whose URL is the secret.
	Secret []byte
	// Format is FormatJSON or FormatSlack. Default: FormatJSON.
	Format string
}

// WebhookSecret reads the file of a secret: plain text, or base64 after the prefix whsec_, the format of Standard
// Webhooks.
func WebhookSecret(file []byte) ([]byte, error) {
	file = bytes.TrimSpace(file)
	text, encoded := strings.CutPrefix(string(file), "whsec_")
	if !encoded {
		return file, nil
	}
	secret, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("expected base64 after whsec_")
	}
	return secret, nil
}

// Validate returns an error if the webhook cannot be used.
func (w Webhook) Validate() error {
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("expected a URL such as https://hooks.example.com/approvals")
	}
	switch w.Format {
	case "", FormatJSON:
		const least = 16
		if len(w.Secret) < least {
			return fmt.Errorf("the secret has %s: expected %d or more", clip.Count(len(w.Secret), "byte"), least)
		}
	case FormatSlack:
	default:
		return fmt.Errorf("format %q: expected %s or %s", w.Format, FormatJSON, FormatSlack)
	}
	return nil
}

// Limits of sending.
const (
	maxUnsent   = 256
	sendTime    = 10 * time.Second
	sendTries   = 4
	firstPause  = time.Second
	maxSlackArg = 2000
)

// sender sends the messages of a webhook one by one.
type sender struct {
	hook   Webhook
	link   func(page string) string
	log    *slog.Logger
	client *retryablehttp.Client
	queue  chan v1.PendingCall
}

func newSender(w Webhook, link func(string) string, log *slog.Logger) *sender {
	return &sender{hook: w, link: link, log: log, queue: make(chan v1.PendingCall, maxUnsent), client: &retryablehttp.Client{
		HTTPClient: &http.Client{Timeout: sendTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		RetryMax:   sendTries - 1, RetryWaitMin: firstPause, CheckRetry: retryablehttp.DefaultRetryPolicy, ErrorHandler: retryablehttp.PassthroughErrorHandler,
		// Retry-After is ignored: it would hold up the messages behind this one.
		Backoff: func(first, _ time.Duration, tries int, _ *http.Response) time.Duration { return first << (2 * tries) },
	}}
}

// send queues the message about a call and never blocks.
func (s *sender) send(p v1.PendingCall) {
	select {
	case s.queue <- p:
	default:
		s.log.Error("the approval webhook is too far behind: it does not report a pending call", "id", p.ID, "tool", p.Tool)
	}
}

func (s *sender) run(ctx context.Context) {
	defer s.client.HTTPClient.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-s.queue:
			if err := s.deliver(ctx, p); err != nil && ctx.Err() == nil {
				s.log.Error("the approval webhook did not accept a pending call", "id", p.ID, "tool", p.Tool, "error", err.Error())
			}
		}
	}
}

// deliver sends a message, with a few retries.
func (s *sender) deliver(ctx context.Context, p v1.PendingCall) error {
	body, err := s.message(p)
	if err != nil {
		return err
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, s.hook.URL, body)
	if err != nil {
		return errors.New("the address cannot be read")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "toolctl")
	if len(s.hook.Secret) > 0 {
		id, at := "approval_"+p.ID, strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, s.hook.Secret)
		fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
		req.Header.Set("Webhook-Id", id)
		req.Header.Set("Webhook-Timestamp", at)
		req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	res, err := s.client.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok { // its address may hold a secret
			err = of.Err
		}
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode >= 300 {
		return fmt.Errorf("the server responded with status %d", res.StatusCode)
	}
	return nil
}

// message returns the message about a call: what approvers see, with secrets masked.
func (s *sender) message(p v1.PendingCall) ([]byte, error) {
	at := s.link("approvals/" + p.ID)
	if s.hook.Format != FormatSlack {
		return json.Marshal(map[string]any{
			"type": "approval.pending", "timestamp": p.Created, "data": struct {
				approvalView
				URL string `json:"url,omitempty"`
			}{viewPending(&p, p.Created), at},
		})
	}
	who := cmp.Or(p.Principal, "An anonymous caller")
	text := fmt.Sprintf("%s wants to call %s/%s", who, p.Namespace, p.Tool)
	args := clipped(wholeText(p.Args), maxSlackArg)
	section := func(text string) map[string]any {
		return map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text}}
	}
	blocks := []any{section("*" + slackText(text) + "*\nPolicy " + slackText(p.Policy) + ", until " + p.Expires.UTC().Format("2006-01-02 15:04 MST")), section("```" + slackText(strings.ReplaceAll(args, "`", "'")) + "```")}
	if at != "" {
		blocks = append(blocks, map[string]any{"type": "actions", "elements": []any{map[string]any{
			"type": "button", "text": map[string]any{"type": "plain_text", "text": "Decide"}, "url": at,
		}}})
	}
	return json.Marshal(map[string]any{"text": slackText(text) + ": " + at, "blocks": blocks})
}

// slackText escapes the markup characters of Slack.
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(inspect.Show(s))
}
