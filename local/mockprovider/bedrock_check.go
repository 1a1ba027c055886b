package mockprovider

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// converseRequest is a Converse request that is being checked.
type converseRequest struct {
	job
	cache     cacheWalk
	turns     []turn
	tooling   bool // there is a tool call or result in the history
	documents []string
	omitted   bool
}

// named is a pattern for names and the most bytes that a name may have. A length within the
// pattern would make it large, and every start of the process compiles it.
type named struct {
	most int
	form *regexp.Regexp
}

func (n named) matches(s string) bool { return len(s) <= n.most && n.form.MatchString(s) }

var documentName = named{200, regexp.MustCompile(`^[a-zA-Z0-9\s\-()\[\]]+$`)}

// bedrockError is the service's error for one that Anthropic would send; nil for none.
func bedrockError(e *apiError) *apiError {
	if e == nil || e.typ != "" {
		return e
	}
	return bedrockInvalid("The model returned the following errors: " + e.message)
}

func checkConverse(x *exchange, v value) (*converseRequest, *apiError) {
	if e := messageError(bodies()["converse"].check(v, "")); e != nil {
		return nil, bedrockError(e)
	}
	q := &converseRequest{job: job{model: x.model, st: &x.st, parallel: true, seed: seedOf(v.get("messages").s)}}
	q.cache.on = strings.Contains(v.s, `"cachePoint"`)
	for _, check := range []func(value) *apiError{q.toolConfig, q.system, q.steer, q.messages, q.inference, q.additional} {
		if e := check(v); e != nil {
			return nil, bedrockError(e)
		}
	}
	if q.tooling && v.get("toolConfig").kind == absent {
		return nil, bedrockInvalid("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	}
	return q, nil
}

func (q *converseRequest) toolConfig(v value) *apiError {
	c := v.get("toolConfig")
	for _, t := range c.get("tools").arr {
		spec := t.get("toolSpec")
		if !spec.given() {
			if e := q.point(t.get("cachePoint")); e != nil {
				return e
			}
			continue
		}
		if q.has(spec.get("name").s) {
			return invalid("The tool %s is already defined at toolConfig.tools.", spec.get("name").s)
		}
		q.cache.add(&q.job, spec.s)
		q.tools = append(q.tools, tool{spec.get("name").s, spec.at("inputSchema.json")})
	}
	if c.given() && len(q.tools) == 0 {
		return invalid("toolConfig.tools must hold a toolSpec")
	}
	choice := c.get("toolChoice")
	if choice.get("any").given() {
		q.choice = chooseAny
	}
	if name := choice.get("tool").get("name"); name.given() {
		if q.choice, q.named = chooseNamed, name.s; !q.has(name.s) {
			return invalid("The tool %s in toolChoice is not defined in toolConfig.tools.", q.named)
		}
	}
	return nil
}

// point reads a cache point, which applies to the content before it.
func (q *converseRequest) point(c value) *apiError {
	if !strings.Contains(q.model, "claude") && !strings.Contains(q.model, "nova") && !strings.HasPrefix(q.model, "arn:") {
		return awsRejection("AccessDeniedException", "You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.")
	}
	ttl := 5 * time.Minute
	if c.get("ttl").s == "1h" {
		ttl = time.Hour
	}
	return q.cache.mark(q.prompt, ttl)
}

func (q *converseRequest) system(v value) *apiError {
	for _, b := range v.get("system").arr {
		if e := q.block(b, &turn{}); e != nil {
			return e
		}
	}
	return nil
}

// steer reads the directives of the last user message with text.
func (q *converseRequest) steer(v value) *apiError {
	for _, m := range slices.Backward(v.get("messages").arr) {
		if s := plainText(m.get("content")); s != "" && m.get("role").s == "user" {
			q.lastUser = s
			return steerBy(q.st, s)
		}
	}
	return nil
}

func (q *converseRequest) messages(v value) *apiError {
	list := v.get("messages").arr
	for i, m := range list {
		t := turn{role: m.get("role").s, at: i}
		n := len(q.turns)
		switch {
		case t.role == "system" && !q.mayHaveSystem(list, i):
			return invalid("role 'system' is not supported on this model, or here")
		case t.role == "assistant" && n == 0:
			return invalid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
		case n > 0 && q.turns[n-1].role == t.role:
			return invalid("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		}
		document := false
		for _, b := range m.get("content").arr {
			document = document || b.get("document").given()
			if e := q.block(b, &t); e != nil {
				return e
			}
		}
		if document && t.text == "" {
			return invalid("A text block is required when using documents. Add a text block to the message at messages.%d", i)
		}
		if t.role != "system" {
			q.prompt += 4
			q.turns = append(q.turns, t)
		}
	}
	q.afterTool = len(q.turns[len(q.turns)-1].results) > 0
	return pairedTurns(q.turns)
}

// mayHaveSystem reports whether a message may have the role system. Only the newest models of
// Claude accept it: after a turn of the user, and as the last message or before one of the assistant.
func (q *converseRequest) mayHaveSystem(all []value, i int) bool {
	id := q.model[strings.Index(q.model, "anthropic.")+1:]
	return slices.ContainsFunc([]string{"claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5", "claude-fable-5"}, func(name string) bool {
		return strings.Contains(id, name)
	}) && !strings.Contains(id, "-no-system") && i > 0 && all[i-1].get("role").s == "user" && (i == len(all)-1 || all[i+1].get("role").s == "assistant")
}

// block reads one content block.
func (q *converseRequest) block(b value, t *turn) *apiError {
	name, inner := b.obj[0].name, b.obj[0].v
	if t.first == "" {
		t.first = name
	}
	switch {
	case t.role == "system" && name != "text" && name != "cachePoint", t.role == "user" && (name == "toolUse" || name == "reasoningContent"), t.role == "assistant" && name == "toolResult":
		return invalid("messages.%d: %s content is not allowed in messages of the %s", t.at, name, t.role)
	case name == "cachePoint":
		return q.point(inner)
	case name == "toolResult":
		q.tooling = true
		t.results = append(t.results, inner.get("toolUseId").s)
		for _, c := range inner.get("content").arr {
			q.toolText += c.get("text").s
			if e := q.part(c.obj[0].name, c.obj[0].v); e != nil {
				return e
			}
		}
		return nil
	case name == "toolUse":
		q.tooling = true
		t.calls = append(t.calls, inner.get("toolUseId").s)
	case name == "reasoningContent": // only what this server has signed, unchanged
		shown, hidden := inner.get("reasoningText"), inner.get("redactedContent")
		if hidden.given() && !unsealed(signRedacted, hidden.s) || shown.given() && !signed(shown.get("text").s, shown.get("signature").s) {
			return invalid("messages.%d: Invalid `signature` in `thinking` block", t.at)
		}
		return nil
	case name == "text":
		t.text += inner.s
	}
	t.unordered = t.unordered || t.role == "user" && len(t.results) == 0
	return q.part(name, inner)
}

// part counts a block, or a part of a result.
func (q *converseRequest) part(name string, v value) *apiError {
	switch name {
	case "document":
		title := v.get("name").s
		if strings.Contains(title, "  ") || slices.Contains(q.documents, title) {
			return invalid("Documents with the same name are not allowed, and a name has no two spaces in a row: %s", title)
		}
		q.documents = append(q.documents, title)
		fallthrough
	case "image", "video", "audio":
		q.cache.addTokens(&q.job, v.s, imageTokens)
	default:
		q.cache.add(&q.job, v.s)
	}
	return nil
}

func (q *converseRequest) inference(v value) *apiError {
	c := v.get("inferenceConfig")
	q.maxTokens, _ = c.get("maxTokens").integer()
	for _, s := range c.get("stopSequences").arr {
		q.stops = append(q.stops, s.s)
	}
	if len(v.get("requestMetadata").obj) > 16 {
		return invalid("requestMetadata may have 16 entries")
	}
	q.schema, _ = parseJSON(v.at("outputConfig.textFormat.structure.jsonSchema.schema").s)
	return nil
}

// additional reads the fields that go to the model itself: for Claude they must be fields
// that Claude knows.
func (q *converseRequest) additional(v value) *apiError {
	a := v.get("additionalModelRequestFields")
	if !strings.Contains(q.model, "claude") && !strings.HasPrefix(q.model, "arn:") {
		q.thinking, q.effort = a.at("reasoningConfig.type").s == "enabled", 12
		return nil
	}
	if e := messageError(bodies()["converse-claude"].check(a, "additionalModelRequestFields.")); e != nil {
		return e
	}
	choice := a.get("tool_choice")
	if choice.get("disable_parallel_tool_use").yes {
		q.parallel = false
	}
	switch choice.get("type").s {
	case "any":
		q.choice = chooseAny
	case "tool":
		q.choice, q.named = chooseNamed, choice.get("name").s
	}
	t, temperature := a.get("thinking"), v.at("inferenceConfig.temperature")
	n, _ := t.get("budget_tokens").integer()
	typ := t.get("type").s
	q.omitted, q.effort = t.get("display").s == "omitted", 24
	if q.thinking = typ == "enabled" || typ == "adaptive"; !q.thinking {
		return nil
	}
	switch {
	case typ == "enabled" && (n < 1024 || q.maxTokens != 0 && n >= q.maxTokens):
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case temperature.given() && temperature.float() != 1:
		return invalid("`temperature` may only be set to 1 when thinking is enabled.")
	case q.choice == chooseAny || q.choice == chooseNamed:
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	case typ == "enabled" && len(q.turns[len(q.turns)-1].results) > 0:
		return thinkingFirst(q.turns)
	}
	return nil
}
