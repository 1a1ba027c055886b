package mockprovider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// messageRequest is a valid Anthropic request.
type messageRequest struct {
	job
	stream     bool
	counting   bool // count_tokens: no max_tokens
	since2026  bool // API version 2026-10-21
	omitted    bool // thinking is not displayed
	thinkingOn bool // the request turns it on, not the model's name
	turns      []turn
	cache      cacheWalk
}

// turn is what the rules about the order of messages need to know of a message.
type turn struct {
	role      string
	at        int      // position in messages
	first     string   // type of its first block
	calls     []string // ids of calls of tools
	results   []string // ids of results of tools
	unordered bool     // a result comes after another block
	text      string
}

func invalid(format string, args ...any) *apiError {
	return badRequest("", "", fmt.Sprintf(format, args...))
}

// version2026 is the API version that removed the sampling fields. It also refuses
// documents in assistant messages and citations in user messages.
const version2026 = "2026-10-21"

var samplingFields = []string{"temperature", "top_p", "top_k"}

// turnFields have no meaning when tokens are only counted.
var turnFields = append([]string{"max_tokens", "stream", "stop_sequences", "metadata", "service_tier"}, samplingFields...)

// betaFields are only valid with an anthropic-beta header.
var betaFields = []string{"mcp_servers", "context_management", "output_format"}

// messageError is the error of Anthropic for a violation; nil for none.
func messageError(v *violation) *apiError {
	if v == nil {
		return nil
	}
	at := strings.NewReplacer("[", ".", "]", "").Replace(v.at)
	switch v.what {
	case "missing":
		return invalid("%s: Field required", at)
	case "unknown":
		return invalid("%s: Extra inputs are not permitted", at)
	case "below":
		return invalid("%s: Input should be greater than or equal to %v", at, v.rule.lo)
	case "above":
		return invalid("%s: Input should be less than or equal to %v", at, v.rule.hi)
	case "value", "one":
		if v.rule.form != "" {
			return invalid("%s: Input should be %s", at, v.rule.form)
		}
		return invalid("%s: Input should be '%s', not '%s'", at, strings.Join(v.rule.values, "', '"), clip(v.got.s, 80))
	}
	return invalid("%s: Input should be %s", at, cmp.Or(map[byte]string{'s': "a valid string", 'a': "a valid list", 'l': "a valid list", 'o': "a valid dictionary", 'b': "a valid boolean"}[(v.rule.kinds + " ")[0]], "a valid number"))
}

// checkMessage reads a messages or a count_tokens request.
func checkMessage(x *exchange, v value, counting bool) (*messageRequest, *apiError) {
	version := x.r.Header.Get("Anthropic-Version")
	if version != "2023-06-01" && version != version2026 {
		return nil, invalid("anthropic-version: %q is not a valid version. Please use a valid version.", version)
	}
	for _, m := range v.obj {
		if counting && slices.Contains(turnFields, m.name) || version == version2026 && slices.Contains(samplingFields, m.name) || x.r.Header.Get("Anthropic-Beta") == "" && slices.Contains(betaFields, m.name) {
			return nil, invalid("%s: Extra inputs are not permitted", m.name)
		}
	}
	if e := messageError(bodies()["message"].check(v, "")); e != nil {
		return nil, e
	}
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &messageRequest{job: job{model: x.model, st: &x.st, parallel: true}, counting: counting, since2026: version == version2026}
	if e := q.read(v); e != nil {
		return nil, e
	}
	return q, firstFault(q.mark(v), q.thinkingField(v), q.toolChoice(v.get("tool_choice")), q.outputConfig(v))
}

