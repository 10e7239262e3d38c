package redact

import "testing"

func TestWritten(t *testing.T) {
	for text, want := range map[string]string{
		"refund an order": "refund an order",
		"with ghp_0123456789abcdef and AKIA0123456789ABCDEF": "with [REDACTED] and [REDACTED]",
		"Authorization: Bearer abcdefghijklmnop123!":         "Authorization: [REDACTED]!",
		"-----BEGIN PRIVATE KEY-----\nMIIB":                  "[REDACTED]",
	} {
		if got := Written(text); got != want {
			t.Errorf("Written(%q) = %q, want %q", text, got, want)
		}
	}
}
