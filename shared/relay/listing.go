package relay

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
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
	lists := !c.plan.Routed() || strings.HasPrefix(model, "@") || anthropic && c.plan.SlugsOfRoute() != nil || admission.SingleHeader(c.req.Req.Header, "X-Gateway-Fetch-Integrated-Models") == "true" || c.plan.Traversal.FetchIntegrated()
	if !lists {
		return relay(c)
	}
	caller := &routes.Caller{Context: c.req.Ctx, Scope: c.req.Principal.Scope, View: c.req.View, Query: c.req.Req.URL.Query(), Anthropic: anthropic, Google: google, Model: model}
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
	setResponseHeaders(c, from)
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
	settleAndRecord(c)
	c.reply.head(http.StatusOK)
	c.reply.write(body)
}

// sendWhole sends a response after its headers are set, once it is recorded.
func sendWhole(c *call, status int, out []byte) {
	c.log.Body(record.Response, out)
	c.log.Status(status)
	settleAndRecord(c)
	c.reply.head(status)
	c.reply.write(out)
}

// sendList sends a provider's list of models in the OpenAI format.
func sendList(c *call, resp *http.Response) error {
	buf := buffer.New()
	defer buf.Free()
	if err := readWhole(&c.req, buf, resp, maxPlainResponse); err != nil {
		return brokenResponse(c, err, buf.B)
	}
	var out []byte
	var err error
	switch p := c.target.Choice.Target.Provider; {
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

// resourceName starts the names of models that are resources.
var resourceName = []byte(`"models/`)

// OpenAIModels converts a list of models to the OpenAI format. Providers list them under data or
// models, as objects with an id or a name, or as plain objects. Their further fields are kept, since
// the provider's own clients require them.
func OpenAIModels(body []byte, p *provider.Provider) ([]byte, error) {
	listed, err := modelsIn(body, p)
	if err != nil {
		return nil, err
	}
	out := []byte(`{"object":"list","data":[`)
	for i, m := range listed {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"id":`...)
		out = append(out, m["id"]...)
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
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if name != "id" && name != "object" && name != "created" && name != "owned_by" {
				out = append(wire.AppendJSONString(append(out, ','), name), ':')
				out = append(out, m[name]...)
			}
		}
		out = append(out, '}')
	}
	out = append(out, `],"provider":`...)
	out = wire.AppendJSONString(out, p.ID)
	return append(out, '}'), nil
}

// modelsIn returns the entries of a provider's list that have an id or a name, each with its id.
func modelsIn(body []byte, p *provider.Provider) ([]map[string]json.RawMessage, error) {
	var in struct {
		Data   []map[string]json.RawMessage `json:"data"`
		Models []map[string]json.RawMessage `json:"models"`
	}
	err := json.Unmarshal(body, &in)
	if err != nil {
		err = json.Unmarshal(body, &in.Data) // some providers return a bare array
	}
	if err != nil {
		return nil, fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", p.ID)
	}
	return slices.DeleteFunc(append(in.Data, in.Models...), func(m map[string]json.RawMessage) bool {
		if m["id"] != nil {
			return false
		}
		id := m["name"]
		if id == nil {
			return true
		}
		if bytes.HasPrefix(id, resourceName) {
			id = append([]byte{'"'}, id[len(resourceName):]...)
		}
		m["id"] = id
		return false
	}), nil
}

// GoogleModels converts a list of models to Google's format, or, if the path names one, that model
// of the list.
func GoogleModels(body []byte, p *provider.Provider, path string) ([]byte, error) {
	listed, err := modelsIn(body, p)
	if err != nil {
		return nil, err
	}
	want, err := url.PathUnescape(path)
	if err != nil {
		return nil, fault.Invalid("model", "the path has a percent sign without two hexadecimal digits")
	}
	out := []byte(`{"models":[`)
	for i, m := range listed {
		var id string
		if err := json.Unmarshal(m["id"], &id); err != nil {
			return nil, fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", p.ID)
		}
		if want != "" {
			if id == want {
				return AppendGoogleModel(nil, p.ID, id, id), nil
			}
			continue
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendGoogleModel(out, p.ID, id, id)
	}
	if want != "" {
		return nil, NoModel(want)
	}
	return append(out, `]}`...), nil
}

// NoModel is the fault of a model that no list has.
func NoModel(id string) error {
	return fault.Newf(fault.NotFound, "model", "models/%s is not in the list of models; GET /v1/models lists them", id)
}

// AppendGoogleModel appends a model in Google's format: id is its name for clients, name that of
// the provider.
func AppendGoogleModel(out []byte, provider, id, name string) []byte {
	out = wire.AppendJSONString(append(out, `{"name":`...), "models/"+id)
	out = wire.AppendJSONString(append(out, `,"displayName":`...), name)
	if k := modelmeta.Of(provider, name); k != nil {
		if k.Window > 0 {
			out = strconv.AppendInt(append(out, `,"inputTokenLimit":`...), k.Window, 10)
		}
		if k.Output > 0 {
			out = strconv.AppendInt(append(out, `,"outputTokenLimit":`...), k.Output, 10)
		}
	}
	if strings.Contains(name, "embed") {
		return append(out, `,"supportedGenerationMethods":["embedContent"]}`...)
	}
	return append(out, `,"supportedGenerationMethods":["generateContent","countTokens"]}`...)
}

// respondHere responds on behalf of the provider.
func respondHere(q *admission.Request, in *body.Body) targetResult {
	body, err := q.Route.Local(in.In)
	if err != nil {
		return rejection(err)
	}
	return targetResult{resp: &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}}
}
