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

// Size limits of agent responses in bytes.
const (
	maxResponse = 20 << 20
	maxEvent    = 10 << 20
)

// agentRoute describes how the agent is called.
type agentRoute struct {
	iface   a2a.Interface
	headers http.Header
	// secrets are the credentials in headers. Agents echo them in errors, cards and results, so
	// they are redacted from everything that is read.
	secrets []string
	// verbatim is set if the agent uses the client's version and binding, so that the request
	// is forwarded verbatim.
	verbatim bool
}

func (u *agentRoute) rest() bool                { return u.iface.Binding == a2a.REST }
func (u *agentRoute) format() wireformat.Format { return formatOf(u.iface.Old, u.rest()) }

func decimal(n int) string { return strconv.Itoa(n) }

// selectInterface selects the agent's interface that is closest to the client's version and
// binding. It prefers interfaces on the registered host, because only that host gets the
// credentials.
func selectInterface(v *requestState) error {
	card, err := cardOf(v)
	if err != nil {
		card = nil // an agent without a card is called anyway
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
		}{{i.SameHost, 8}, {i.Tenant == q.tenant, 4}, {i.Old == q.old, 2}, {(i.Binding == a2a.REST) == q.rest, 1}} {
			if of.yes {
				points += of.weight
			}
		}
		if q.op.custom && (i.Old != q.old || i.Binding != a2a.JSONRPC) {
			continue // an unknown method cannot be converted
		}
		if points > most {
			best, most = i, points
		}
	}
	switch {
	case most < 0 && q.tenant != "":
		return newError(codeParams, "tenant is not in the agent's card")
	case most < 0 && q.op.custom:
		return newError(codeMethod, "the method is unknown, and the agent does not support the request's version in JSON-RPC")
	case most < 0:
		return newError(codeNotServed, "the agent's card has no supported interface: JSON-RPC or HTTP+JSON")
	}
	v.agent = &agentRoute{iface: best, verbatim: best.Old == q.old && (best.Binding == a2a.REST) == q.rest && best.Tenant == q.tenant}
	return setHeaders(v)
}

// setHeaders sets the headers of the call.
func setHeaders(v *requestState) error {
	of := v.facts.Integration.Record
	i, own, err := v.host.opener.Open(v.call.Context, of, v.facts.Server.Record.Scope)
	if err != nil {
		return err
	}
	h := http.Header{}
	v.agent.secrets = provider.HeaderSecrets(nil, own, nil, provider.MappedHeaders(i.SecretMappings))
	var client []string
	if v.agent.iface.SameHost {
		if conf, err := i.Configuration(nil); err == nil && conf.ForwardHeaders != nil {
			conf.ForwardHeaders.Copy(h, v.call.Forwards())
			client = slices.Collect(maps.Keys(h))
			v.agent.secrets = provider.HeaderSecrets(v.agent.secrets, h, client, nil)
		}
		if trace := v.call.Trace(""); trace != "" {
			h.Set("Traceparent", trace)
		}
		maps.Copy(h, own)
		client = slices.DeleteFunc(client, func(name string) bool { return own[name] != nil })
	}
	version := a2a.Version
	if v.agent.iface.Old {
		version = a2a.OldVersion
	}
	h[headerVersion] = []string{version}
	for _, name := range []string{headerExtensions, headerOlder} {
		delete(h, name)
		if extensions := slices.Concat(v.call.Request.Header[headerExtensions], v.call.Request.Header[headerOlder]); len(extensions) > 0 && (name == headerOlder) == v.agent.iface.Old {
			h[name] = extensions
		}
	}
	egress.DropLookalikes(h, func(name string) bool { return slices.Contains(client, name) })
	v.agent.headers = h
	return nil
}

// outgoing is the request to the agent.
type outgoing struct {
	method, url string
	body        []byte
	id          json.RawMessage // of JSON-RPC
}

func newOutgoing(v *requestState) (*outgoing, error) {
	q, u := v.req, v.agent
	if u.verbatim && !u.rest() {
		return &outgoing{http.MethodPost, u.iface.URL, v.call.Body, q.id}, nil
	}
	if q.op.custom {
		return outgoingRPC(v, q.raw)
	}
	params := maps.Clone(q.params)
	if delete(params, "tenant"); u.iface.Tenant != "" && !u.rest() {
		params["tenant"] = u.iface.Tenant
	}
	if u.rest() {
		return outgoingREST(v, params)
	}
	raw, err := json.Marshal(wireformat.Convert(wireformat.V1, u.format(), q.op.params, params))
	if err != nil {
		return nil, err
	}
	return outgoingRPC(v, raw)
}

