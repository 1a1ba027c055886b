package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"gateway/shared/a2a"
	"gateway/shared/a2a/wireformat"
	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire/mask"
)

// Bounds of what agents say, in bytes.
const (
	maxAnswer = 20 << 20
	maxEvent  = 10 << 20
)

// upstreamOf is how the agent of a visit is called.
type upstreamOf struct {
	at      a2a.Interface
	headers http.Header
	// secrets are the credentials in headers. Agents repeat them in errors, cards and results,
	// so they are redacted from everything that is read.
	secrets []string
	// same tells that the agent speaks the client's version and binding, so that what the
	// client sent goes out as it came.
	same bool
}

func (u *upstreamOf) rest() bool              { return u.at.Binding == a2a.REST }
func (u *upstreamOf) shape() wireformat.Shape { return shapeOf(u.at.Old, u.rest()) }

func decimal(n int) string { return strconv.Itoa(n) }

// pick chooses the interface of the agent that is nearest to what the client speaks.
// Interfaces at the registered host are preferred, because only they get the credentials.
func pick(v *visit) error {
	card, err := cardOf(v)
	if err != nil {
		card = nil // an agent without a card is called all the same
	}
	q, best, most := v.req, a2a.Interface{}, -1
	for _, i := range a2a.Interfaces(card, v.facts.Integration.URL) {
		if q.tenant != i.Tenant && q.tenant != "" {
			continue
		}
		points := 0
		for _, of := range [...]struct {
			yes    bool
			weight int
		}{{i.Own, 8}, {i.Tenant == q.tenant, 4}, {i.Old == q.old, 2}, {(i.Binding == a2a.REST) == q.rest, 1}} {
			if of.yes {
				points += of.weight
			}
		}
		if q.op.custom && (i.Old != q.old || i.Binding != a2a.JSONRPC) {
			continue // an unknown method cannot be translated
		}
		if points > most {
			best, most = i, points
		}
	}
	switch {
	case most < 0 && q.tenant != "":
		return refuse(codeParams, "tenant is none of the agent's card")
	case most < 0 && q.op.custom:
		return refuse(codeMethod, "the method is not known, and the agent does not speak the request's version in JSON-RPC")
	case most < 0:
		return refuse(codeNotServed, "the agent's card names no interface that can be called from here: JSON-RPC or HTTP+JSON")
	}
	v.up = &upstreamOf{at: best, same: best.Old == q.old && (best.Binding == a2a.REST) == q.rest && best.Tenant == q.tenant}
	return open(v)
}

// open makes the headers of the call.
func open(v *visit) error {
	of := v.facts.Integration.Record
	i, own, err := v.host.opener.Open(v.call.Context, of, v.facts.Server.Record.Scope)
	if err != nil {
		return err
	}
	h := http.Header{}
	v.up.secrets = provider.HeaderSecrets(nil, own, nil, provider.MappedHeaders(i.SecretMappings))
	var client []string
	if v.up.at.Own {
		if conf, err := i.Configuration(nil); err == nil && conf.ForwardHeaders != nil {
			conf.ForwardHeaders.Copy(h, v.call.Forwards())
			client = slices.Collect(maps.Keys(h))
			v.up.secrets = provider.HeaderSecrets(v.up.secrets, h, client, nil)
		}
		if trace := v.call.Trace(""); trace != "" {
			h.Set("Traceparent", trace)
		}
		maps.Copy(h, own)
		client = slices.DeleteFunc(client, func(name string) bool { return own[name] != nil })
	}
	version := a2a.Version
	if v.up.at.Old {
		version = a2a.Older
	}
	h[headerVersion] = []string{version}
	for _, name := range []string{headerExtensions, headerOlder} {
		delete(h, name)
		if said := slices.Concat(v.call.Request.Header[headerExtensions], v.call.Request.Header[headerOlder]); len(said) > 0 && (name == headerOlder) == v.up.at.Old {
			h[name] = said
		}
	}
	egress.DropLookalikes(h, func(name string) bool { return slices.Contains(client, name) })
	v.up.headers = h
	return nil
}

