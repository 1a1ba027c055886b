package body

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/relay/admission"
)

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
	if o := b.Req.Route.Opened(); o != nil {
		for _, begins := range o.Steps {
			if begins.Seconds > 0 {
				b.Own.Wanted.Most.Set(pricing.Seconds, begins.Seconds)
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
		return fault.Invalid("upgrade", "this route takes WebSockets only: send Connection: Upgrade and Upgrade: websocket, over HTTP/1.1")
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
