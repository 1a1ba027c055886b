package mockprovider

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// geminiResponse writes a generateContent response, complete or in chunks.
type geminiResponse struct {
	q         *geminiRequest
	x         *exchange
	id        string
	responses []modelOutput
	usage     Usage
}

// generateContent serves :generateContent and :streamGenerateContent.
func generateContent(x *exchange, vertex, stream bool) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	q, e := checkGemini(x, v, vertex)
	if e != nil {
		return e
	}
	id, done, e := x.begin("resp-", q.seed, stream)
	if done {
		return e
	}
	g := &geminiResponse{q: q, x: x, id: id}
	g.usage.Input = q.prompt
	if c := int64(q.st.cached); c > 0 {
		g.usage.CacheRead = min(c, q.prompt)
		g.usage.Input -= g.usage.CacheRead
	}
	for i := range q.n {
		a := q.respond(i)
		for k := range a.calls { // a call that was cut off is left out
			if _, err := parseJSON(a.calls[k].args); err != nil && a.calls[k].args != "" {
				a.calls, a.stop = a.calls[:k], stopLength
				break
			}
		}
		out, think := a.generated()
		g.usage.Output, g.usage.Reasoning = g.usage.Output+out, g.usage.Reasoning+think
		g.responses = append(g.responses, a)
	}
	switch query, _ := url.ParseQuery(x.query); {
	case !stream:
		x.plain(g.id, g.body(), g.usage)
	case query.Get("alt") == "sse":
		g.stream()
	default:
		return invalid("the only stream here is that of alt=sse")
	}
	return nil
}

// geminiCountTokens serves :countTokens.
func geminiCountTokens(x *exchange, vertex bool) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if inner := v.get("generateContentRequest"); inner.kind == object {
		v = inner
	}
	q, e := checkGemini(x, v, vertex)
	if e != nil {
		return e
	}
	return listed(x, fill(`{"totalTokens":$}`, q.prompt))
}

func (g *geminiResponse) finish(a *modelOutput) string {
	if g.q.st.finish != "" {
		return g.q.st.finish
	}
	switch a.stop {
	case stopLength:
		return "MAX_TOKENS"
	case stopRefused:
		return "SAFETY"
	}
	return "STOP"
}

// sign returns the signature of a part, as a field.
func (g *geminiResponse) sign(part string) string {
	v, _ := parseJSON(part)
	return part[:len(part)-1] + `,"thoughtSignature":` + quoted(seal(g.q.signing(v), "x")) + `}`
}

func thoughtPart(s string) string { return `{"text":` + quoted(s) + `,"thought":true}` }
func textPart(s string) string    { return `{"text":` + quoted(s) + `}` }

// callParts are the calls. The first is signed if the model thinks; newer models add ids.
func (g *geminiResponse) callParts(a *modelOutput, choice int) []string {
	var out []string
	for i := range a.calls {
		id, args := json.RawMessage{}, json.RawMessage{}
		if generation(g.q.model) == 30 {
			id = fill(`"id":$,`, "fc-"+g.id+"-"+strconv.Itoa(choice)+"-"+strconv.Itoa(i))
		}
		if a.calls[i].args != "" {
			args = fill(`,"args":$`, json.RawMessage(a.calls[i].args))
		}
		part := string(fill(`{"functionCall":{$"name":$$}}`, id, a.calls[i].name, args))
		if i == 0 && generation(g.q.model) >= 25 {
			part = g.sign(part)
		}
		out = append(out, part)
	}
	return out
}

// candidate writes one candidate with its parts; finish "" means that it has not ended.
func (g *geminiResponse) candidate(choice int, parts []string, finish string) json.RawMessage {
	b := fill(`{"content":{"parts":[$],"role":"model"}`, json.RawMessage(strings.Join(parts, ",")))
	if finish != "" {
		b = append(b, fill(`,"finishReason":$`, finish)...)
	}
	return append(b, fill(`,"index":$}`, choice)...)
}

