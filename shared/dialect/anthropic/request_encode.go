package anthropic

import (
	"encoding/base64"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bounds of the provider.
const (
	defaultMaxTokens = 4096 // where neither client nor catalog says one
	maxToolName      = 128
)

const notTaken = "not accepted by this provider"

// requestEncoder writes one request for a provider. Everything that does not
// change from turn to turn is written before the messages, which come last, so
// that a conversation's bytes only grow at their end. Its steps are functions in the
// files of their topics.
type requestEncoder struct {
	b    []byte
	r    *chat.Request
	t    *chat.Traits
	loss *chat.Loss
	max  int // longest tool name
	skip int // cache markers that are omitted, from the front

	think     claude.Thinking
	maxTokens int64
	recalled  map[*chat.Part][]chat.Part // signed reasoning in front of calls
	format    claude.JSON
}

func encodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	e := &requestEncoder{b: dst, r: r, t: t, loss: loss, max: t.MaxToolName}
	if e.max == 0 {
		e.max = maxToolName
	}
	if err := r.Rename(e.max); err != nil {
		return dst, err
	}
	if err := reject(e); err != nil {
		return dst, err
	}
	r.ReportUnread(loss)
	r.ReportBelow(loss, chat.BelowCallSignatures)
	if err := plan(e); err != nil {
		return dst, err
	}
	if err := write(e); err != nil {
		return dst, err
	}
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.b, nil
}

// reject checks the bounds in which this provider is narrower than the specification.
func reject(e *requestEncoder) error {
	r := e.r
	if r.N.Set && r.N.Value > 1 {
		return fault.Invalid("n", "n must be 1 for this provider, which returns one response")
	}
	if c := r.Completion; c != nil {
		switch {
		case c.Prompts > 1:
			return fault.Invalid("prompt", "prompt must be one text for this provider, not a list of %d", c.Prompts)
		case c.BestOf.Set && c.BestOf.Value > 1:
			return fault.Invalid("best_of", "best_of must be 1 for this provider, which returns one response")
		}
	}
	return claude.CheckLimits(r, e.t, 0) // a bound of 0 warms a cache
}

// plan decides what several fields depend on: thinking, the token limit, the method for a
// JSON response, and which cache markers are retained.
func plan(e *requestEncoder) error {
	e.maxTokens = e.r.MaxTokens.Or(e.t.DefaultMaxTokens)
	if e.maxTokens == 0 && !e.r.MaxTokens.Set {
		e.maxTokens = defaultMaxTokens
	}
	if err := planThinking(e); err != nil {
		return err
	}
	var err error
	if e.format, err = claude.PlanJSON(e.r, e.t, e.t.Schema != chat.SchemaNone, e.think.On(), e.loss); err != nil {
		return err
	}
	e.skip = claude.Skipped(e.r, true)
	return nil
}

//go:noinline
func encodeKey(e *requestEncoder, name string) {
	e.b = append(append(append(e.b, `,"`...), name...), `":`...)
}

func str(e *requestEncoder, name, value string) {
	encodeKey(e, name)
	e.b = wire.AppendJSONString(e.b, value)
}

func write(e *requestEncoder) error {
	r := e.r
	e.b = append(e.b, `{"model":`...)
	e.b = wire.AppendJSONString(e.b, r.Model)
	encodeKey(e, "max_tokens")
	e.b = strconv.AppendInt(e.b, e.maxTokens, 10)
	if r.Stream {
		e.b = append(e.b, `,"stream":true`...)
	}
	sampling(e)
	if stops := claude.Stops(r, e.loss); len(stops) > 0 {
		encodeKey(e, "stop_sequences")
		e.b = append(e.b, '[')
		for i, s := range stops {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.b = wire.AppendJSONString(e.b, s)
		}
		e.b = append(e.b, ']')
	}
	if r.User != "" {
		e.b = append(e.b, `,"metadata":{"user_id":`...)
		e.b = wire.AppendJSONString(e.b, r.User)
		e.b = append(e.b, '}')
	}
	serviceTier(e)
	writeThinking(e)
	writeOutputConfig(e)
	extra(e)
	if err := tools(e); err != nil {
		return err
	}
	if err := system(e); err != nil {
		return err
	}
	if err := messages(e); err != nil {
		return err
	}
	e.b = append(e.b, '}')
	return nil
}

