package mockprovider

import (
	"net/url"
	"strconv"
	"strings"
)

// geminiAnswer writes a generateContent response, complete or in chunks.
type geminiAnswer struct {
	q       *geminiRequest
	x       *exchange
	id      string
	answers []answer
	usage   Usage
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
	if e := x.settle(q.seed); e != nil {
		return e
	}
	g := &geminiAnswer{q: q, x: x, id: x.newID("resp-", q.seed)}
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, g.id, stream), true
	if done, e := x.misbehave(); done {
		return e
	}
	g.usage.Input = q.prompt
	if c := int64(q.st.cached); c > 0 {
		g.usage.CacheRead = min(c, q.prompt)
		g.usage.Input -= g.usage.CacheRead
	}
	if !strings.HasPrefix(q.st.finish, "prompt-") {
		for i := range q.n {
			a := q.answer(i)
			for k := range a.calls { // a call that was cut off is left out
				if _, err := parseJSON(a.calls[k].args); err != nil && a.calls[k].args != "" {
					a.calls, a.stop = a.calls[:k], stopLength
					break
				}
			}
			out, think := a.generated()
			g.usage.Output, g.usage.Reasoning = g.usage.Output+out, g.usage.Reasoning+think
			g.answers = append(g.answers, a)
		}
	}
	switch query, _ := url.ParseQuery(x.query); {
	case !stream:
		x.plain(g.id, g.body(), g.usage)
	case query.Get("alt") == "sse":
		g.stream()
	default:
		x.plain(g.id, append(append([]byte{'['}, strings.Join(g.chunks(), "\n,\r\n")...), ']'), g.usage)
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
	return listed(x, append(strconv.AppendInt([]byte(`{"totalTokens":`), q.prompt, 10), '}'))
}

