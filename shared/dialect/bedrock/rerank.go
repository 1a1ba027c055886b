package bedrock

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/rerank"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Rerank is POST /rerank of Bedrock's agent runtime.
type Rerank struct{ errors }

var _ chat.Translator = Rerank{}

// Name implements chat.Translator.
func (Rerank) Name() string { return "bedrock.rerank" }

// maxDocuments is the most documents of one request.
const maxDocuments = 1000

// EncodeRequest implements chat.Translator. A model that is no ARN is a
// foundation model of the target's region.
func (Rerank) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := rerank.Read(body)
	if err != nil {
		return dst, "", err
	}
	query, err := r.Text()
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(maxDocuments, a.Loss)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss)
	model := a.Model
	if !strings.HasPrefix(model, "arn:") {
		region := a.Field("aws_region")
		if region == "" {
			region = "us-east-1"
		}
		model = "arn:aws:bedrock:" + region + "::foundation-model/" + model
	}
	o := upstream.Begin(dst)
	o.B = append(o.B, `"queries":[{"type":"TEXT","textQuery":{"text":`...)
	o.B = wire.AppendJSONString(o.B, query)
	o.B = append(o.B, `}}],"sources":[`...)
	for i, text := range texts {
		if i > 0 {
			o.B = append(o.B, ',')
		}
		o.B = append(o.B, `{"type":"INLINE","inlineDocumentSource":{"type":"TEXT","textDocument":{"text":`...)
		o.B = wire.AppendJSONString(o.B, text)
		o.B = append(o.B, "}}}"...)
	}
	o.B = append(o.B, `],"rerankingConfiguration":{"type":"BEDROCK_RERANKING_MODEL","bedrockRerankingConfiguration":{`...)
	// Without a number the service returns only some results, so all are requested.
	n := int64(len(texts))
	if r.TopN.Set {
		n = min(n, r.TopN.Value)
	}
	o.Int("numberOfResults", max(1, n))
	o.Key("modelConfiguration")
	o.Open('{')
	o.Str("modelArn", model)
	o.B = append(o.B, "}}}}"...)
	return o.B, "", nil
}

// documentsOfUnit are what one query is billed for: a hundred documents.
const documentsOfUnit = 100

// DecodeResponse implements chat.Translator. The service reports no usage; it
// bills a query for each hundred documents that are begun.
func (Rerank) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read rerank.Response
	for key := range d.Object {
		if string(key) == "results" && d.Kind() == wire.KindArray {
			read.Results = []rerank.Result{}
			for range d.Array {
				read.Results = append(read.Results, readResult(d))
			}
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", d.End())
	case read.Results == nil:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	if r, err := rerank.Read(a.Body); err == nil {
		read.Usage.Set(pricing.Pages, int64((len(r.Documents)+documentsOfUnit-1)/documentsOfUnit))
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}

func readResult(d *wire.Decoder) rerank.Result {
	r := rerank.Result{Index: -1}
	if d.Kind() != wire.KindObject {
		d.Skip()
		return r
	}
	for key := range d.Object {
		switch string(key) {
		case "index":
			var n chat.Opt[int64]
			if upstream.Count(d, &n); n.Set && n.Value < 1<<20 {
				r.Index = int(n.Value)
			}
		case "relevanceScore":
			if d.Kind() == wire.KindNumber {
				r.Raw = upstream.Clone(d.Raw())
				r.Score, _ = strconv.ParseFloat(string(r.Raw), 64)
			}
		}
	}
	return r
}

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
		return dst, "", m, upstream.Invalid("The provider's response is not JSON", d.End())
	case !n.Set:
		return dst, "", m, upstream.InBand(answer)
	}
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), n.Value, 10)
	return append(dst, '}'), "", m, nil
}
