package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"toolctl.dev/toolctl/internal/clip"
)

// Bounds of one request.
const (
	maxAnswer     = 16 << 20 // bytes
	maxError      = 4 << 10  // bytes that are read of an error response
	maxDimensions = 8192
)

// endpoint is an HTTP endpoint of the form of OpenAI's /v1/embeddings.
type endpoint struct {
	url        *url.URL
	model, key string
	http       *retryablehttp.Client
}

func newEndpoint(o Options) (*endpoint, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("expected an address such as http://localhost:11434/v1/embeddings")
	}
	switch strings.TrimSuffix(u.Path, "/") {
	case "":
		u = u.JoinPath("v1/embeddings")
	case "/v1":
		u = u.JoinPath("embeddings")
	}
	client := &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &endpoint{u, o.Model, o.Key, &retryablehttp.Client{
		HTTPClient: client, RetryMax: 2, RetryWaitMin: 500 * time.Millisecond, RetryWaitMax: 8 * time.Second,
		CheckRetry: retryablehttp.DefaultRetryPolicy, Backoff: retryablehttp.DefaultBackoff, ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}}, nil
}

// embed returns the vectors of texts. All have the same number of dimensions.
func (e *endpoint) embed(ctx context.Context, timeout time.Duration, texts []string) ([]vector, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	vectors, err := e.post(within, texts)
	if err != nil && within.Err() != nil {
		err = fmt.Errorf("it did not answer within %s: %w", clip.Duration(timeout), within.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("the endpoint of embeddings at %s: %w", e.url.Host, err)
	}
	return vectors, nil
}

func (e *endpoint) post(ctx context.Context, texts []string) ([]vector, error) {
	body, err := json.Marshal(struct {
		Model string   `json:"model,omitempty"`
		Input []string `json:"input"`
	}{e.model, texts})
	if err != nil {
		return nil, err
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), body)
	if err != nil {
		return nil, errors.New("the request cannot be created")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "toolctl")
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	resp, err := e.http.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok { // its address may hold a secret
			err = of.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // a part of the message is better than none
		said := string(text)
		if e.key != "" {
			said = strings.ReplaceAll(said, e.key, "***")
		}
		return nil, fmt.Errorf("it answers with status %d: %s", resp.StatusCode, clip.Words(said, 200))
	}
	return readVectors(http.MaxBytesReader(nil, resp.Body, maxAnswer), len(texts))
}

// readVectors reads a response, which must have n vectors.
func readVectors(r io.Reader, n int) ([]vector, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if len(answer.Data) != n {
		return nil, fmt.Errorf("it returns %s for %s", clip.Count(len(answer.Data), "vector"), clip.Count(n, "text"))
	}
	vectors := make([]vector, n)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= n || vectors[d.Index].values != nil {
			return nil, fmt.Errorf("it returns a vector for text %d, which is not one of %d or has one already", d.Index, n)
		}
		if first := answer.Data[0].Embedding; len(d.Embedding) != len(first) {
			return nil, fmt.Errorf("it returns vectors of %d and %d dimensions", len(first), len(d.Embedding))
		}
		var err error
		if vectors[d.Index], err = quantize(d.Embedding); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}