func (g *geminiAnswer) finish(a *answer) string {
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

// sign returns the signature of a part, as a member.
func (g *geminiAnswer) sign(part string) string {
	v, _ := parseJSON(part)
	return part[:len(part)-1] + `,"thoughtSignature":` + quoted(seal(g.q.signing(v), "x")) + `}`
}

func thoughtPart(s string) string { return `{"text":` + quoted(s) + `,"thought":true}` }
func textPart(s string) string    { return `{"text":` + quoted(s) + `}` }

// callParts are the calls. The first is signed if the model thinks; newer models add ids.
func (g *geminiAnswer) callParts(a *answer, choice int) []string {
	var out []string
	for i := range a.calls {
		b := []byte(`{"functionCall":{`)
		if generation(g.q.model) == 30 {
			b = append(appendString(append(b, `"id":`...), "fc-"+g.id+"-"+strconv.Itoa(choice)+"-"+strconv.Itoa(i)), ',')
		}
		b = appendString(append(b, `"name":`...), a.calls[i].name)
		if a.calls[i].args != "" {
			b = append(append(b, `,"args":`...), a.calls[i].args...)
		}
		part := string(append(b, `}}`...))
		if i == 0 && generation(g.q.model) >= 25 {
			part = g.sign(part)
		}
		out = append(out, part)
	}
	return out
}

// candidate writes one candidate with its parts; finish "" means that it has not ended.
func (g *geminiAnswer) candidate(b []byte, choice int, parts []string, finish string, tokens []string) []byte {
	b = append(b, `{"content":{"parts":[`...)
	b = append(b, strings.Join(parts, ",")...)
	b = append(b, `],"role":"model"}`...)
	if finish != "" {
		b = appendString(append(b, `,"finishReason":`...), finish)
	}
	if g.q.logprobs && len(tokens) > 0 {
		b = g.logprobs(b, tokens)
	}
	return append(strconv.AppendInt(append(b, `,"index":`...), int64(choice), 10), '}')
}

func (g *geminiAnswer) logprobs(b []byte, tokens []string) []byte {
	one := func(b []byte, t string, rank int) []byte {
		b = appendString(append(b, `{"token":`...), t)
		return append(strconv.AppendFloat(append(b, `,"logProbability":-`...), float64(rank)/10, 'f', -1, 64), '}')
	}
	b = append(b, `,"logprobsResult":{"chosenCandidates":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, t, 1)
	}
	b = append(b, `],"topCandidates":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"candidates":[`...)
		for k := range g.q.top {
			if k > 0 {
				b = append(b, ',')
				t = vocabulary[(int(seedOf(t))+k)&31]
			}
			b = one(b, t, k+1)
		}
		b = append(b, `]}`...)
	}
	return append(b, `]}`...)
}

// tail writes usage and names, and closes the object. whole: the counts are final.
func (g *geminiAnswer) tail(b []byte, u Usage, whole bool) []byte {
	if !g.q.st.noUsage {
		b = strconv.AppendInt(append(b, `,"usageMetadata":{"promptTokenCount":`...), u.prompt(), 10)
		total := u.prompt()
		if u.CacheRead > 0 {
			b = strconv.AppendInt(append(b, `,"cachedContentTokenCount":`...), u.CacheRead, 10)
			b = strconv.AppendInt(append(b, `,"cacheTokensDetails":[{"modality":"TEXT","tokenCount":`...), u.CacheRead, 10)
			b = append(b, `}]`...)
		}
		if u.Output > 0 || whole {
			b = strconv.AppendInt(append(b, `,"candidatesTokenCount":`...), u.Output, 10)
			total += u.Output
		}
		if u.Reasoning > 0 {
			b = strconv.AppendInt(append(b, `,"thoughtsTokenCount":`...), u.Reasoning, 10)
			total += u.Reasoning
		}
		b = strconv.AppendInt(append(b, `,"totalTokenCount":`...), total, 10)
		b = strconv.AppendInt(append(b, `,"promptTokensDetails":[{"modality":"TEXT","tokenCount":`...), u.prompt(), 10)
		b = append(b, `}]}`...)
	}
	b = appendString(append(b, `,"modelVersion":`...), g.x.model)
	return append(appendString(append(b, `,"responseId":`...), g.id), '}')
}

// blocked is the answer to a prompt that was blocked.
func (g *geminiAnswer) blocked() []byte {
	b := appendString([]byte(`{"promptFeedback":{"blockReason":`), strings.TrimPrefix(g.q.st.finish, "prompt-"))
	return g.tail(append(b, '}'), g.usage, false)
}

func (g *geminiAnswer) body() []byte {
	if len(g.answers) == 0 {
		return g.blocked()
	}
	b := []byte(`{"candidates":[`)
	for i := range g.answers {
		a := &g.answers[i]
		if i > 0 {
			b = append(b, ',')
		}
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
		b = g.candidate(b, i, parts, g.finish(a), a.text)
	}
	return g.tail(append(b, ']'), g.usage, true)
}

// geminiPiece is a chunk that is still to be sent.
type geminiPiece struct {
	choice            int
	parts             []string
	tokens            []string
	finish            string
	output, reasoning int64
}

// pieces are the chunks of the stream: thoughts, words, calls, the end.
func (g *geminiAnswer) pieces() []geminiPiece {
	var out []geminiPiece
	for i := range g.answers {
		a := &g.answers[i]
		if g.q.thoughts {
			for _, t := range a.thinking {
				out = append(out, geminiPiece{choice: i, parts: []string{thoughtPart(t)}, reasoning: 1})
			}
		} else if n := int64(len(a.thinking)) + a.hidden; n > 0 {
			out = append(out, geminiPiece{choice: i, parts: []string{textPart("")}, reasoning: n})
		}
		for _, t := range a.text {
			out = append(out, geminiPiece{choice: i, parts: []string{textPart(t)}, tokens: []string{t}, output: 1})
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

func (g *geminiAnswer) chunk(p geminiPiece, u Usage, last bool) []byte {
	b := g.candidate([]byte(`{"candidates":[`), p.choice, p.parts, p.finish, p.tokens)
	return g.tail(append(b, ']'), u, last)
}

// chunks writes the events of the stream as one list.
func (g *geminiAnswer) chunks() []string {
	if len(g.answers) == 0 {
		return []string{string(g.blocked())}
	}
	var out []string
	u := g.usage
	u.Output, u.Reasoning = 0, 0
	pieces := g.pieces()
	for i, p := range pieces {
		u.Output, u.Reasoning = u.Output+p.output, u.Reasoning+p.reasoning
		out = append(out, string(g.chunk(p, u, i == len(pieces)-1)))
	}
	return out
}

// stream sends server-sent events with the provider's line ends. The event with the finish
// reason is the last.
func (g *geminiAnswer) stream() {
	g.x.st.crlf = true
	s := g.x.startStream(g.id, g.usage)
	if len(g.answers) == 0 {
		s.finish()
		s.last("", g.blocked())
		return
	}
	pieces := g.pieces()
	for i, p := range pieces {
		s.spend(p.output, p.reasoning)
		if i == len(pieces)-1 {
			s.finish()
			s.last("", g.chunk(p, g.usage, true))
			return
		}
		if !s.event("", g.chunk(p, s.sofar(), false)) {
			return
		}
	}
}
