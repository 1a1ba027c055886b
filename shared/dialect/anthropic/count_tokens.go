package anthropic

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// CountTokens carries POST /messages/count_tokens to providers that have it in
// this shape: body and answer pass as they are, but for the model.
type CountTokens struct{}

var _ chat.Translator = CountTokens{}

// Name implements chat.Translator: the dialect's own.
func (CountTokens) Name() string { return name }

var modelKey = wire.NewKeySet("model")

// EncodeRequest implements chat.Translator.
func (CountTokens) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	var w wire.Walk
	if err := modelKey.Walk(body, &w); err != nil {
		return dst, "", err
	}
	return wire.Splice(dst, body, modelKey.SetKey(&w, 0, wire.AppendJSONString(nil, a.Model))), "", nil
}

// DecodeResponse implements chat.Translator. Counting costs nothing.
func (CountTokens) DecodeResponse(dst, answer []byte, _ http.Header, _ *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Input, 0)
	d := wire.NewDecoder(answer)
	counted, failed := false, false
	for key := range d.Object {
		switch string(key) {
		case "type":
			failed = upstream.OptString(d) == "error"
		case "input_tokens":
			counted = d.Kind() == wire.KindNumber
		}
	}
	switch err := d.End(); {
	case err == nil && failed:
		return dst, "", m, inBandError(answer)
	case err != nil || !counted:
		return dst, "", m, upstream.Invalid("The provider's answer is not a count of tokens", err)
	}
	return append(dst, answer...), "", m, nil
}

// DecodeError implements chat.Translator.
func (CountTokens) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// CheckCount tests the bounds of a body of /messages/count_tokens: those of a message,
// except that the answer needs no bound.
func CheckCount(body []byte) error {
	var c chat.Checked
	return checkBody(body, &c, false)
}
