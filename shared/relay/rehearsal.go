package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
)

// DryRunRequest is the body of a dry run: a request that goes through the pipeline without being
// sent.
type DryRunRequest struct {
	// Config is a config in JSON, or the id or slug of a saved one; if absent, the defaults of
	// the key and the workspace.
	Config  json.RawMessage   `json:"config"`
	Method  string            `json:"method"` // POST when empty
	Path    string            `json:"path"`   // below the base URL
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	// Assume are the statuses that the targets are assumed to return, in the order in which they
	// are called; 200 for those beyond it.
	Assume []int `json:"assume"`
}

// MaxDryRunTargets limits the targets of one response.
const MaxDryRunTargets = 100

// ReadDryRun reads and checks the body of a dry run.
func ReadDryRun(body []byte) (*DryRunRequest, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	q := &DryRunRequest{Method: http.MethodPost}
	if err := d.Decode(q); err != nil {
		return nil, fault.New(fault.InvalidRequest, "body", "must be an object of config, method, path, headers, body and assume, each with its documented type")
	}
	switch {
	case !strings.HasPrefix(q.Path, "/") || strings.ContainsAny(q.Path, " ?#\t\r\n") || len(q.Path) > 2048:
		return nil, fault.Invalid("path", "must be a path below the base URL, such as /chat/completions")
	case !slices.Contains([]string{"POST", "GET", "PUT", "DELETE"}, q.Method):
		return nil, fault.Invalid("method", "must be POST, GET, PUT or DELETE")
	case len(q.Assume) > MaxDryRunTargets:
		return nil, fault.Invalid("assume", "must have at most %d statuses", MaxDryRunTargets)
	case len(q.Headers) > 100:
		return nil, fault.Invalid("headers", "must have at most 100 fields")
	}
	for _, status := range q.Assume {
		if status < 200 || status > 599 {
			return nil, fault.Invalid("assume", "must hold statuses from 200 to 599")
		}
	}
	for name, value := range q.Headers {
		if !headerText(name) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fault.Invalid("headers", "must hold names and values of headers")
		}
	}
	return q, nil
}

func headerText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) })
}

// Brings reports whether the dry run contains an inline config.
func (q *DryRunRequest) Brings() bool {
	config := bytes.TrimSpace(q.Config)
	return len(config) > 0 && string(config) != "null"
}

// Imagined returns the request of the dry run: the caller's own, with the headers of the dry
// run.
func (q *DryRunRequest) Imagined(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, "http://gateway"+routes.BasePath+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return nil, fault.Invalid("path", "must be a path below the base URL, such as /chat/completions")
	}
	for name, value := range q.Headers {
		req.Header.Set(name, value)
	}
	if len(q.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	if q.Brings() {
		config := bytes.TrimSpace(q.Config)
		text := string(config)
		if config[0] == '"' {
			if json.Unmarshal(config, &text) != nil {
				return nil, fault.Invalid("config", "must be a config, or the id or slug of a saved one")
			}
		}
		req.Header[admission.Config] = []string{text}
	}
	return req, nil
}

// orEmpty returns an empty list instead of nil.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// ErrUnsent discards the response.
type ErrUnsent struct{}

func (ErrUnsent) Header() http.Header { return http.Header{} }

func (ErrUnsent) Write(p []byte) (int, error) { return io.Discard.Write(p) }

func (ErrUnsent) WriteHeader(int) {}
