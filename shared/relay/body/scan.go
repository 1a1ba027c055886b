package body

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/relay/admission"
	"gateway/shared/wire"
)

// walkBody finds the fields that the pipeline needs in a unified body and checks its limits.
func walkBody(b *Body) error {
	err := wire.CheckUTF8(b.In)
	if err != nil {
		return err
	}
	nameDeployment(b)
	if b.Req.Route.Client != nil {
		// The dialect's check has scanned the body: its result is reused.
		b.checked.ByTarget = true
		if err = b.Req.Route.Client.Check(b.In, &b.checked); err == nil {
			takeWalk(b)
		}
	} else if err = bodyKeys.Walk(b.In, &b.walk); err == nil && b.Req.Route.Check != nil {
		err = b.Req.Route.Check(b.In)
	}
	if err != nil {
		return err
	}
	if err := readModel(b, true); err != nil {
		return err
	}
	if b.Model == "" && b.Req.Route.DefaultModel != "" {
		b.Model = b.Req.Route.DefaultModel
	}
	if v := b.walk.Spans[keyStream]; v.Present(b.In) {
		if _, err = wire.ScanBool(v.Of(b.In), "stream"); err != nil {
			return err
		}
	}
	b.ClientDemands = demandsIn(b.Req.Route, b.In, &b.walk, b.Req.Route.UnitsOf)
	return nil
}

// takeWalk copies the fields that are read here from the dialect's check. Fields that the
// dialect does not define are ignored.
func takeWalk(b *Body) {
	from, w := &b.checked.Walk, &b.walk
	w.ObjectStart, w.ObjectEnd, w.Empty = from.ObjectStart, from.ObjectEnd, from.Empty
	w.Spans, w.Keys = append(w.Spans[:0], noSpans[:]...), append(w.Keys[:0], noSpans[:]...)
	for i, at := range b.checked.Keys.Places(bodyKeys) {
		if at >= 0 {
			w.Spans[i], w.Keys[i] = from.Spans[at], from.Keys[at]
		}
	}
}

var noSpans [keySpeed + 1]wire.Span

// walkRaw reads from a pass-through body only the fields that routing and accounting need. A
// malformed object is left to the provider to reject; an object in which another parser could
// find different values is rejected here.
func walkRaw(b *Body) error {
	if wire.KindOf(bytes.TrimLeft(b.In, " \t\r\n")) == wire.KindObject {
		if err := wire.CheckUTF8(b.In); err != nil {
			return err
		}
	}
	if len(b.In) == 0 || bodyKeys.Walk(b.In, &b.walk) != nil {
		b.walk.Spans = b.walk.Spans[:0]
		b.UnknownModel = len(b.In) > 0
		return nil
	}
	if readModel(b, false) != nil {
		b.Model = ""
	}
	like, demand := b.Counterpart(), b.Req.Route.UnitsOf
	if like != nil {
		demand = like.UnitsOf
	}
	b.ClientDemands = demandsIn(b.Req.Route, b.In, &b.walk, demand)
	if like == nil && b.Req.Req.Method == http.MethodPost {
		SetUnits(&b.ClientDemands, UnitsOf(b.RawPath(), b.In, int64(len(b.In))))
	}
	if like != nil && like.NoOutput {
		b.ClientDemands.MaxOutput = 0
	}
	return nil
}

// readModel splits "@slug/model".
func readModel(b *Body, required bool) error {
	if b.Req.Route.InPath {
		b.Model = b.ID // without its @slug/
		return nil
	}
	v := b.walk.Spans[keyModel]
	if !v.Present(b.In) {
		return nil // the target may set it; dispatch rejects a body without one
	}
	name, err := wire.ScanString(v.Of(b.In), "model")
	if err != nil {
		return err
	}
	if required && name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return splitModel(b, name, required)
}

// splitModel splits a model that may name its saved provider.
func splitModel(b *Body, name string, required bool) error {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		slug, model, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || model == "" {
			if required {
				return fault.Invalid("model", "a saved provider is named as @slug/model")
			}
			return nil
		}
		b.Slug, name = slug, model
	}
	if len(name) > MaxModel {
		return fault.Invalid("model", "must have at most %d bytes", MaxModel)
	}
	b.Model = name
	return nil
}

// mergeMetadata merges metadata: workspace over key over request; the body's user sets _user if
// nothing else does.
func mergeMetadata(b *Body) {
	m := b.Req.Headers.Metadata
	keyed, spaced := b.Req.Principal.Defaults.Metadata, b.Req.WS.Defaults.Metadata
	var user string
	if len(b.walk.Spans) > keyUser && b.walk.Spans[keyUser].Present(b.In) {
		user, _ = wire.ScanString(b.walk.Spans[keyUser].Of(b.In), "user")
	}
	if m == nil && len(keyed) == 0 && len(spaced) == 0 && user == "" && b.Req.Principal.UserID == "" && b.Req.Principal.EndUser == "" {
		return
	}
	if m == nil {
		if b.merged == nil {
			b.merged = make(map[string]string)
		}
		m = b.merged
	}
	for k, v := range keyed {
		m[k] = v
	}
	for k, v := range spaced {
		m[k] = v
	}
	if _, have := m["_user"]; !have {
		if user == "" {
			user = cmp.Or(b.Req.Principal.EndUser, b.Req.Principal.UserID)
		}
		if user != "" {
			m["_user"] = clipRunes(user, 128)
		}
	}
	b.Metadata = m
}