// outgoing is the request to the agent.
type outgoing struct {
	method, url string
	body        []byte
	id          json.RawMessage // of JSON-RPC
}

func newOutgoing(v *visit) (*outgoing, error) {
	q, u := v.req, v.up
	if u.same && !u.rest() {
		return &outgoing{http.MethodPost, u.at.URL, v.call.Body, q.id}, nil
	}
	if q.op.custom {
		return outgoingRPC(v, q.raw)
	}
	params := maps.Clone(q.params)
	if delete(params, "tenant"); u.at.Tenant != "" && !u.rest() {
		params["tenant"] = u.at.Tenant
	}
	if u.rest() {
		return outgoingREST(v, params)
	}
	raw, err := json.Marshal(wireformat.Between(wireformat.V1, u.shape(), q.op.params, params))
	if err != nil {
		return nil, err
	}
	return outgoingRPC(v, raw)
}

func outgoingRPC(v *visit, params json.RawMessage) (*outgoing, error) {
	q := v.req
	method := q.op.method(v.up.at.Old)
	if method == "" {
		return nil, refuse(codeNotServed, "the agent's version of the protocol has no such operation in its binding")
	}
	id := q.id
	if id == nil && !q.op.custom {
		id = json.RawMessage(`"1"`)
	}
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id != nil {
		m["id"] = id
	}
	body, err := json.Marshal(m)
	return &outgoing{http.MethodPost, v.up.at.URL, body, id}, err
}

// outgoingREST moves the params that HTTP+JSON has in the path into the path.
func outgoingREST(v *visit, params wireformat.Object) (*outgoing, error) {
	q, u := v.req, v.up
	base := u.at.URL
	switch {
	case u.at.Old:
		base += "/v1"
	case u.at.Tenant != "":
		base += "/" + url.PathEscape(u.at.Tenant)
	}
	take := func(name string) string {
		s, _ := params[name].(string)
		delete(params, name)
		return url.PathEscape(s)
	}
	o := &outgoing{method: http.MethodGet}
	path := ""
	switch q.op {
	case opSend, opStream:
		o.method, path = http.MethodPost, "/message:send"
		if q.op == opStream {
			path = "/message:stream"
		}
	case opCard:
		if path = "/extendedAgentCard"; u.at.Old {
			path = "/card"
		}
	case opList:
		path = "/tasks"
	case opGet:
		path = "/tasks/" + take("id")
	case opCancel:
		o.method, path = http.MethodPost, "/tasks/"+take("id")+":cancel"
	case opSubscribe:
		o.method, path = http.MethodPost, "/tasks/"+take("id")+":subscribe"
	case opPushSet:
		o.method, path = http.MethodPost, "/tasks/"+url.PathEscape(textOf(params["taskId"]))+"/pushNotificationConfigs"
	case opPushList:
		path = "/tasks/" + take("taskId") + "/pushNotificationConfigs"
	case opPushGet, opPushDelete:
		if path = "/tasks/" + take("taskId") + "/pushNotificationConfigs/" + take("id"); q.op == opPushDelete {
			o.method = http.MethodDelete
		}
	}
	o.url = base + path
	switch {
	case q.op.sends || q.op == opPushSet:
		if u.same && q.op.sends {
			o.body = q.raw
			return o, nil
		}
		raw, err := json.Marshal(wireformat.Between(wireformat.V1, u.shape(), q.op.params, params))
		o.body = raw
		return o, err
	case o.method == http.MethodPost:
		o.body = []byte("{}")
	default:
		query := url.Values{}
		for name, p := range params {
			switch p := p.(type) {
			case string:
				query.Set(name, p)
			case json.Number:
				query.Set(name, p.String())
			case bool:
				query.Set(name, strconv.FormatBool(p))
			}
		}
		if len(query) > 0 {
			o.url += "?" + query.Encode()
		}
	}
	return o, nil
}

