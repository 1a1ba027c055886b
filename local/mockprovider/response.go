package mockprovider

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

type choiceMode uint8

const (
	chooseAuto choiceMode = iota
	chooseNone
	chooseAny
	chooseNamed
)

type stopKind uint8

const (
	stopEnd stopKind = iota
	stopLength
	stopSequence
	stopTools
	stopRefused
)

type tool struct {
	name   string
	schema value
}

// job is a valid request, whatever its dialect.
type job struct {
	model     string
	seed      uint32
	prompt    int64 // tokens
	lastUser  string
	toolText  string // of the tool results that the conversation ends with
	afterTool bool
	tools     []tool
	choice    choiceMode
	named     string
	parallel  bool
	schema    value // of a response that must match a schema
	anyJSON   bool
	maxTokens int64 // 0: no bound
	stops     []string
	thinking  bool
	effort    int64 // tokens of thinking
	st        *steering
}

// call is one tool call of a response. args is the complete JSON text.
type call struct {
	name   string
	args   string
	pieces []string
}

// modelOutput is what the model says: pieces are tokens.
type modelOutput struct {
	thinking []string
	text     []string
	calls    []call
	stop     stopKind
	matched  string // the stop sequence
	hidden   int64  // reasoning that is not shown
}

// generated counts the tokens of a response by class.
func (a *modelOutput) generated() (output, reasoning int64) {
	output = int64(len(a.text))
	for i := range a.calls {
		output += callTokens(&a.calls[i])
	}
	return output, int64(len(a.thinking)) + a.hidden
}

// callTokens counts a call: one token for its name and one for each piece.
func callTokens(c *call) int64 { return 1 + int64(len(c.pieces)) }

// respond makes the response; choice distinguishes the responses of one request.
func (j *job) respond(choice int) modelOutput {
	seed := j.seed + uint32(choice)*0x9E3779B9
	var a modelOutput
	if j.thinking {
		a.thinking = words(seed^0x5bd1e995, max(3, int(j.effort)))
	}
	if j.st.reasoning > 0 && !j.thinking {
		a.hidden = int64(j.st.reasoning)
	}
	if j.st.reject {
		a.text, a.stop = split("I cannot help with that."), stopRefused
	} else if calls := j.chooseCalls(seed); calls != nil {
		a.calls, a.stop = calls, stopTools
	} else {
		a.text = j.say(seed)
		a.text, a.matched = stopAt(a.text, j.stops)
		if a.matched != "" {
			a.stop = stopSequence
		}
	}
	j.bound(&a)
	return a
}

// bound cuts a response off at max_tokens: thinking counts first, then text, then calls. The
// last call may be cut within its arguments.
func (j *job) bound(a *modelOutput) {
	if j.maxTokens == 0 {
		return
	}
	left := j.maxTokens - a.hidden
	cut := func(pieces []string) []string {
		if int64(len(pieces)) <= left {
			left -= int64(len(pieces))
			return pieces
		}
		pieces, left, a.stop, a.matched = pieces[:max(0, left)], 0, stopLength, ""
		return pieces
	}
	a.thinking = cut(a.thinking)
	a.text = cut(a.text)
	for i := range a.calls {
		if left <= 1 {
			a.calls, a.stop = a.calls[:i], stopLength
			return
		}
		left--
		a.calls[i].pieces = cut(a.calls[i].pieces)
		a.calls[i].args = strings.Join(a.calls[i].pieces, "")
	}
}

// chooseCalls returns the tool calls of a response; nil: the response is text.
func (j *job) chooseCalls(seed uint32) []call {
	if len(j.tools) == 0 || j.choice == chooseNone || j.st.noTools || j.afterTool && j.choice == chooseAuto && j.st.tools == 0 {
		return nil
	}
	if c := j.scripted(); c != nil {
		return c
	}
	picked := []tool{j.tools[0]}
	for _, t := range j.tools {
		if j.choice == chooseNamed && t.name == j.named || j.choice != chooseNamed && mentions(j.lastUser, t.name) {
			picked[0] = t
			break
		}
	}
	want := j.st.tools
	if j.st.parallel || j.model == "mock-tools" {
		want = max(want, len(j.tools), 1)
		if j.st.parallel {
			want = max(want, 2)
		}
		if j.choice != chooseNamed {
			picked = j.tools
		}
	}
	if want < 1 || !j.parallel {
		want = 1
	}
	calls := make([]call, want)
	for i := range calls {
		t := picked[i%len(picked)]
		calls[i] = call{name: t.name, args: "{}"}
		if t.schema.kind == object {
			calls[i].args = string(appendSample(nil, t.schema, t.schema, seed+uint32(i), 0))
		}
		calls[i].pieces = chop(calls[i].args, 8)
	}
	return calls
}

