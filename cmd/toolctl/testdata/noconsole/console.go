// Package console has no console: TestSize builds the program with it in the place of
// toolctl.dev/toolctl/pkg/console, to see what that adds.
package console

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/registry"
)

type Options struct {
	Login         string
	Webhook       *Webhook
	URL           string
	Operators     v1.Approvers
	TestReport    string
	MeterProvider metric.MeterProvider
	Logger        *slog.Logger
	Now           func() time.Time
}
type Console struct{}

const (
	FormatJSON  = "json"
	FormatSlack = "slack"
)

type Webhook struct {
	URL    string
	Secret []byte
	Format string
}

func (w Webhook) Validate() error              { return nil }
func WebhookSecret([]byte) ([]byte, error)     { return nil, nil }
func New(o Options) *Console                   { return &Console{} }
func (c *Console) Called(e registry.CallEvent) {}
func (c *Console) Waits(p v1.PendingCall)      {}
func (c *Console) Attach(g *gateway.Gateway)   {}
func (c *Console) Listening(url string)        {}
func (c *Console) Link(at string) string       { return at }
func (c *Console) Close() error                { return nil }
