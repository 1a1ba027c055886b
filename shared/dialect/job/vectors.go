package job

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/embedding"
	"gateway/shared/fault"
)

// carry writes the provider's body for an embedding row. Vectors are returned as numbers,
// because the request is no longer known when the response is written.
func (r *rows) carry(talk *chat.Talk, body []byte) ([]byte, error) {
	var err error
	if r.body, _, err = talk.Translator.EncodeRequest(r.body[:0], body, r.asked(talk, body)); err != nil {
		return nil, err
	}
	if got, err := embedding.Read(body); err == nil && got.Base64 {
		r.j.Loss.AddAnswer("encoding_format", "vectors are lists of numbers")
	}
	return r.body, r.j.Loss.Err()
}

func (r *rows) asked(talk *chat.Talk, body []byte) *chat.TranslatorRequest {
	return &chat.TranslatorRequest{
		Body: body, Model: talk.Model, Operation: "embeddings", Traits: talk.Traits, Loss: r.j.Loss, Field: r.j.Field,
		ID: r.j.Request, Created: r.j.Now.Unix(), ProviderName: r.j.ProviderName, Strict: r.j.Strict,
	}
}

// inputsBody is the body of a request for the vectors of so many texts.
func inputsBody(n int) []byte {
	return []byte(`{"input":["x"` + strings.Repeat(`,"x"`, n-1) + `]}`)
}

// vectors writes the row of an answer with vectors.
func (w *output) vectors(dst []byte, id, model string, talk *chat.Talk, body []byte, inputs int) []byte {
	asked := &chat.TranslatorRequest{
		Body: inputsBody(inputs), Model: model, Operation: "embeddings", Traits: talk.Traits, Loss: new(chat.Loss), Field: w.j.Field,
		ID: w.rowID(id), Created: w.j.Now.Unix(), ProviderName: w.j.ProviderName, Strict: w.j.Strict,
	}
	answer, _, _, err := talk.Translator.DecodeResponse(nil, body, http.Header{}, asked)
	if err != nil {
		f := fault.From(err)
		return w.failed(dst, id, string(f.Code), f.Message)
	}
	return w.whole(dst, id, answer)
}

// meteredVectors reads what a row for embeddings used.
func meteredVectors(t chat.Translator, model string, field func(string) string) func(*result) chat.Meter {
	return func(r *result) chat.Meter {
		asked := &chat.TranslatorRequest{Body: inputsBody(max(r.inputs, 1)), Model: model, Operation: "embeddings", Traits: new(chat.Traits), Loss: new(chat.Loss), Field: field}
		_, _, m, err := t.DecodeResponse(nil, r.message, http.Header{}, asked)
		if err != nil {
			return chat.Meter{}
		}
		return m
	}
}