// tail writes usage and names, and closes the object. whole: the counts are final.
func (g *geminiResponse) tail(b []byte, u Usage, whole bool) []byte {
	if !g.q.st.noUsage {
		b = append(b, fill(`,"usageMetadata":{"promptTokenCount":$`, u.prompt())...)
		if u.CacheRead > 0 {
			b = append(b, fill(`,"cachedContentTokenCount":$,"cacheTokensDetails":[{"modality":"TEXT","tokenCount":$}]`, u.CacheRead, u.CacheRead)...)
		}
		if u.Output > 0 || whole {
			b = append(b, fill(`,"candidatesTokenCount":$`, u.Output)...)
		}
		if u.Reasoning > 0 {
			b = append(b, fill(`,"thoughtsTokenCount":$`, u.Reasoning)...)
		}
		b = append(b, fill(`,"totalTokenCount":$,"promptTokensDetails":[{"modality":"TEXT","tokenCount":$}]}`, u.prompt()+u.Output+u.Reasoning, u.prompt())...)
	}
	return append(b, fill(`,"modelVersion":$,"responseId":$}`, g.x.model, g.id)...)
}

func (g *geminiResponse) body() []byte {
	var candidates []json.RawMessage
	for i := range g.responses {
		a := &g.responses[i]
		var parts []string
		if g.q.thoughts && len(a.thinking) > 0 {
			parts = append(parts, thoughtPart(strings.Join(a.thinking, "")))
		}
		if len(a.text) > 0 {
			t := textPart(strings.Join(a.text, ""))
			if generation(g.q.model) == 30 && len(a.calls) == 0 {
				t = g.sign(t)
			}
			parts = append(parts, t)
		}
		parts = append(parts, g.callParts(a, i)...)
		candidates = append(candidates, g.candidate(i, parts, g.finish(a)))
	}
	return g.tail(fill(`{"candidates":$`, list(candidates)), g.usage, true)
}

// geminiPiece is a chunk that is still to be sent.
type geminiPiece struct {
	choice            int
	parts             []string
	finish            string
	output, reasoning int64
}

// pieces are the chunks of the stream: thoughts, words, calls, the end.
func (g *geminiResponse) pieces() []geminiPiece {
	var out []geminiPiece
	for i := range g.responses {
		a := &g.responses[i]
		if g.q.thoughts {
			for _, t := range a.thinking {
				out = append(out, geminiPiece{choice: i, parts: []string{thoughtPart(t)}, reasoning: 1})
			}
		} else if n := int64(len(a.thinking)) + a.hidden; n > 0 {
			out = append(out, geminiPiece{choice: i, parts: []string{textPart("")}, reasoning: n})
		}
		for _, t := range a.text {
			out = append(out, geminiPiece{choice: i, parts: []string{textPart(t)}, output: 1})
		}
		for k, c := range g.callParts(a, i) {
			out = append(out, geminiPiece{choice: i, parts: []string{c}, output: callTokens(&a.calls[k])})
		}
		end := textPart("")
		if generation(g.q.model) == 30 && len(a.calls) == 0 {
			end = g.sign(end)
		}
		out = append(out, geminiPiece{choice: i, parts: []string{end}, finish: g.finish(a)})
	}
	return out
}

func (g *geminiResponse) chunk(p geminiPiece, u Usage, last bool) []byte {
	return g.tail(fill(`{"candidates":[$]`, g.candidate(p.choice, p.parts, p.finish)), u, last)
}

// stream sends server-sent events with the provider's line ends. The event with the finish
// reason is the last.
func (g *geminiResponse) stream() {
	g.x.st.crlf = true
	s := g.x.startStream(g.id, g.usage)
	pieces := g.pieces()
	for i, p := range pieces {
		s.spend(p.output, p.reasoning)
		if i == len(pieces)-1 {
			s.finish()
			s.last("", g.chunk(p, g.usage, true))
			return
		}
		s.event("", g.chunk(p, s.usageSoFar(), false))
	}
}
