package cohere

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/rerank"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Rerank is POST /v2/rerank. It takes texts and returns no documents.
type Rerank struct{}

var _ chat.Translator = Rerank{}

// Name implements chat.Translator.
func (Rerank) Name() string { return "cohere.rerank" }

// EncodeRequest implements chat.Translator.
func (Rerank) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := rerank.Read(body)
	if err != nil {
		return dst, "", err
	}
	query, err := r.Text()
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(0, a.Loss)
	if err != nil {
		return dst, "", err
	}
	r.Lose(a.Loss, "max_tokens_per_doc", "priority")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	o.Str("query", query)
	o.IntIf("top_n", r.TopN)
	o.IntIf("max_tokens_per_doc", r.PerDoc)
	r.Pass(o, "priority")
	o.List("documents", texts)
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Rerank) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read rerank.Answer
	var u counts
	for key := range d.Object {
		switch string(key) {
		case "id":
			read.ID = upstream.OptString(d)
		case "results":
			read.Results = rerank.ReadResults(d)
		case "meta":
			u.read(d)
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's answer is not JSON", d.End())
	case read.Results == nil:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	if u.searches.Set {
		read.Usage.Set(pricing.Pages, u.searches.Value)
	}
	if u.billedIn.Set {
		read.Usage.Set(pricing.Input, u.billedIn.Value)
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}

// DecodeError implements chat.Translator.
func (Rerank) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}