func outgoingRPC(v *requestState, params json.RawMessage) (*outgoing, error) {
	q := v.req
	method := q.op.method(v.agent.iface.Old)
	if method == "" {
		return nil, newError(codeNotServed, "the agent's version of the protocol has no such operation in its binding")
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
	return &outgoing{http.MethodPost, v.agent.iface.URL, body, id}, err
}

// outgoingREST moves params into the path as the HTTP+JSON binding requires.
func outgoingREST(v *requestState, params wireformat.Object) (*outgoing, error) {
	q, u := v.req, v.agent
	base := u.iface.URL
	switch {
	case u.iface.Old:
		base += "/v1"
	case u.iface.Tenant != "":
		base += "/" + url.PathEscape(u.iface.Tenant)
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
		if path = "/extendedAgentCard"; u.iface.Old {
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
	case q.op.sendsMessage || q.op == opPushSet:
		if u.verbatim && q.op.sendsMessage {
			o.body = q.raw
			return o, nil
		}
		raw, err := json.Marshal(wireformat.Convert(wireformat.V1, u.format(), q.op.params, params))
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

// idleTimeout cancels a context when the agent was silent for too long.
type idleTimeout struct {
	context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	limit  time.Duration
}

func withIdleTimeout(ctx context.Context, d time.Duration) *idleTimeout {
	ctx, cancel := context.WithCancel(ctx)
	return &idleTimeout{ctx, cancel, time.AfterFunc(d, cancel), d}
}

func (p *idleTimeout) reset() { p.timer.Reset(p.limit) }

func (p *idleTimeout) stop() { p.timer.Stop(); p.cancel() }

// forward calls the agent and responds to the client.
func forward(v *requestState, o *outgoing) error {
	base := v.call.Context
	if v.req.op.streams {
		base = v.call.Request.Context() // a client cancels by closing the stream
	}
	ctx := withIdleTimeout(base, v.host.Timeout)
	defer ctx.stop()
	v.call.StartResponse()
	resp, err := sendWithRetry(v, ctx, o)
	if err != nil {
		v.call.Ended(0)
		if ctx.Err() != nil && base.Err() == nil {
			err = upstream.Fail(0, "the agent did not respond in time")
		}
		return err
	}
	defer resp.Body.Close()
	v.call.Ended(resp.StatusCode)
	mask.Header(resp.Header, v.agent.secrets)
	for _, name := range []string{headerExtensions, headerOlder} {
		if values := resp.Header[name]; len(values) > 0 {
			v.call.Header()[name] = values
		}
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an invalid type is not a stream
	if media == "text/event-stream" && resp.StatusCode == http.StatusOK {
		if !v.req.op.streams && !v.req.op.custom {
			return malformed(v, resp.StatusCode, "is a stream, which was not requested")
		}
		return forwardStream(v, ctx, resp.Body, o)
	}
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxResponse))
	if err != nil {
		if ctx.Err() != nil && base.Err() == nil {
			return upstream.Fail(resp.StatusCode, "the agent did not respond in time")
		}
		return upstream.Fail(resp.StatusCode, "the agent's response is incomplete or has more than %d bytes", maxResponse)
	}
	if limit := v.host.MaxResult; v.call.Buffered && limit > 0 && len(raw) > limit {
		return upstream.Fail(http.StatusOK, "the response has more than %d bytes, which is too large here: use the address of the long-running service", limit)
	}
	return sendReply(v, resp.StatusCode, raw, o)
}

// sendWithRetry makes the request. If credentials from a secret manager are rejected, it reads
// them again and retries once.
func sendWithRetry(v *requestState, ctx context.Context, o *outgoing) (*http.Response, error) {
	resp, err := send(v, ctx, o)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	i := v.facts.Integration
	if len(i.SecretMappings) == 0 || v.call.Secrets == nil {
		return resp, nil
	}
	resp.Body.Close()
	v.call.Secrets.MarkRejected(ctx, v.facts.Server.Record.Scope, i.SecretMappings)
	v.record.Refreshed = true
	if err := setHeaders(v); err != nil {
		return nil, err
	}
	return send(v, ctx, o)
}

func send(v *requestState, ctx context.Context, o *outgoing) (*http.Response, error) {
	var body io.Reader
	if o.body != nil {
		body = bytes.NewReader(o.body)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, o.url, body)
	if err != nil {
		return nil, upstream.Fail(0, "the agent's address is invalid")
	}
	maps.Copy(req.Header, v.agent.headers)
	req.Header.Set("Accept", "application/json")
	if v.req.op.streams || v.req.op.custom {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := v.call.Transport.RoundTrip(req)
	if err != nil {
		var failed *upstream.Failure
		if errors.As(err, &failed) {
			return nil, failed
		}
		return nil, upstream.Unreachable("the agent", err)
	}
	if resp.StatusCode/100 == 3 {
		resp.Body.Close()
		return nil, upstream.Fail(resp.StatusCode, "the agent responded with a redirect; redirects are not followed")
	}
	return resp, nil
}