// read reads a body that its rules allow.
func (q *messageRequest) read(v value) *apiError {
	q.cache.on = strings.Contains(v.s, `"cache_control"`)
	q.seed = seedOf(v.get("messages").s)
	if !q.counting {
		n, ok := v.get("max_tokens").integer()
		if !ok {
			return invalid("max_tokens: Field required")
		}
		if n > maxOutput(q.model) {
			return invalid("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", n, maxOutput(q.model), q.model)
		}
		q.maxTokens = n
	}
	q.stream = v.get("stream").yes
	for _, s := range v.get("stop_sequences").arr {
		q.stops = append(q.stops, s.s)
	}
	system := v.get("system")
	e := q.toolList(v.get("tools"))
	if system.kind == text {
		q.cache.add(&q.job, system.s)
	}
	for _, b := range system.arr {
		q.cache.add(&q.job, b.get("text").s)
		e = firstFault(e, q.mark(b))
	}
	return firstFault(e, q.findSteering(v.get("messages").arr), q.messages(v.get("messages").arr))
}

// findSteering reads the directives of the last user message with text before the messages
// are checked, so that they apply to the checks.
func (q *messageRequest) findSteering(all []value) *apiError {
	for _, m := range slices.Backward(all) {
		if s := plainText(m.get("content")); s != "" && m.get("role").s == "user" {
			q.lastUser = s
			return steerBy(q.st, s)
		}
	}
	return nil
}

// plainText joins the texts of a content.
func plainText(c value) string {
	if c.kind == text {
		return c.s
	}
	var b strings.Builder
	for _, p := range c.arr {
		if kind := p.get("type").s; kind == "" || strings.EqualFold(kind, "text") {
			b.WriteString(p.get("text").s)
		}
	}
	return b.String()
}

// maxOutput is the highest max_tokens that a model accepts.
func maxOutput(model string) int64 {
	switch {
	case strings.HasPrefix(model, "claude-3-5-"):
		return 8192
	case strings.HasPrefix(model, "claude-3-") && !strings.HasPrefix(model, "claude-3-7"):
		return 4096
	}
	return 128_000
}

func (q *messageRequest) toolList(list value) *apiError {
	for _, t := range list.arr {
		name := t.get("name").s
		if slices.ContainsFunc(q.tools, func(o tool) bool { return o.name == name }) {
			return invalid("tools: Tool names must be unique.")
		}
		q.cache.add(&q.job, t.s)
		if typ := t.get("type"); typ.given() && typ.s != "custom" {
			continue // a tool that the provider runs itself
		}
		if e := q.mark(t); e != nil {
			return e
		}
		q.tools = append(q.tools, tool{name, t.get("input_schema")})
	}
	return nil
}

