package bedrock

import (
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
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
	r.Lose(a.Loss)
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
	var read rerank.Answer
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
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's answer is not JSON", d.End())
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
