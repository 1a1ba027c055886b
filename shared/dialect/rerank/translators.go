package rerank

import (
	"net/http"
	"sort"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Voyage is POST /rerank of Voyage AI: texts, top_k, results in data.
type Voyage struct{ upstream.Errors }

var _ chat.Translator = Voyage{}

// Name implements chat.Translator.
func (Voyage) Name() string { return "voyage.rerank" }

// EncodeRequest implements chat.Translator.
func (Voyage) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	query, err := r.Text()
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(1000, a.Loss)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "truncation")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	o.Str("query", query)
	o.IntIf("top_k", r.TopN)
	r.Pass(o, "truncation")
	o.List("documents", texts)
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Voyage) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return decode(dst, answer, a, "data")
}

// Jina is POST /rerank of Jina AI: texts and images, documents omitted.
type Jina struct{ upstream.Errors }

var _ chat.Translator = Jina{}

// Name implements chat.Translator.
func (Jina) Name() string { return "jina.rerank" }

// EncodeRequest implements chat.Translator.
func (Jina) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss)
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	if r.QueryRaw != nil {
		o.Raw("query", r.QueryRaw)
	} else {
		o.Str("query", r.Query)
	}
	o.IntIf("top_n", r.TopN)
	o.Bool("return_documents", false)
	o.Key("documents")
	o.Open('[')
	for i := range r.Documents {
		if doc := &r.Documents[i]; doc.Object && len(r.Fields) == 0 && isImage(doc.Raw) {
			o.Element(doc.Raw)
			continue
		}
		text, err := r.text(i, a.Loss)
		if err != nil {
			return dst, "", err
		}
		o.Text(text)
	}
	o.Close(']')
	o.Close('}')
	return o.B, "", nil
}

// isImage reports whether a document is {"image": ...}.
func isImage(raw []byte) bool {
	d := wire.NewDecoder(raw)
	n, image := 0, false
	for key := range d.Object {
		n++
		image = image || string(key) == "image" && d.Kind() == wire.KindString
	}
	return n == 1 && image
}

// DecodeResponse implements chat.Translator.
func (Jina) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return decode(dst, answer, a, "results")
}

// decode reads {id, model, results or data, usage: {total_tokens}}.
func decode(dst, answer []byte, a *chat.TranslatorRequest, list string) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read Response
	for key := range d.Object {
		switch string(key) {
		case "id":
			read.ID = upstream.OptString(d)
		case "model":
			read.Model = upstream.OptString(d)
		case list:
			read.Results = ReadResults(d)
		case "usage":
			upstream.TotalTokens(d, &read.Usage)
		}
	}
	if err := d.End(); err != nil {
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", err)
	}
	if read.Results == nil {
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}

// Response is what a provider gave.
type Response struct {
	ID, Model string
	Results   []Result // nil if the response has none
	// Usage has Pages for search units and Input for tokens.
	Usage pricing.Usage
}

// Result is one document's place.
type Result struct {
	Index int
	Score float64
	Raw   []byte // the score as the provider wrote it
}

// Append writes the client's response, the best first.
func (a *Response) Append(dst []byte, req *chat.TranslatorRequest) ([]byte, chat.Meter, error) {
	r, err := Read(req.Body)
	if err != nil {
		return dst, chat.Meter{}, err
	}
	sort.SliceStable(a.Results, func(i, j int) bool { return a.Results[i].Score > a.Results[j].Score })
	o := upstream.Begin(dst)
	o.Str("id", orElse(a.ID, req.ID))
	o.Str("object", "list")
	o.Str("model", orElse(a.Model, req.Model))
	if req.ProviderName != "" {
		o.Str("provider", req.ProviderName)
	}
	o.Key("results")
	o.Open('[')
	seen := make([]bool, len(r.Documents))
	for _, result := range a.Results {
		if result.Index < 0 || result.Index >= len(r.Documents) || seen[result.Index] || result.Raw == nil {
			return dst, chat.Meter{}, upstream.Invalid("The provider ranked an unknown document, or one document twice", nil)
		}
		seen[result.Index] = true
		o.Open('{')
		o.Int("index", int64(result.Index))
		o.Raw("relevance_score", result.Raw)
		if r.Return {
			r.Documents[result.Index].appendTo(o)
		}
		o.Close('}')
	}
	o.Close(']')
	a.usage(o)
	o.Close('}')
	return o.B, chat.Meter{Model: a.Model, ID: a.ID, Usage: a.Usage, Complete: true, Started: true}, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// appendTo writes the document as an object.
func (doc *Document) appendTo(o *upstream.Object) {
	if doc.Object {
		o.Raw("document", doc.Raw)
		return
	}
	o.Key("document")
	o.Open('{')
	o.Str("text", doc.Text)
	o.Close('}')
}

func (a *Response) usage(o *upstream.Object) {
	if !a.Usage.IsReported() {
		return
	}
	o.Key("usage")
	o.Open('{')
	if n, ok := a.Usage.Get(pricing.Pages); ok {
		o.Int("search_units", n)
	}
	if n, ok := a.Usage.Get(pricing.Input); ok {
		o.Int("prompt_tokens", n)
		o.Int("total_tokens", n)
	}
	o.Close('}')
}

// ReadResults reads [{index, relevance_score}, ...].
func ReadResults(d *wire.Decoder) []Result {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return nil
	}
	all := []Result{}
	for range d.Array {
		r := Result{Index: -1}
		if d.Kind() != wire.KindObject {
			d.Skip()
			all = append(all, r)
			continue
		}
		for key := range d.Object {
			switch string(key) {
			case "index":
				var n chat.Opt[int64]
				if upstream.Count(d, &n); n.Set {
					r.Index = int(n.Value)
				}
			case "relevance_score", "score":
				if d.Kind() == wire.KindNumber {
					probe := *d
					r.Raw = upstream.Clone(probe.Num())
					r.Score = d.Float()
				}
			}
		}
		all = append(all, r)
	}
	return all
}
