package egress

import (
	"io"
	"net/http"

	"gateway/shared/fault"
)

// Cap bounds a response's body to p.MaxResponse bytes. A body that announces more is
// closed and rejected at once. If a body turns out longer, the read that passes the bound
// fails. Both errors are a 502 fault, invalid_provider_response. Cap does nothing when
// MaxResponse is 0.
func (p *Policy) Cap(resp *http.Response) error {
	if p.MaxResponse <= 0 {
		return nil
	}
	if resp.ContentLength > p.MaxResponse {
		resp.Body.Close()
		return tooLarge(p.MaxResponse)
	}
	resp.Body = CapBody(resp.Body, p.MaxResponse)
	return nil
}

// CapBody passes up to max bytes of body, then fails with the fault of Cap.
func CapBody(body io.ReadCloser, max int64) io.ReadCloser {
	return &capped{body: body, left: max, max: max}
}

func tooLarge(max int64) error {
	return fault.Newf(fault.InvalidProviderResponse, "", "The host's answer is larger than the %d bytes allowed", max)
}

type capped struct {
	body      io.ReadCloser
	left, max int64
}

func (c *capped) Read(b []byte) (int, error) {
	if c.left < 0 {
		return 0, tooLarge(c.max)
	}
	if int64(len(b)) > c.left+1 {
		b = b[:c.left+1] // one more than allowed distinguishes "full" from "too large"
	}
	n, err := c.body.Read(b)
	c.left -= int64(n)
	if c.left < 0 {
		return n - 1, tooLarge(c.max)
	}
	return n, err
}

func (c *capped) Close() error { return c.body.Close() }