// patience ends a context when the agent has been silent for too long.
type patience struct {
	context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	long   time.Duration
}

func patient(ctx context.Context, d time.Duration) *patience {
	ctx, cancel := context.WithCancel(ctx)
	return &patience{ctx, cancel, time.AfterFunc(d, cancel), d}
}

func (p *patience) heard() { p.timer.Reset(p.long) }

func (p *patience) end() { p.timer.Stop(); p.cancel() }

// exchange asks the agent and answers the client.
func exchange(v *visit, o *outgoing) error {
	base := v.call.Context
	if v.req.op.streams {
		base = v.call.Request.Context() // a client that closes the stream wants no more of it
	}
	ctx := patient(base, v.host.Timeout)
	defer ctx.end()
	v.call.Began()
	resp, err := round(v, ctx, o)
	if err != nil {
		v.call.Ended(0)
		if ctx.Err() != nil && base.Err() == nil {
			err = upstream.Fail(0, "the agent did not answer in time")
		}
		return err
	}
	defer resp.Body.Close()
	v.call.Ended(resp.StatusCode)
	mask.Header(resp.Header, v.up.secrets)
	for _, name := range []string{headerExtensions, headerOlder} {
		if said := resp.Header[name]; len(said) > 0 {
			v.call.Header()[name] = said
		}
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // without a type it is not a stream
	if media == "text/event-stream" && resp.StatusCode == http.StatusOK {
		if !v.req.op.streams && !v.req.op.custom {
			return garbage(v, resp.StatusCode, "is a stream, which was not asked for")
		}
		return stream(v, ctx, resp.Body, o)
	}
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxAnswer))
	if err != nil {
		if ctx.Err() != nil && base.Err() == nil {
			return upstream.Fail(resp.StatusCode, "the agent did not answer in time")
		}
		return upstream.Fail(resp.StatusCode, "the agent's answer broke off, or has more than %d bytes", maxAnswer)
	}
	if limit := v.host.MaxResult; v.call.Buffered && limit > 0 && len(raw) > limit {
		return upstream.Fail(http.StatusOK, "the answer has more than %d bytes, which cannot be passed on from here: use the address of the long-running service", limit)
	}
	return answer(v, resp.StatusCode, raw, o)
}

// round makes the request. Where credentials of a secret manager are refused, they are read
// again and the request is made once more.
func round(v *visit, ctx context.Context, o *outgoing) (*http.Response, error) {
	resp, err := send(v, ctx, o)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	i := v.facts.Integration
	if len(i.SecretMappings) == 0 || v.call.Secrets == nil {
		return resp, nil
	}
	resp.Body.Close()
	v.call.Secrets.Doubt(ctx, v.facts.Server.Record.Scope, i.SecretMappings)
	v.note.Refreshed = true
	if err := open(v); err != nil {
		return nil, err
	}
	return send(v, ctx, o)
}

func send(v *visit, ctx context.Context, o *outgoing) (*http.Response, error) {
	var body io.Reader
	if o.body != nil {
		body = bytes.NewReader(o.body)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, o.url, body)
	if err != nil {
		return nil, upstream.Fail(0, "the agent's address cannot be called")
	}
	maps.Copy(req.Header, v.up.headers)
	req.Header.Set("Accept", "application/json")
	if v.req.op.streams || v.req.op.custom {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := v.call.Via.RoundTrip(req)
	if err != nil {
		var failed *upstream.Failure
		if errors.As(err, &failed) {
			return nil, failed
		}
		return nil, upstream.Unreachable("the agent", err)
	}
	if resp.StatusCode/100 == 3 {
		resp.Body.Close()
		return nil, upstream.Fail(resp.StatusCode, "the agent answers with a redirect, which is not followed")
	}
	return resp, nil
}
