package vendors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
	"gateway/shared/wire/mask"
)

// maxResponse is the size limit of a vendor's response in bytes.
const maxResponse = 20 << 20

// query makes one call and reads its response into the run, which records the first error.
func (r *run) query(ctx context.Context, part int, text string) {
	a := &vendorCall{run: r, part: part, text: text}
	raw, err := a.call(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		err = r.read(a, raw)
	}
	switch {
	case err == nil:
		r.answered = true
	case r.err == nil || err.Answered && !r.err.FailsClosed():
		r.err = err
	}
}

// read passes a response to the wire's function.
func (r *run) read(a *vendorCall, raw []byte) *judge.Failure {
	bad := false
	resp := response{bad: &bad}
	if json.Unmarshal(raw, &resp.v) != nil {
		return r.noVerdict("returned a response that is not JSON")
	}
	failed, findings, texts, body := r.failed, r.findings, slices.Clone(r.texts), r.body
	if r.judge(a, resp); bad {
		r.failed, r.findings, r.texts, r.body = failed, findings, texts, body
		return r.noVerdict("returned a response of an unknown format")
	}
	return nil
}

// fails returns an error that names the vendor.
func (c *check) fails(name, format string, args ...any) *judge.Failure {
	return &judge.Failure{Name: name, Message: c.name + " " + fmt.Sprintf(format, args...)}
}

// noVerdict is fails for a vendor that responded.
func (c *check) noVerdict(format string, args ...any) *judge.Failure {
	f := c.fails("VendorError", format, args...)
	f.Answered = true
	return f
}

// call sends the wire's request, and returns the response if its status is a success.
func (a *vendorCall) call(ctx context.Context) ([]byte, *judge.Failure) {
	req, body, err := a.request(ctx)
	if err != nil {
		return nil, err
	}
	key := a.circuit(req)
	if !a.run.breakers.allow(key) {
		return nil, a.run.fails("VendorDown", "has not responded recently and was not called")
	}
	if a.run.sign != nil {
		if err := a.run.sign(ctx, a, req, body); err != nil {
			a.run.breakers.record(key, fault.From(err).StatusCode >= 500)
			return nil, a.run.fails(judge.CredentialsError, "was not called: %s", fault.From(err).Message)
		}
	}
	resp, failed := a.run.s.Client.Do(req)
	if failed != nil {
		return nil, a.unanswered(ctx, key, failed, "cannot be reached")
	}
	defer resp.Body.Close()
	raw, failed := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if failed != nil {
		return nil, a.unanswered(ctx, key, failed, "sent a truncated response")
	}
	a.run.breakers.record(key, resp.StatusCode >= 500)
	mask.Bytes(raw, provider.HeaderSecrets(nil, req.Header, a.run.forward, nil))
	switch {
	case !judge.IsServiceStatus(resp.StatusCode):
		return nil, a.run.fails("VendorError", "responded with the status %d", resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, a.run.noVerdict("responded with the status %d", resp.StatusCode)
	case len(raw) > maxResponse:
		return nil, a.run.noVerdict("returned a response of more than %d bytes", maxResponse)
	}
	return raw, nil
}

// unanswered returns the error of a call without a response. If the request itself was ended,
// that does not count against the vendor.
func (a *vendorCall) unanswered(ctx context.Context, key [32]byte, err error, why string) *judge.Failure {
	var slow net.Error // a dialer may time out before the context does
	late := context.Cause(ctx) == context.DeadlineExceeded || ctx.Err() == nil && errors.As(err, &slow) && slow.Timeout()
	if late || ctx.Err() == nil {
		a.run.breakers.record(key, true)
	}
	switch {
	case late:
		return a.run.fails("TimeoutError", "did not respond within %d ms", a.run.timeout.Milliseconds())
	case egress.IsBlocked(err):
		return a.run.fails("VendorError", "has an address that must not be called")
	}
	return a.run.fails("VendorError", "%s", why)
}

// circuit identifies the breaker of a request: its address, its credential, and how long it
// waits.
func (a *vendorCall) circuit(req *http.Request) [32]byte {
	creds, _ := json.Marshal(a.run.creds)
	return sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s\n%s", a.run.timeout, a.run.vendor(), req.URL.Host, creds))
}

func (w *row) vendor() string { v, _, _ := strings.Cut(w.id, "."); return v }

// request returns the request of the wire.
func (a *vendorCall) request(ctx context.Context) (*http.Request, []byte, *judge.Failure) {
	address, err := a.address(a.run.url)
	if err != nil {
		return nil, nil, err
	}
	template := a.run.bodies[0]
	if a.run.afterResponse() {
		template = a.run.bodies[1]
	}
	body, wrong := json.Marshal(a.fill(template))
	kind := "application/json"
	if a.run.form != nil {
		body, kind = a.run.form(a), "application/x-www-form-urlencoded"
	}
	u, odd := provider.ExactURL(address)
	if wrong != nil || odd != nil || a.run.s.Client == nil {
		return nil, nil, a.run.fails("VendorError", "has an address that cannot be called")
	}
	req, wrong := http.NewRequestWithContext(ctx, http.MethodPost, u.Scheme+"://"+u.Host, bytes.NewReader(body))
	if wrong != nil {
		return nil, nil, a.run.fails("VendorError", "has an address that cannot be called")
	}
	req.URL = u
	a.run.s.Forward(req.Header, a.run.forward)
	for line := range strings.Lines(a.run.header) {
		name, template, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		value, err := a.expand(template, plain)
		switch {
		case err != nil && strings.HasSuffix(template, "?}"):
			continue
		case err != nil:
			return nil, nil, err
		case !egress.ValidHeaderValue(value):
			return nil, nil, a.run.fails(judge.CredentialsError, "was not called: the value of the header %s must not contain line breaks", name)
		}
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	return req, body, nil
}

// Limits of breakers.
const (
	tripsAt     = 3 // consecutive outages
	restsFor    = 30 * time.Second
	maxCircuits = 4096
)

// breakers prevent vendors with outages from delaying every request. There is one for each
// address, credential and timeout, so that one customer's settings cannot block a vendor for
// others. When there are too many, all are dropped.
type breakers struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[[32]byte]*circuit
}

// circuit counts consecutive outages. After too many it opens for a while and no request calls
// the vendor. Then one request calls, and the others wait for its result.
type circuit struct {
	outages int
	until   time.Time // no calls until then
}

// allow reports whether the vendor may be called.
func (b *breakers) allow(key [32]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.known[key]
	if c == nil || c.outages < tripsAt {
		return true
	}
	now := b.now()
	if now.Before(c.until) {
		return false
	}
	c.until = now.Add(restsFor) // blocks the others during this attempt
	return true
}

// record records the result of a call.
func (b *breakers) record(key [32]byte, outage bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.known[key]
	switch {
	case !outage:
		delete(b.known, key)
		return
	case c == nil:
		if len(b.known) >= maxCircuits {
			clear(b.known)
		}
		c = &circuit{}
		b.known[key] = c
	}
	if c.outages++; c.outages >= tripsAt {
		c.until = b.now().Add(restsFor)
	}
}