// sampling writes temperature, top_p and top_k, and reports the rest.
func sampling(e *requestEncoder) {
	r := e.r
	temperature, topP, topK := r.Temperature, r.TopP, r.TopK
	switch {
	case e.t.Sampling == chat.SamplingNone:
		drop(e, &temperature, "temperature", "not accepted by this model")
		drop(e, &topP, "top_p", "not accepted by this model")
		if topK.Set {
			topK.Set = false
			e.loss.Add("top_k", "not accepted by this model")
		}
	case e.think.On():
		if temperature.Value != 1 {
			drop(e, &temperature, "temperature", "not accepted with thinking")
		}
		if topP.Value < 0.95 {
			drop(e, &topP, "top_p", "not accepted with thinking")
		}
		if topK.Set {
			topK.Set = false
			e.loss.Add("top_k", "not accepted with thinking")
		}
	}
	if e.t.Sampling == chat.SamplingEither && temperature.Set {
		drop(e, &topP, "top_p", "not accepted beside temperature")
	}
	if temperature.Set {
		if temperature.Value > 1 {
			temperature.Value = 1
			e.loss.Add("temperature", "cut to 1")
		}
		encodeKey(e, "temperature")
		e.b = strconv.AppendFloat(e.b, temperature.Value, 'g', -1, 64)
	}
	if topP.Set {
		encodeKey(e, "top_p")
		e.b = strconv.AppendFloat(e.b, topP.Value, 'g', -1, 64)
	}
	if topK.Set {
		encodeKey(e, "top_k")
		e.b = strconv.AppendInt(e.b, topK.Value, 10)
	}
	r.ReportLoss(e.loss, notTaken, "temperature", "top_p", "top_k", "stop", "user", "service_tier")
	if r.Logprobs.Set && r.Logprobs.Value {
		e.loss.AddResponse("logprobs", notTaken)
	} else {
		report(e, "logprobs", r.Logprobs.Set)
	}
	report(e, "top_logprobs", r.TopLogprobs.Set)
	if c := r.Completion; c != nil {
		report(e, "suffix", c.Suffix != "")
		if c.Logprobs.Set {
			e.loss.AddResponse("logprobs", notTaken)
		}
	}
}

func drop(e *requestEncoder, v *chat.Opt[float64], path, reason string) {
	if v.Set {
		v.Set = false
		e.loss.Add(path, reason)
	}
}

func report(e *requestEncoder, path string, set bool) {
	if set {
		e.loss.Add(path, notTaken)
	}
}

func serviceTier(e *requestEncoder) {
	switch e.r.ServiceTier {
	case "":
	case "auto":
		str(e, "service_tier", "auto")
	case "default", "standard", "standard_only":
		str(e, "service_tier", "standard_only")
	default:
		e.loss.Add("service_tier", notTaken)
	}
}

// extra passes fields of this dialect on when the client speaks it.
func extra(e *requestEncoder) {
	for _, x := range e.r.Extra {
		if e.r.Dialect == name {
			x.Name = strings.TrimPrefix(x.Name, ownOnly)
		}
		outer, _, nested := strings.Cut(x.Name, ".")
		switch {
		case e.r.Dialect != name || nested:
			// This provider always gives the usage that a client may ask for in a stream.
			if outer == "modalities" && strings.Contains(string(x.Raw), `"audio"`) {
				e.loss.AddResponse(x.Name, notTaken)
				continue
			}
			e.loss.Add(x.Name, notTaken)
		case x.Name == "anthropic_beta" || x.Name == "anthropic_version":
			e.loss.Add(x.Name, "belongs in a header")
		default:
			encodeKey(e, x.Name)
			e.b = append(e.b, x.Raw...)
		}
	}
}

