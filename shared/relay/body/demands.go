package body

import (
	"bytes"

	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Demands are what a body asks for, as far as routing and money go by it. What a
// target's config makes of a body may ask for other things than the client's own.
type Demands struct {
	Stream, WantUsage bool          // wantUsage: the stream is to tell its usage
	InBound           int64         // most input tokens beside those of the body
	HeldIn            string        // field of a session by which the provider adds input of any length; "" if there is none
	OutBound          int64         // most output tokens, times n
	OutAssumed        bool          // the request states no bound
	Wanted            routes.Demand // what the price depends on besides tokens
}

// SetUnits sets what a body asks for besides tokens, and keeps the mode of the price.
func SetUnits(d *Demands, w routes.Demand) {
	w.Mode = d.Wanted.Mode
	d.Wanted = w
}

// DemandsOf reads what a body asks for that a config has changed. w is the walk of that
// body.
func (b *Body) DemandsOf(body []byte, w *wire.Walk) (Demands, error) {
	if err := walkOf(body, w); err != nil {
		return b.Own, err
	}
	return demandsIn(b.Req.Route, body, w, b.Req.Route.Demand), nil
}

// demandsIn reads what a JSON body of a route asks for.
func demandsIn(rt *routes.Route, src []byte, w *wire.Walk, demand func(routes.Get, int64) routes.Demand) (d Demands) {
	if v := w.Spans[keyStream]; v.Present(src) {
		d.Stream, _ = wire.ScanBool(v.Of(src), "stream")
	}
	d.WantUsage = usageAsked(src, w)
	if !rt.NoOutput {
		d.OutBound, d.OutAssumed = outputBound(src, w)
		if d.OutAssumed && rt.Shape == routes.Raw {
			if n, ok := boundBelow(src); ok {
				d.OutBound, d.OutAssumed = n, false
			}
		}
	}
	if rt.InPath && rt.Client != nil {
		d.readInPath(rt, src)
	}
	if demand != nil {
		d.Wanted = demand(func(name string) string { return TextIn(src, name) }, int64(len(src)))
	}
	if mode := modeAsked(src, w); mode != "" {
		d.Wanted.Mode = mode
	}
	return d
}

// modeAsked is the mode of the price that a body asks for: its service tier, or the
// speed that has a price of its own.
func modeAsked(src []byte, w *wire.Walk) string {
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

// usageAsked reads stream_options.include_usage.
func usageAsked(src []byte, w *wire.Walk) bool {
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
// true if it states no bound.
func OutputBound(body []byte) (bound int64, assumed bool, err error) {
	var w wire.Walk
	if err := walkOf(body, &w); err != nil {
		return 0, false, err
	}
	bound, assumed = outputBound(body, &w)
	return bound, assumed, nil
}

// outputBound is the most output tokens that a body may cost: what it says, else
// the reserve, times n.
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

// Members in which Gemini, its Interactions, Converse and Titan state the bound of their output.
var (
	boundsBelow = wire.NewKeySet("generationConfig", "generation_config", "inferenceConfig", "textGenerationConfig")
	boundKeys   = wire.NewKeySet("maxOutputTokens", "max_output_tokens", "maxTokens", "maxTokenCount", "candidateCount", "candidate_count")
)

// boundBelow returns the bound that a body which is passed through states within its settings.
// ok is false if it states none.
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

// UsageEdit asks for usage, whatever other stream options the client set.
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

// ModelIs tells whether a body names a model, given as JSON; setModel names it.
func ModelIs(w *wire.Walk, src, model []byte) bool {
	return bytes.Equal(w.Spans[keyModel].Of(src), model)
}

func SetModel(w *wire.Walk, model []byte) wire.Edit { return bodyKeys.SetKey(w, keyModel, model) }

// walkOf walks a JSON body.
func walkOf(body []byte, w *wire.Walk) error { return bodyKeys.Walk(body, w) }

// WalkFor gives the walk of a body: the one made at admission for the client's
// own, a new one for what a config made of it.
func (b *held) WalkFor(src []byte, edited *wire.Walk) (*wire.Walk, error) {
	if b.IsOwn(src) {
		return &b.walk, nil
	}
	return edited, walkOf(src, edited)
}

// IsOwn tells whether src is the client's body as it came, not what a config made
// of it.
func (b *held) IsOwn(src []byte) bool { return &src[0] == &b.In[0] }

// readInPath reads the demands of a shape whose body has no members for them, such as
// Gemini's, where the path says whether the answer is a stream.
func (d *Demands) readInPath(rt *routes.Route, src []byte) {
	d.Stream = rt.Streams
	if r, err := rt.Client.DecodeRequest(src); err == nil && r.MaxTokens.Set && r.MaxTokens.Value >= 0 {
		d.OutBound, d.OutAssumed = r.MaxTokens.Value*max(r.N.Or(1), 1), false
	}
}
