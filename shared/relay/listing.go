package relay

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
)

// list serves a Listing route.
func list(c *call, own func(*routes.Caller) ([]byte, error)) error {
	// Clients with Anthropic's dialect wait three seconds for a list: it is not fetched if the
	// gateway has one.
	anthropic := admission.SingleHeader(c.req.Req.Header, "Anthropic-Version") != ""
	google := routes.GoogleClient(c.req.Req.Header)
	model, err := url.PathUnescape(c.req.PathID)
	if err != nil {
		return fault.Invalid("model", "the path has a percent sign without two hexadecimal digits")
	}
	lists := !c.plan.Routed() || strings.HasPrefix(model, "@") || anthropic && c.plan.SlugsOfRoute() != nil || admission.SingleHeader(c.req.Req.Header, "X-Gateway-Fetch-Integrated-Models") == "true" || c.plan.Walker.FetchIntegrated()
	if !lists {
		return relay(c)
	}
	caller := &routes.Caller{Context: c.req.Ctx, Scope: c.req.Who.Scope, View: c.req.View, Query: c.req.Req.URL.Query(), Anthropic: anthropic, Google: google, Model: model}
	if c.plan.Routed() && !strings.HasPrefix(model, "@") {
		caller.Slugs = c.plan.SlugsOfRoute()
	}
	body, err := own(caller)
	if err != nil {
		return err
	}
	sendJSON(c, body, nil)
	return nil
}

// sendJSON sends a body created by the gateway.
func sendJSON(c *call, body []byte, from http.Header) {
	h := c.reply.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	answerHeaders(c, from)
	sendWhole(c, http.StatusOK, body)
}

// sendHidden is sendJSON with another body for the log.
func sendHidden(c *call, body, shown []byte) {
	h := c.reply.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	ownHeaders(c, h)
	c.log.Body(record.Response, shown)
	c.log.Status(http.StatusOK)
	keepBooks(c)
	c.reply.head(http.StatusOK)
	c.reply.write(body)
}

// sendWhole sends a response after its headers are set, once it is recorded.
func sendWhole(c *call, status int, out []byte) {
	c.log.Body(record.Response, out)
	c.log.Status(status)
	keepBooks(c)
	c.reply.head(status)
	c.reply.write(out)
}

// sendList sends a provider's list of models in the OpenAI format.
func sendList(c *call, resp *http.Response) error {
	buf := buffer.New()
	defer buf.Free()
	if err := readWhole(&c.req, buf, resp, maxPlainAnswer); err != nil {
		return brokenAnswer(c, err, buf.B)
	}
	var out []byte
	var err error
	switch p := c.target.To.Target.Provider; {
	case c.target.ListsAsGoogle():
		out = bytes.Clone(buf.B)
	case routes.GoogleClient(c.req.Req.Header):
		out, err = GoogleModels(buf.B, p, c.req.PathID)
	default:
		out, err = OpenAIModels(buf.B, p)
	}
	if fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil {
		return unusable(&c.target, &c.bill, &c.log, &c.mask, err, buf.B)
	}
	sendJSON(c, out, resp.Header)
	return nil
}
