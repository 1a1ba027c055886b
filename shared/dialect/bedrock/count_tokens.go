package bedrock

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// CountTokens carries POST /messages/count_tokens. Models of Claude count a body of their
// own shape, other models one of Converse.
type CountTokens struct{ errors }

var _ chat.Translator = CountTokens{}

// Name implements chat.Translator.
func (CountTokens) Name() string { return "bedrock.count_tokens" }

// ownVersion is the version of the Messages shape on Bedrock.
const ownVersion = `"bedrock-2023-05-31"`

// leastTokens is the bound of output that the shape requires even where nothing is
// generated.
const leastTokens = "10"

var countKeys = wire.NewKeySet("model", "stream", "anthropic_version", "max_tokens")

// EncodeRequest implements chat.Translator.
func (CountTokens) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	o := upstream.Begin(dst)
	o.Key("input")
	o.Open('{')
	if a.Traits.Family == "anthropic" {
		var w wire.Walk
		if err := countKeys.Walk(body, &w); err != nil {
			return dst, "", err
		}
		edits := []wire.Edit{wire.DeleteKey(&w, 0), wire.DeleteKey(&w, 1), countKeys.SetKey(&w, 2, []byte(ownVersion))}
		if !w.Spans[3].Present(body) {
			edits = append(edits, countKeys.SetKey(&w, 3, []byte(leastTokens)))
		}
		own := wire.Splice(nil, body, edits...)
		o.Key("invokeModel")
		o.Open('{')
		o.Str("body", base64.StdEncoding.EncodeToString(own))
		o.B = append(o.B, "}}}"...)
		return o.B, "", nil
	}
	r, err := anthropic.Messages{}.DecodeRequest(body)
	if err != nil {
		return dst, "", err
	}
	r.Model = a.Model
	whole, err := converse.Converse{}.EncodeRequest(nil, r, a.Traits, a.Loss)
	if err != nil {
		return dst, "", err
	}
	o.Key("converse")
	o.Open('{')
	d := wire.NewDecoder(whole)
	for key := range d.Object {
		switch string(key) {
		case "messages", "system", "toolConfig", "additionalModelRequestFields":
			o.Raw(string(key), d.Raw())
		}
	}
	o.B = append(o.B, "}}}"...)
	return o.B, "", d.End()
}

// DecodeResponse implements chat.Translator. Counting costs nothing.
func (CountTokens) DecodeResponse(dst, answer []byte, _ http.Header, _ *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Input, 0)
	d := wire.NewDecoder(answer)
	var n chat.Opt[int64]
	for key := range d.Object {
		if string(key) == "inputTokens" {
			upstream.Count(d, &n)
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", m, upstream.Invalid("The provider's answer is not JSON", d.End())
	case !n.Set:
		return dst, "", m, upstream.InBand(answer)
	}
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), n.Value, 10)
	return append(dst, '}'), "", m, nil
}
