package relay

import (
	"net/http"
	"strconv"

	"gateway/shared/relay/asked"
	"gateway/shared/relay/modellist"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
)

// list answers a Listing route.
func (c *call) list() error {
	// Clients of Anthropic's shape wait three seconds for a list: it is not asked for
	// where the gateway knows one.
	anthropic := asked.One(c.Req.Header, "Anthropic-Version") != ""
	own := !c.Routed() || anthropic && c.SlugsOfRoute() != nil || asked.One(c.Req.Header, "X-Gateway-Fetch-Integrated-Models") == "true" || c.Walker.FetchIntegrated()
	if !own {
		return c.relay()
	}
	caller := &routes.Caller{Context: c.Ctx, Scope: c.Who.Scope, View: c.View, Query: c.Req.URL.Query(), Anthropic: anthropic}
	if c.Routed() {
		caller.Slugs = c.SlugsOfRoute()
	}
	body, err := c.Route.List(caller)
	if err != nil {
		return err
	}
	c.sendJSON(body, nil)
	return nil
}

// sendJSON answers with a body of the gateway's own.
func (s *sender) sendJSON(body []byte, from http.Header) {
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	s.answerHeaders(from)
	s.sendWhole(http.StatusOK, body)
}

// sendHidden is sendJSON with what the log shows of the body.
func (s *sender) sendHidden(body, shown []byte) {
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	s.ownHeaders(h)
	s.captureAnswer(shown)
	s.status = http.StatusOK
	s.keepBooks()
	s.head(http.StatusOK)
	s.write(body)
}

// sendWhole sends an answer whose headers are set, once it is in the books.
func (s *sender) sendWhole(status int, out []byte) {
	s.captureAnswer(out)
	s.status = status
	s.keepBooks()
	s.head(status)
	s.write(out)
}

// sendList answers with a provider's list of models in the OpenAI shape.
func (s *sender) sendList(resp *http.Response) error {
	buf := pooled.New()
	defer buf.Free()
	if err := s.readWhole(buf, resp, maxPlainAnswer); err != nil {
		return s.brokenAnswer(err, buf.B)
	}
	out, err := modellist.OpenAI(buf.B, s.To.Target.Provider)
	if err != nil {
		return s.unusable(err, buf.B)
	}
	s.sendJSON(out, resp.Header)
	return nil
}
