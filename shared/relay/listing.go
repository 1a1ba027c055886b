package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/pooled"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// Caller is what a Listing route knows of its request.
type Caller struct {
	Context context.Context
	Scope   store.Scope
	View    *resource.View
	Query   url.Values
	Slugs   []string // saved providers that the request's route is limited to; nil: all
}

// routed tells whether the request names a provider or a config, so that its
// list is wanted and not the gateway's own.
func (p *plan) routed() bool {
	return p.ask.Provider != "" || p.ask.VirtualKey != "" || p.config.ID != "" || p.ask.Config != ""
}

// list answers a Listing route.
func (c *call) list() error {
	own := !c.routed() || asked.One(c.req.Header, "X-Gateway-Fetch-Integrated-Models") == "true" || c.walker.FetchIntegrated()
	if !own {
		return c.relay()
	}
	caller := &Caller{Context: c.ctx, Scope: c.who.Scope, View: c.view, Query: c.req.URL.Query()}
	if c.routed() {
		caller.Slugs = c.slugsOfRoute()
	}
	body, err := c.rt.List(caller)
	if err != nil {
		return err
	}
	c.sendJSON(body, nil)
	return nil
}

// slugsOfRoute are the saved providers that the route's leaves name; nil when a
// leaf takes its provider from the request and the request names none.
func (p *plan) slugsOfRoute() []string {
	slugs := p.walker.Slugs()
	if s := p.slugAsked(&route.Leaf{}); s != "" {
		slugs = append(slugs, s)
	}
	return slugs
}

// sendJSON answers with a body of the gateway's own.
func (s *sender) sendJSON(body []byte, from http.Header) {
	s.captureAnswer(body)
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	s.answerHeaders(from)
	s.status = http.StatusOK
	s.keepBooks()
	s.head(http.StatusOK)
	s.write(body)
}

// sendList answers with a provider's list of models in the OpenAI shape.
func (s *sender) sendList(resp *http.Response) error {
	buf := pooled.New()
	defer buf.Free()
	if err := s.readWhole(buf, resp, maxPlainAnswer); err != nil {
		return s.brokenAnswer(err, buf.B)
	}
	out, err := openAIModels(buf.B, s.to.target.Provider)
	if err != nil {
		return s.unusable(err, buf.B)
	}
	s.sendJSON(out, resp.Header)
	return nil
}

// resourceName begins the names of models where they are resources.
var resourceName = []byte(`"models/`)

// openAIModels turns a list of models into the OpenAI shape. Providers list them
// under data or models, as objects with an id or a name, or as plain objects.
func openAIModels(body []byte, p *provider.Provider) ([]byte, error) {
	var in struct {
		Data   []map[string]json.RawMessage `json:"data"`
		Models []map[string]json.RawMessage `json:"models"`
	}
	err := json.Unmarshal(body, &in)
	if err != nil {
		err = json.Unmarshal(body, &in.Data) // some answer a bare array
	}
	if err != nil {
		return nil, fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", p.ID)
	}
	out := []byte(`{"object":"list","data":[`)
	for i, m := range append(in.Data, in.Models...) {
		id := m["id"]
		if id == nil {
			if id = m["name"]; bytes.HasPrefix(id, resourceName) {
				id = append([]byte{'"'}, id[len(resourceName):]...)
			}
		}
		if id == nil {
			continue
		}
		if out[len(out)-1] != '[' && i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"id":`...)
		out = append(out, id...)
		out = append(out, `,"object":"model","created":`...)
		if n, err := wire.ScanInt(m["created"], "created"); len(m["created"]) > 0 && err == nil {
			out = strconv.AppendInt(out, n, 10)
		} else {
			out = append(out, '0')
		}
		out = append(out, `,"owned_by":`...)
		if owner := m["owned_by"]; wire.KindOf(owner) == wire.KindString {
			out = append(out, owner...)
		} else {
			out = wire.AppendJSONString(out, p.ID)
		}
		out = append(out, '}')
	}
	out = append(out, `],"provider":`...)
	out = wire.AppendJSONString(out, p.ID)
	return append(out, '}'), nil
}