// marker writes a cache marker into the object that is being written. Markers come in the
// order in which they are counted, except those of system prompts between messages.
func marker(e *requestEncoder, c chat.Cache, at place) {
	if c == chat.NoCache {
		return
	}
	if e.t.NoCacheControl {
		e.loss.Add(at.String()+".cache_control", notTaken)
		return
	}
	if e.skip > 0 {
		e.skip--
		e.loss.Add(at.String()+".cache_control", "more than 4 cache markers")
		return
	}
	e.b = append(e.b, `,"cache_control":{"type":"ephemeral"`...)
	switch {
	case c == chat.Cache5m:
		e.b = append(e.b, `,"ttl":"5m"`...)
	case c == chat.Cache1h && !e.t.NoLongCache:
		e.b = append(e.b, `,"ttl":"1h"`...)
	case c == chat.Cache1h:
		e.loss.Add(at.String()+".cache_control.ttl", notTaken)
	}
	e.b = append(e.b, '}')
}

// encodeMedia writes an image or document block.
func encodeMedia(e *requestEncoder, p *chat.Part, at place) error {
	m := p.Media
	document := p.Kind == chat.Document || namesPDF(m.URL)
	switch {
	case document && e.t.NoDocuments:
		return fault.Invalid(at.String(), "%s is a document, which this model does not accept", at)
	case !document && e.t.NoImages:
		return fault.Invalid(at.String(), "%s is an image, which this model does not accept", at)
	}
	if document {
		e.b = append(e.b, `{"type":"document","source":`...)
	} else {
		e.b = append(e.b, `{"type":"image","source":`...)
	}
	if err := source(e, m, document, at); err != nil {
		return err
	}
	if document {
		if m.Name != "" {
			str(e, "title", m.Name)
		}
		if m.Context != "" {
			str(e, "context", m.Context)
		}
		if len(m.Citations) > 0 {
			encodeKey(e, "citations")
			e.b = append(e.b, m.Citations...)
		}
	}
	if m.Detail != "" && m.Detail != "auto" {
		e.loss.Add(at.String()+".image_url.detail", notTaken)
	}
	marker(e, p.Cache, at)
	e.b = append(e.b, '}')
	return nil
}

// namesPDF reports whether an address ends in .pdf, whatever query signs it.
func namesPDF(address string) bool {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return len(address) > 4 && strings.EqualFold(address[len(address)-4:], ".pdf")
}

func source(e *requestEncoder, m *chat.Media, document bool, at place) error {
	switch {
	case m.FileID != "":
		e.b = append(e.b, `{"type":"file","file_id":`...)
		e.b = wire.AppendJSONString(e.b, m.FileID)
		e.b = append(e.b, '}')
		return nil
	case m.URL != "":
		if !strings.HasPrefix(m.URL, "https://") && !strings.HasPrefix(m.URL, "http://") {
			return fault.Invalid(at.String(), "%s must be a data: or https: URL for this provider", at)
		}
		e.b = append(e.b, `{"type":"url","url":`...)
		e.b = wire.AppendJSONString(e.b, m.URL)
		e.b = append(e.b, '}')
		return nil
	}
	kind, mime, data := "base64", m.MIME, m.Data
	switch {
	case document && (m.Plain || textual(mime)):
		kind, mime = "text", "text/plain"
		if !m.Plain {
			text, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				return fault.Invalid(at.String(), "%s is not valid base64", at)
			}
			data = string(text)
		}
	case document && mime != "application/pdf":
		return fault.Invalid(at.String(), "%s is a document of type %q; this provider accepts application/pdf and text", at, mime)
	case !document && !imageTypes[mime]:
		return fault.Invalid(at.String(), "%s is an image of type %q; this provider accepts image/jpeg, image/png, image/gif and image/webp", at, mime)
	}
	e.b = append(e.b, `{"type":"`...)
	e.b = append(e.b, kind...)
	e.b = append(e.b, `","media_type":`...)
	e.b = wire.AppendJSONString(e.b, mime)
	str(e, "data", data)
	e.b = append(e.b, '}')
	return nil
}

var imageTypes = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

// textual reports whether a document's type is text to the provider.
func textual(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || mime == "application/xml"
}
