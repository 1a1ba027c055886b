package body

import (
	"bytes"
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Demands are the parts of a body that routing and accounting depend on. A body changed by a
// target's config may have other demands than the client's own.
type Demands struct {
	Stream, WantUsage bool         // wantUsage: the stream must report usage
	MaxInput          int64        // most input tokens in addition to those of the body
	UnboundedField    string       // field of a session by which the provider adds input of any length; "" if there is none
	MaxOutput         int64        // most output tokens, times n
	OutAssumed        bool         // the request states no limit
	Units             routes.Units // the units that the price depends on besides tokens
}

// SetUnits sets the demanded units besides tokens, and leaves the mode of the price unchanged.
func SetUnits(d *Demands, w routes.Units) {
	w.Mode = d.Units.Mode
	d.Units = w
}

// ForSession returns the demands of a response of a session with its limits; see target.Target.LimitUsage.
func (d Demands) ForSession(input int64, heldIn string, output, seconds int64) Demands {
	d.MaxInput, d.UnboundedField, d.MaxOutput, d.OutAssumed = input, heldIn, output, false
	if seconds > 0 {
		d.Units.Most.Set(pricing.Seconds, seconds)
	} else if output == 0 {
		d.MaxOutput, d.OutAssumed = routes.DefaultReserveOutput, true
	}
	return d
}

// DemandsOf reads the demands of a body that a config has changed. w is the scan of that body.
func (b *Body) DemandsOf(body []byte, w *wire.Walk) (Demands, error) {
	if err := walkOf(body, w); err != nil {
		return b.ClientDemands, err
	}
	return demandsIn(b.Req.Route, body, w, b.Req.Route.UnitsOf), nil
}

// demandsIn reads the demands of a JSON body of a route.
func demandsIn(rt *routes.Route, src []byte, w *wire.Walk, demand func(routes.Get, int64) routes.Units) (d Demands) {
	if v := w.Spans[keyStream]; v.Present(src) {
		d.Stream, _ = wire.ScanBool(v.Of(src), "stream")
	}
	d.WantUsage = requestsUsage(src, w)
	if !rt.NoOutput {
		d.MaxOutput, d.OutAssumed = outputBound(src, w)
		if d.OutAssumed && rt.BodyMode == routes.Raw {
			if n, ok := boundBelow(src); ok {
				d.MaxOutput, d.OutAssumed = n, false
			}
		}
	}
	if rt.InPath && rt.Client != nil {
		d.readInPath(rt, src)
	}
	if demand != nil {
		d.Units = demand(func(name string) string { return TextIn(src, name) }, int64(len(src)))
	}
	if mode := requestedMode(src, w); mode != "" {
		d.Units.Mode = mode
	}
	return d
}

// requestedMode returns the requested mode of the price: the service tier, or the speed with a
// separate price.
func requestedMode(src []byte, w *wire.Walk) string {
	if v := w.Spans[keySpeed]; v.Present(src) {
		if speed, err := wire.ScanString(v.Of(src), ""); err == nil && speed == pricing.Fast {
			return pricing.Fast
		}
	}
	if v := w.Spans[keyServiceTier]; v.Present(src) {
		if tier, err := wire.ScanString(v.Of(src), ""); err == nil {
			return pricing.ModeOf(tier)
		}
	}
	return ""
}

// requestsUsage reads stream_options.include_usage.
func requestsUsage(src []byte, w *wire.Walk) bool {
	v := w.Spans[keyStreamOptions]
	if !v.Present(src) {
		return false
	}
	var inner wire.Walk
	raw := v.Of(src)
	if includeUsage.Walk(raw, &inner) != nil || inner.Spans[0].Absent() {
		return false
	}
	asked, _ := wire.ScanBool(inner.Spans[0].Of(raw), "stream_options.include_usage")
	return asked
}

var includeUsage = wire.NewKeySet("include_usage")

// OutputBound returns the most output tokens that a body of a conversation may cost. assumed is
// true if it states no limit.
func OutputBound(body []byte) (bound int64, assumed bool, err error) {
	var w wire.Walk
	if err := walkOf(body, &w); err != nil {
		return 0, false, err
	}
	bound, assumed = outputBound(body, &w)
	return bound, assumed, nil
}

// outputBound returns the most output tokens that a body may cost: its limit, else the reserve,
// times n.
func outputBound(src []byte, w *wire.Walk) (bound int64, assumed bool) {
	bound, assumed = routes.DefaultReserveOutput, true
	for _, k := range [...]int{keyMaxCompletionTokens, keyMaxTokens, keyMaxOutputTokens} {
		if v := w.Spans[k]; v.Present(src) {
			if n, err := wire.ScanInt(v.Of(src), ""); err == nil && n >= 0 {
				bound, assumed = n, false
				break
			}
		}
	}
	if v := w.Spans[keyN]; v.Present(src) {
		if n, err := wire.ScanInt(v.Of(src), "n"); err == nil && n > 1 && n <= 128 {
			bound *= n
		}
	}
	return bound, assumed
}

// Fields in which Gemini, its Interactions API, Converse and Titan state the output limit.
var (
	boundsBelow = wire.NewKeySet("generationConfig", "generation_config", "inferenceConfig", "textGenerationConfig")
	boundKeys   = wire.NewKeySet("maxOutputTokens", "max_output_tokens", "maxTokens", "maxTokenCount", "candidateCount", "candidate_count")
)

// boundBelow returns the output limit in the nested settings of a passed-through body. ok is
// false if it states none.
func boundBelow(src []byte) (bound int64, ok bool) {
	var w, inner wire.Walk
	if boundsBelow.Walk(src, &w) != nil {
		return 0, false
	}
	for _, at := range w.Spans {
		settings := at.Of(src)
		if !at.Present(src) || wire.KindOf(settings) != wire.KindObject || boundKeys.Walk(settings, &inner) != nil {
			continue
		}
		candidates := int64(1)
		for i, v := range inner.Spans {
			n, err := wire.ScanInt(v.Of(settings), "")
			switch {
			case !v.Present(settings) || err != nil || n < 0:
			case i < 4:
				bound, ok = max(bound, n), true
			case n <= 128:
				candidates = max(candidates, n)
			}
		}
		bound *= candidates
	}
	return bound, ok
}

var askUsage = []byte(`{"include_usage":true}`)

// UsageEdit requests usage in the stream, and leaves the client's other stream options
// unchanged.
func UsageEdit(w *wire.Walk, src []byte) wire.Edit {
	v := w.Spans[keyStreamOptions]
	if !v.Present(src) || src[v.Start] != '{' {
		return bodyKeys.SetKey(w, keyStreamOptions, askUsage)
	}
	raw := v.Of(src)
	var inner wire.Walk
	if includeUsage.Walk(raw, &inner) != nil {
		return bodyKeys.SetKey(w, keyStreamOptions, askUsage)
	}
	return wire.Replace(v, wire.Splice(nil, raw, includeUsage.SetKey(&inner, 0, []byte("true"))))
}

// ModelIs reports whether a body names a model, given as JSON; SetModel sets it.
func ModelIs(w *wire.Walk, src, model []byte) bool {
	return bytes.Equal(w.Spans[keyModel].Of(src), model)
}

func SetModel(w *wire.Walk, model []byte) wire.Edit { return bodyKeys.SetKey(w, keyModel, model) }

// walkOf scans a JSON body.
func walkOf(body []byte, w *wire.Walk) error { return bodyKeys.Walk(body, w) }

// ScanFor returns the scan of a body: the one made at admission for the client's own, a new one
// for a body changed by a config.
func (b *inMemory) ScanFor(src []byte, edited *wire.Walk) (*wire.Walk, error) {
	if b.IsUnchanged(src) {
		return &b.walk, nil
	}
	return edited, walkOf(src, edited)
}

// IsUnchanged reports whether src is the client's unchanged body, not one that a config has changed.
func (b *inMemory) IsUnchanged(src []byte) bool { return &src[0] == &b.In[0] }

// readInPath reads the demands in a dialect without body fields for them, such as Gemini's,
// where the path determines whether the response is a stream.
func (d *Demands) readInPath(rt *routes.Route, src []byte) {
	d.Stream = rt.Streams
	if r, err := rt.Client.DecodeRequest(src); err == nil && r.MaxTokens.Set && r.MaxTokens.Value >= 0 {
		d.MaxOutput, d.OutAssumed = r.MaxTokens.Value*max(r.N.Or(1), 1), false
	}
}

// TextIn returns a top-level field of a JSON body as text; numbers verbatim, "" if it is absent.
func TextIn(src []byte, name string) string {
	raw, ok := member(src, name)
	if !ok || len(raw) == 0 || wire.IsNull(raw) {
		return ""
	}
	if s, err := wire.ScanString(raw, name); err == nil {
		return s
	}
	return string(raw)
}

// member returns a top-level field of a JSON body.
func member(body []byte, name string) (json.RawMessage, bool) {
	if len(body) == 0 {
		return nil, false
	}
	var w wire.Walk
	if wire.NewKeySet(name).Walk(body, &w) != nil || w.Spans[0].Absent() {
		return nil, false
	}
	return json.RawMessage(w.Spans[0].Of(body)), true
}

// AsParams returns the access function of conditions to top-level fields of the body.
func (b *Body) AsParams() func(name string) (json.RawMessage, bool) {
	if b.params == nil {
		b.params = b.param
	}
	return b.params
}

// param returns a top-level field of the client's body for a condition.
func (b *inMemory) param(name string) (json.RawMessage, bool) { return member(b.In, name) }

var backgroundKey = wire.NewKeySet("background")

// Background reports whether the response only acknowledges a background response.
func (b *Body) Background() bool {
	if b.Req.Route.Endpoint != "createModelResponse" {
		return false
	}
	return RequestsBackground(b.In)
}

// RequestsBackground reports whether the body requests a background response; an unreadable one may.
func RequestsBackground(body []byte) bool {
	var w wire.Walk
	if backgroundKey.Walk(body, &w) != nil {
		return true
	}
	return w.Spans[0].Present(body) && string(w.Spans[0].Of(body)) != "false"
}

// LegacyOnly returns the settings of the request that still apply to a response in the client's
// own format: whether calls are read as function_call.
func (b *Body) LegacyOnly() *chat.Request {
	r, err := b.Req.Route.Client.DecodeRequest(b.In)
	if err != nil || !r.Legacy {
		return nil
	}
	return &chat.Request{Legacy: true}
}

// clipRunes cuts s to at most n characters.
func clipRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// MaxModel limits the name of a model in bytes: an ARN, the longest of them, has at most 2,048
// characters. Records, cubes and messages contain names several times.
const MaxModel = 2048
