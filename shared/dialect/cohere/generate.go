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

// Generate is POST /v1/generate, the text completions of the first models. Its
// stream is one JSON object a line.
type Generate struct{}

var _ chat.Provider = Generate{}

// Name implements chat.Dialect.
func (Generate) Name() string { return "cohere.generate" }

// maxGenerations is how many responses one request gives.
const maxGenerations = 5

// EncodeRequest implements chat.RequestWriter.
func (g Generate) EncodeRequest(dst []byte, r *chat.Request, _ *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if r.N.Set && r.N.Value > maxGenerations {
		return dst, fault.Invalid("n", "n must be at most %d for this provider", maxGenerations)
	}
	if r.Completion == nil {
		return dst, fault.Newf(fault.UnsupportedOperation, "", "This model only completes texts")
	}
	if err := upstream.ReportLoss(r, loss, "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "n", "truncate", "raw_prompting"); err != nil {
		return dst, err
	}
	o := upstream.Begin(dst)
	o.Str("model", r.Model)
	if r.Stream {
		o.Bool("stream", true)
	}
	o.IntIf("max_tokens", r.MaxTokens)
	o.IntIf("num_generations", r.N)
	o.FloatIf("temperature", r.Temperature)
	p := r.TopP
	if p.Set && (p.Value < minP || p.Value > maxP) {
		p.Value = min(max(p.Value, minP), maxP)
		loss.Add("top_p", "cut to the provider's bounds")
	}
	o.FloatIf("p", p)
	o.IntIf("k", r.TopK)
	o.FloatIf("frequency_penalty", r.FrequencyPenalty)
	o.FloatIf("presence_penalty", r.PresencePenalty)
	o.IntIf("seed", r.Seed)
	o.ListIf("end_sequences", r.Stop)
	for _, x := range r.Extra {
		if x.Name == "truncate" || x.Name == "raw_prompting" {
			o.Raw(x.Name, x.Raw)
		}
	}
	o.Str("prompt", upstream.Prompt(r))
	o.Close('}')
	return o.B, loss.Err()
}

// DecodeResponse implements chat.ResponseReader.
func (Generate) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := &chat.Response{}
	var u counts
	var f *fault.Fault
	for key := range d.Object {
		switch string(key) {
		case "id":
			r.ID = upstream.OptString(d)
		case "generations":
			if d.Kind() == wire.KindArray {
				f = generations(d, r)
			}
		case "meta":
			u.read(d)
		}
	}
	switch {
	case d.End() != nil:
		return nil, upstream.Invalid("The provider's response is not JSON", d.End())
	case f != nil:
		return nil, f
	case len(r.Choices) == 0:
		return nil, upstream.InBand(body)
	}
	bill := u.bill()
	r.Usage, r.Billed, r.ReportedTotal = u.tokens(), &bill, u.total()
	return r, nil
}

// generations reads the responses; a failed one is an error.
func generations(d *wire.Decoder, r *chat.Response) (f *fault.Fault) {
	for i := range d.Array {
		c := chat.Choice{Index: i, Native: "COMPLETE"}
		text := ""
		each(d, func(key string) {
			switch key {
			case "text":
				text = upstream.OptString(d)
			case "finish_reason":
				c.Native = upstream.OptString(d)
			}
		})
		if Failed(c.Native) {
			f = Failure(c.Native, "")
		}
		c.Stop = StopReason(c.Native)
		c.Parts = []chat.Part{{Kind: chat.Text, Text: text}}
		r.Choices = append(r.Choices, c)
	}
	return f
}

// DecodeError implements chat.ErrorReader.
func (Generate) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// NewStreamDecoder implements chat.ResponseReader.
func (Generate) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(generateDecoder) }

// generateDecoder reads {is_finished, event_type, text, index} and the last line
// {is_finished: true, finish_reason, response}.
type generateDecoder struct {
	upstream.Stream
	choices int
}

// Parser implements chat.Framed.
func (*generateDecoder) Parser() chat.EventParser { return new(upstream.Lines) }

// Event implements chat.StreamDecoder.
func (s *generateDecoder) Event(name string, data []byte, emit func(*chat.Delta) error) error {
	switch {
	case s.M.Err != nil:
		return s.M.Err
	case name == upstream.EndOfStream || s.M.Complete:
		return nil
	}
	d := &s.D
	d.Reset(data)
	var text []byte
	var kind, finish, message string
	var u counts
	finished := false
	var index chat.Opt[int64]
	for key := range d.Object {
		switch string(key) {
		case "event_type":
			kind = upstream.OptString(d)
		case "is_finished":
			finished = d.Kind() == wire.KindBool && d.Bool()
		case "text":
			text = upstream.RawString(d)
		case "index":
			upstream.Count(d, &index)
		case "finish_reason":
			finish = upstream.OptString(d)
		case "err", "message":
			message = upstream.OptString(d)
		case "response":
			each(d, func(key string) {
				switch key {
				case "id":
					s.M.ID = upstream.OptString(d)
				case "meta":
					u.read(d)
				}
			})
		}
	}
	switch {
	case d.End() != nil:
		return s.Unreadable(d.End())
	case kind == "stream-error" || message != "" || Failed(finish):
		return s.Fail(Failure(finish, message))
	case finished:
		return s.finish(finish, &u, emit)
	}
	n := int(index.Value)
	if n >= maxGenerations {
		return s.Unreadable(nil)
	}
	s.choices = max(s.choices, n+1)
	return s.Piece(chat.Delta{Kind: chat.DeltaText, Choice: n, Call: -1, JSON: text}, emit)
}

func (s *generateDecoder) finish(native string, u *counts, emit func(*chat.Delta) error) error {
	tokens := u.tokens()
	if s.M.Usage = u.bill(); !s.M.Usage.IsReported() {
		s.M.Usage = tokens
	}
	if tokens.IsReported() {
		if err := s.Emit(chat.Delta{Kind: chat.DeltaUsage, Usage: &tokens}, emit); err != nil {
			return err
		}
	}
	for i := 1; i < s.choices; i++ {
		if err := s.Emit(chat.Delta{Kind: chat.DeltaStop, Choice: i, Stop: StopReason(native), Native: native}, emit); err != nil {
			return err
		}
	}
	return s.Stop(StopReason(native), native, emit)
}

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
	r.ReportLoss(a.Loss, "max_tokens_per_doc", "priority")
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
	var read rerank.Response
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
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", d.End())
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