func (q *messageRequest) toolChoice(c value) *apiError {
	if !c.given() {
		return nil
	}
	if len(q.tools) == 0 {
		return invalid("tool_choice: tool_choice may only be specified while providing tools")
	}
	q.parallel = !c.get("disable_parallel_tool_use").yes
	q.choice, q.named = map[string]choiceMode{"any": chooseAny, "none": chooseNone, "tool": chooseNamed}[c.get("type").s], c.get("name").s
	switch {
	case q.choice == chooseNamed && !q.has(q.named):
		return invalid("tool_choice.tool.name: Tool '%s' not found in provided tools", q.named)
	case q.thinkingOn && (q.choice == chooseAny || q.choice == chooseNamed):
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}

// has reports whether a request offers a tool.
func (j *job) has(name string) bool {
	return slices.ContainsFunc(j.tools, func(t tool) bool { return t.name == name })
}

func (q *messageRequest) outputConfig(v value) *apiError {
	f := v.at("output_config.format")
	if old := v.get("output_format"); old.given() {
		if f.given() {
			return invalid("output_format: may not be given together with output_config.format")
		}
		f = old
	}
	q.schema = f.get("schema")
	if a := q.schema.get("additionalProperties"); q.schema.get("type").s == "object" && (a.kind != boolean || a.yes) {
		return invalid("output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false")
	}
	return nil
}

// messages reads all turns, then checks the rules between them.
func (q *messageRequest) messages(all []value) *apiError {
	if len(all) == 0 {
		return invalid("messages: at least one message is required")
	}
	for i, m := range all {
		c := m.get("content")
		t := turn{role: m.get("role").s, at: i}
		if len(c.arr) == 0 && (c.kind == array || c.s == "") && (t.role != "assistant" || i < len(all)-1) {
			return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if c.kind == text {
			t.first, t.text = "text", c.s
			q.cache.add(&q.job, c.s)
		}
		for k, b := range c.arr {
			if e := q.block(b, &t, fmt.Sprintf("messages.%d.content.%d", i, k), k); e != nil {
				return e
			}
		}
		q.job.prompt += 4
		if n := len(q.turns); n > 0 && q.turns[n-1].role == t.role { // read as one
			q.turns[n-1].join(t)
			continue
		}
		q.turns = append(q.turns, t)
	}
	if q.turns[0].role != "user" {
		return invalid("messages: first message must use the \"user\" role")
	}
	last := q.turns[len(q.turns)-1]
	if last.role == "assistant" && last.text != strings.TrimRight(last.text, " \t\n") {
		return invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	q.afterTool = len(last.results) > 0
	return pairedTurns(q.turns)
}

func (t *turn) join(u turn) {
	t.unordered = t.unordered || u.unordered || len(u.results) > 0 && len(t.results) == 0
	t.calls, t.results = append(t.calls, u.calls...), append(t.results, u.results...)
	t.text += u.text
}

// pairedTurns checks that each call has one result at the start of the next turn.
func pairedTurns(turns []turn) *apiError {
	var calls []string
	for i, t := range append(turns, turn{}) {
		for _, id := range calls {
			if !slices.Contains(t.results, id) || t.unordered {
				return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", turns[i-1].at, id)
			}
		}
		for k, id := range t.results {
			if !slices.Contains(calls, id) {
				return invalid("messages.%d.content.0: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", t.at, id)
			}
			if slices.Contains(t.results[:k], id) {
				return invalid("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", t.at, k, id)
			}
		}
		calls = t.calls
	}
	return nil
}

// block reads one content block.
func (q *messageRequest) block(b value, t *turn, at string, k int) *apiError {
	typ := b.get("type").s
	if k == 0 {
		t.first = typ
	}
	switch typ {
	case "text":
		t.text += b.get("text").s
		if q.since2026 && t.role == "user" && len(b.get("citations").arr) > 0 {
			return invalid("%s.citations: citations are not permitted in user messages", at)
		}
		q.cache.add(&q.job, b.get("text").s)
	case "image", "document":
		if t.role != "user" && q.since2026 {
			return invalid("%s: `%s` blocks can only be in `user` messages", at, typ)
		}
		q.cache.addTokens(&q.job, b.get("source").s, imageTokens)
	case "tool_use":
		if t.calls = append(t.calls, b.get("id").s); slices.Contains(t.calls[:len(t.calls)-1], b.get("id").s) {
			return invalid("messages: `tool_use` ids must be unique")
		}
		q.cache.add(&q.job, b.s)
	case "tool_result":
		t.unordered = t.unordered || k > len(t.results)
		t.results = append(t.results, b.get("tool_use_id").s)
		if e := q.result(b.get("content"), at); e != nil {
			return e
		}
	case "thinking", "redacted_thinking":
		q.cache.add(&q.job, b.s)
		return checkThinking(b, at)
	default:
		q.cache.add(&q.job, b.s)
	}
	return q.mark(b)
}

func (q *messageRequest) result(c value, at string) *apiError {
	for _, p := range c.arr {
		switch p.get("type").s {
		case "text":
			q.cache.add(&q.job, p.get("text").s)
		case "image", "document":
			q.cache.addTokens(&q.job, p.get("source").s, imageTokens)
		default:
			q.cache.add(&q.job, p.s)
			continue
		}
		if e := q.mark(p); e != nil {
			return e
		}
	}
	q.toolText = strings.TrimSpace(q.toolText + " " + plainText(c))
	if c.kind == text {
		q.cache.add(&q.job, c.s)
	}
	return nil
}