// takeSocket reads the query of a request that becomes a WebSocket: it names the model, or
// requests only transcription.
func takeSocket(b *Body) error {
	if b.Req.Route.Sockets() == nil {
		f := fault.New(fault.UnsupportedOperation, "", "WebSockets need the container, which this installation runs without")
		if f.StatusCode = http.StatusNotImplemented; b.Req.Route.Converses() {
			f.StatusCode = http.StatusUpgradeRequired // its clients then post their requests
		}
		return f
	}
	if err := upgrades(b.Req.Req); err != nil {
		return err
	}
	q, err := url.ParseQuery(b.Req.Req.URL.RawQuery)
	if err != nil {
		return fault.Invalid("query", "has invalid percent-encoding")
	}
	if o := b.Req.Route.ClientConn(); o != nil {
		for _, begins := range o.Steps {
			if begins.Seconds > 0 {
				b.ClientDemands.Units.Most.Set(pricing.Seconds, begins.Seconds)
			}
		}
		return splitModel(b, o.Model, true)
	}
	for name, values := range q {
		switch {
		case b.Req.Route.Live() != nil && placeholder(b.Req.Req, name):
			continue // clients cannot omit it; it is ignored
		case len(values) > 1:
			return fault.Invalid(fault.Clip(name, 100), "was sent %d times; send it once", len(values))
		case strings.Contains(strings.ToLower(name), "key"):
			return fault.Invalid(fault.Clip(name, 100), "must not be in the URL, which proxies log; send the key as a header or a subprotocol")
		}
	}
	model, intent := q.Get("model"), q.Get("intent")
	switch {
	case b.Req.Route.Live() != nil && len(q) > 0 && !onlyKey(q):
		return fault.Invalid("query", "must be empty: the first message defines the session")
	case b.Req.Route.Converses() || b.Req.Route.Live() != nil:
		return nil // messages name it
	case q.Has("call_id"):
		return fault.Invalid("call_id", "calls are not supported: their audio would bypass the gateway")
	case intent != "" && intent != "transcription":
		return fault.Invalid("intent", "must be transcription, or omitted")
	case intent != "" && model != "":
		return fault.Invalid("intent", "must not be combined with model: send exactly one of them")
	case q.Has("model") && model == "":
		return fault.Invalid("model", "must not be empty")
	}
	b.Transcribes = intent != ""
	if model == "" && !b.Transcribes {
		model = deployment(b)
	}
	return splitModel(b, model, true)
}

// placeholder reports whether a query parameter is the API key that Gemini clients always write
// into the URL, in a request with its key in a header or a subprotocol: it is ignored.
func placeholder(req *http.Request, name string) bool {
	h := req.Header
	return name == "key" && (h["X-Gateway-Api-Key"] != nil || h["Authorization"] != nil || h["X-Goog-Api-Key"] != nil)
}

func onlyKey(q url.Values) bool { return len(q) == 1 && q.Has("key") }

// upgrades rejects an invalid handshake (RFC 6455, 4.1).
func upgrades(req *http.Request) error {
	h := req.Header
	has := func(name, token string) bool {
		return slices.ContainsFunc(admission.SplitList(h[name]), func(v string) bool { return strings.EqualFold(v, token) })
	}
	switch key, err := base64.StdEncoding.DecodeString(admission.SingleHeader(h, "Sec-Websocket-Key")); {
	case !has("Upgrade", "websocket") || !has("Connection", "upgrade"):
		return fault.Invalid("upgrade", "this route accepts WebSockets only: send Connection: Upgrade and Upgrade: websocket, over HTTP/1.1")
	case !req.ProtoAtLeast(1, 1) || req.ProtoMajor != 1:
		return fault.Invalid("upgrade", "a WebSocket begins over HTTP/1.1")
	case admission.SingleHeader(h, "Sec-Websocket-Version") != "13" || len(h["Sec-Websocket-Version"]) != 1:
		return fault.Invalid("sec-websocket-version", "must be 13")
	case err != nil || len(key) != 16 || len(h["Sec-Websocket-Key"]) != 1:
		return fault.Invalid("sec-websocket-key", "must be 16 bytes in Base64, sent once")
	case req.ContentLength != 0 || len(req.TransferEncoding) > 0:
		return fault.Invalid("body", "a handshake has no body")
	}
	return nil
}