// scripted returns the call that the conversation prescribes; nil if there is none, or if the
// request does not have the tool.
func (j *job) scripted() []call {
	if j.st.call == "" {
		return nil
	}
	for _, t := range j.tools {
		if t.name == j.st.call {
			return []call{{name: t.name, args: j.st.callArgs, pieces: chop(j.st.callArgs, 8)}}
		}
	}
	return nil
}

// mentions reports whether a message mentions a tool: by its name, or by a word of the name
// that has at least five letters ("weather" for get_weather).
func mentions(message, name string) bool {
	if message == "" {
		return false
	}
	message = strings.ToLower(message)
	name = strings.ToLower(name)
	if strings.Contains(message, name) {
		return true
	}
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' }) {
		if len(w) >= 5 && strings.Contains(message, w) {
			return true
		}
	}
	return false
}

// say returns the words of a response.
func (j *job) say(seed uint32) []string {
	st := j.st
	switch {
	case st.say != "":
		return split(st.say)
	case st.echo || j.model == "mock-echo":
		return split(withoutDirectives(j.lastUser))
	case j.schema.kind == object:
		return chop(string(appendSample(nil, j.schema, j.schema, seed, 0)), 8)
	case j.anyJSON:
		return chop(`{"answer":`+string(appendString(nil, strings.Join(words(seed, 4), "")))+`}`, 8)
	case st.splitUTF8:
		return split("naïve café — 東京 🙂 straße " + strconv.FormatUint(uint64(seed), 36) + " добрый день, été.")
	case st.chunks > 0:
		return words(seed, st.chunks)
	case j.afterTool:
		return split("The tool says: " + clip(j.toolText, 400))
	}
	generated := words(seed, 9+int(seed%8))
	generated[0] = " " + generated[0]
	return append([]string{"Mock", " answer", " " + strconv.FormatUint(uint64(seed), 36) + ":"}, generated...)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

var vocabulary = [32]string{
	" the", " quick", " brown", " fox", " jumps", " over", " a", " lazy", " dog", " while", " rain", " falls", " on", " green", " hills", " and",
	" seven", " ships", " sail", " home", " under", " bright", " stars", " with", " salt", " in", " their", " old", " ropes", " as", " bells", " ring",
}

// words returns n pieces that depend only on the seed.
func words(seed uint32, n int) []string {
	out := make([]string, n)
	x := seed | 1
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = vocabulary[x>>27]
	}
	if n > 0 {
		out[0] = strings.TrimPrefix(out[0], " ")
		if n > 1 && len(out[n-1]) > 0 {
			out[n-1] += "."
		}
	}
	return out
}

// split cuts a text into words, each with the space before it.
func split(s string) []string {
	var out []string
	start := 0
	for i := 1; i < len(s); i++ {
		if (s[i] == ' ' || s[i] == '\n') && s[i-1] != ' ' && s[i-1] != '\n' {
			out = append(out, s[start:i])
			start = i
		}
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// chop cuts a text into pieces of about n bytes, but never within a character.
func chop(s string, n int) []string {
	out := make([]string, 0, len(s)/n+1)
	for len(s) > n {
		at := n
		for at < len(s) && !utf8.RuneStart(s[at]) {
			at++
		}
		out = append(out, s[:at])
		s = s[at:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

// stopAt ends the pieces before the first stop sequence that they contain.
func stopAt(pieces, stops []string) ([]string, string) {
	if len(stops) == 0 {
		return pieces, ""
	}
	whole, at, matched := strings.Join(pieces, ""), -1, ""
	for _, s := range stops {
		if i := strings.Index(whole, s); i >= 0 && (at < 0 || i < at) {
			at, matched = i, s
		}
	}
	if at < 0 {
		return pieces, ""
	}
	for i, p := range pieces {
		if at <= len(p) {
			pieces[i] = p[:at]
			if at == 0 {
				return pieces[:i], matched
			}
			return pieces[:i+1], matched
		}
		at -= len(p)
	}
	return pieces, matched
}

// tokensOf is how many tokens a text costs: one for four bytes, rounded up.
func tokensOf(s string) int64 { return int64(len(s)+3) / 4 }
