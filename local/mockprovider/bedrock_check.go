package mockprovider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// converseRequest is a Converse request that is being checked.
type converseRequest struct {
	job
	x         *exchange
	cache     cacheWalk
	turns     []turn
	tooling   bool // there is a tool call or result in the history
	documents []string
	omitted   bool
	thinks    bool
}

var converseFields = strings.Fields(`messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
	additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig`)

// members refuses fields that the service's structure does not have.
func members(v value, at string, names ...string) *apiError {
	if v.kind != object {
		return bedrockInvalid("Unexpected field type at " + at + ", expected an object")
	}
	for _, m := range v.obj {
		if !slices.Contains(names, m.name) {
			return bedrockInvalid("The model returned the following errors: " + strings.TrimPrefix(at+"."+m.name, ".") + ": Extra inputs are not permitted")
		}
	}
	return nil
}

// union checks that exactly one of the fields is there.
func union(v value, at string, names ...string) (string, value, *apiError) {
	if e := members(v, at, names...); e != nil {
		return "", value{}, e
	}
	if len(v.obj) != 1 {
		return "", value{}, bedrockInvalid("Unexpected field type at " + at + ": exactly one member must be set")
	}
	return v.obj[0].name, v.obj[0].v, nil
}

func checkConverse(x *exchange, v value) (*converseRequest, *apiError) {
	if firstText(x.model) {
		return nil, bedrockInvalid("This action doesn't support the model that you provided. Try again with a supported text or chat model.")
	}
	if e := members(v, "", converseFields...); e != nil {
		return nil, e
	}
	q := &converseRequest{job: job{model: x.model, st: &x.st, parallel: true, seed: seedOf(v.get("messages").s)}, x: x}
	q.cache.on = strings.Contains(v.s, `"cachePoint"`)
	for _, check := range []func(value) *apiError{q.tools, q.system, q.messages, q.inference, q.additional, q.settings} {
		if e := check(v); e != nil {
			return nil, e
		}
	}
	if q.tooling && v.get("toolConfig").kind == absent {
		return nil, bedrockInvalid("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	}
	return q, nil
}

var toolName = named{64, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)}

func (q *converseRequest) tools(v value) *apiError {
	c := v.get("toolConfig")
	if c.kind == absent {
		return nil
	}
	if e := members(c, "toolConfig", "tools", "toolChoice"); e != nil {
		return e
	}
	list := c.get("tools")
	if len(list.arr) == 0 {
		return bedrockInvalid("1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	q.job.tools = nil
	for i, t := range list.arr {
		at := fmt.Sprintf("toolConfig.tools.%d", i)
		name, inner, e := union(t, at, "toolSpec", "cachePoint")
		if e != nil {
			return e
		}
		if name == "cachePoint" {
			if e := q.point(inner, at); e != nil {
				return e
			}
			continue
		}
		if e := members(inner, at+".toolSpec", "name", "description", "inputSchema", "strict"); e != nil {
			return e
		}
		if !toolName.matches(inner.get("name").s) {
			return bedrockInvalid(at + ".toolSpec.name failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+")
		}
		if d := inner.get("description"); d.kind != absent && d.s == "" {
			return bedrockInvalid(at + ".toolSpec.description failed to satisfy constraint: Member must have length greater than or equal to 1")
		}
		schema := inner.get("inputSchema").get("json")
		if schema.get("type").s != "object" {
			return bedrockInvalid(at + ".toolSpec.inputSchema.json.type: must be one of the following: object")
		}
		if slices.ContainsFunc(q.job.tools, func(o tool) bool { return o.name == inner.get("name").s }) {
			return bedrockInvalid("The tool " + inner.get("name").s + " is already defined at toolConfig.tools.")
		}
		q.cache.add(&q.job, inner.s)
		q.job.tools = append(q.job.tools, tool{inner.get("name").s, schema})
	}
	if len(q.job.tools) == 0 {
		return bedrockInvalid("toolConfig.tools must hold a toolSpec")
	}
	choice := c.get("toolChoice")
	if choice.kind == absent {
		return nil
	}
	name, inner, e := union(choice, "toolConfig.toolChoice", "auto", "any", "tool")
	if e != nil {
		return e
	}
	switch name {
	case "any":
		q.choice = chooseAny
	case "tool":
		q.choice, q.named = chooseNamed, inner.get("name").s
		if !slices.ContainsFunc(q.job.tools, func(t tool) bool { return t.name == q.named }) {
			return bedrockInvalid("The tool " + q.named + " in toolChoice is not defined in toolConfig.tools.")
		}
	}
	return nil
}

// point reads a cache point, which applies to the content before it.
func (q *converseRequest) point(c value, at string) *apiError {
	if e := members(c, at+".cachePoint", "type", "ttl"); e != nil {
		return e
	}
	ttl := 5 * time.Minute
	switch t := c.get("ttl"); {
	case c.get("type").s != "default":
		return bedrockInvalid(at + ".cachePoint.type must be default")
	case t.s == "1h":
		ttl = time.Hour
		for _, m := range q.cache.marks {
			if m.ttl < ttl {
				return bedrockInvalid(at + ".cachePoint.ttl: a longer time must not come after a shorter one")
			}
		}
	case t.kind != absent && t.s != "5m":
		return bedrockInvalid(at + ".cachePoint.ttl must be 5m or 1h")
	}
	if !strings.Contains(q.model, "claude") && !strings.Contains(q.model, "nova") && !strings.HasPrefix(q.model, "arn:") {
		return awsRejection("AccessDeniedException", "You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.")
	}
	q.cache.marks = append(q.cache.marks, cacheMark{q.cache.hash, q.prompt, ttl})
	if len(q.cache.marks) > 4 {
		return bedrockInvalid("You exceeded the maximum of 4 cache points")
	}
	return nil
}

func (q *converseRequest) text(s value, at string) *apiError {
	if s.kind != text || strings.TrimSpace(s.s) == "" {
		return bedrockInvalid("The text field in the ContentBlock object at " + at + " is blank. Add text to the text field, and try again.")
	}
	q.cache.add(&q.job, s.s)
	return nil
}

func (q *converseRequest) system(v value) *apiError {
	for i, b := range v.get("system").arr {
		at := fmt.Sprintf("system.%d", i)
		name, inner, e := union(b, at, "text", "cachePoint", "guardContent")
		if e != nil {
			return e
		}
		switch name {
		case "text":
			e = q.text(inner, at)
		case "cachePoint":
			e = q.point(inner, at)
		}
		if e != nil {
			return e
		}
	}
	return nil
}

func (q *converseRequest) messages(v value) *apiError {
	list := v.get("messages")
	if len(list.arr) == 0 {
		return bedrockInvalid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	for i := len(list.arr) - 1; i >= 0; i-- {
		if list.arr[i].get("role").s != "user" {
			continue
		}
		var content strings.Builder
		for _, b := range list.arr[i].get("content").arr {
			content.WriteString(b.get("text").s)
		}
		if q.lastUser = content.String(); q.lastUser != "" {
			if e := steerBy(q.st, q.lastUser); e != nil {
				return bedrockInvalid(e.message)
			}
			break
		}
	}
	for i, m := range list.arr {
		at := fmt.Sprintf("messages.%d", i)
		if e := members(m, at, "role", "content"); e != nil {
			return e
		}
		t := turn{role: m.get("role").s, at: i}
		switch {
		case t.role == "system":
			if e := q.systemTurn(list.arr, i); e != nil {
				return e
			}
			continue
		case t.role != "user" && t.role != "assistant":
			return bedrockInvalid("Value at '" + at + ".role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant, system]")
		case len(q.turns) == 0 && t.role != "user":
			return bedrockInvalid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
		case len(q.turns) > 0 && q.turns[len(q.turns)-1].role == t.role:
			return bedrockInvalid("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		case len(m.get("content").arr) == 0:
			return bedrockInvalid("The content field in the Message object at " + at + " is empty. Add a ContentBlock object to the content field and try again.")
		}
		document := false
		for k, b := range m.get("content").arr {
			document = document || b.get("document").kind != absent
			if e := q.block(b, &t, fmt.Sprintf("%s.content.%d", at, k)); e != nil {
				return e
			}
		}
		if document && t.text == "" {
			return bedrockInvalid("A text block is required when using documents. Add a text block to the message at " + at)
		}
		q.prompt += 4
		q.turns = append(q.turns, t)
	}
	return q.order()
}

// systemTurn checks a message of the role system. Only the newest models of Claude accept
// it: after a turn of the user, and as the last message or before one of the assistant.
func (q *converseRequest) systemTurn(all []value, i int) *apiError {
	id := q.model[strings.Index(q.model, "anthropic.")+1:]
	taken := slices.ContainsFunc([]string{"claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5", "claude-fable-5"}, func(name string) bool {
		return strings.Contains(id, name)
	})
	role := func(i int) string {
		if i < 0 || i >= len(all) {
			return ""
		}
		return all[i].get("role").s
	}
	content := all[i].get("content").arr
	switch {
	case !taken || strings.Contains(id, "-no-system"):
		return bedrockInvalid("role 'system' is not supported on this model")
	case role(i-1) != "user" || role(i+1) != "" && role(i+1) != "assistant":
		return bedrockInvalid(fmt.Sprintf("messages.%d: a system message must follow a user message, and be the last or followed by an assistant message", i))
	case len(content) == 0:
		return bedrockInvalid(fmt.Sprintf("messages.%d: content is empty", i))
	}
	for k, b := range content {
		at := fmt.Sprintf("messages.%d.content.%d", i, k)
		name, inner, e := union(b, at, "text", "cachePoint")
		if e == nil && name == "text" {
			e = q.text(inner, at)
		} else if e == nil {
			e = q.point(inner, at)
		}
		if e != nil {
			return e
		}
	}
	return nil
}

// order checks that each call has its result in the next message.
func (q *converseRequest) order() *apiError {
	for i, t := range q.turns {
		var callIDs []string
		if i > 0 {
			callIDs = q.turns[i-1].calls
		}
		for _, id := range callIDs {
			if !slices.Contains(t.results, id) || t.unordered {
				return bedrockInvalid(fmt.Sprintf("Expected toolResult blocks at messages.%d.content for the following Ids: %s", t.at, id))
			}
		}
		if len(t.results) != len(callIDs) {
			return bedrockInvalid(fmt.Sprintf("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", t.at))
		}
	}
	last := q.turns[len(q.turns)-1]
	q.afterTool = len(last.results) > 0
	if len(last.calls) > 0 {
		return bedrockInvalid("Expected toolResult blocks after the last message for the following Ids: " + last.calls[0])
	}
	return nil
}

func (q *converseRequest) inference(v value) *apiError {
	c := v.get("inferenceConfig")
	if c.kind == absent {
		return nil
	}
	if e := members(c, "inferenceConfig", "maxTokens", "temperature", "topP", "stopSequences"); e != nil {
		return e
	}
	if n := c.get("maxTokens"); n.kind != absent {
		max, ok := n.integer()
		if !ok || max < 1 {
			return bedrockInvalid("Value at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1")
		}
		q.maxTokens = max
	}
	for _, name := range []string{"temperature", "topP"} {
		if f := c.get(name); f.kind != absent && (f.kind != number || f.float() < 0 || f.float() > 1) {
			return bedrockInvalid("Value at 'inferenceConfig." + name + "' failed to satisfy constraint: Member must have value less than or equal to 1")
		}
	}
	for _, s := range c.get("stopSequences").arr {
		if strings.TrimSpace(s.s) == "" {
			return bedrockInvalid("inferenceConfig.stopSequences: each stop sequence must contain non-whitespace")
		}
		q.stops = append(q.stops, s.s)
	}
	return nil
}

// additional reads the fields that go to the model itself: for Claude they must be fields
// that Claude knows.
func (q *converseRequest) additional(v value) *apiError {
	a := v.get("additionalModelRequestFields")
	if a.kind == absent {
		return nil
	}
	if a.kind != object {
		return bedrockInvalid("additionalModelRequestFields must be an object")
	}
	if !strings.Contains(q.model, "claude") && !strings.HasPrefix(q.model, "arn:") {
		if r := a.get("reasoningConfig"); r.get("type").s == "enabled" {
			q.thinking, q.effort = true, 12
		}
		return nil
	}
	if e := members(a, "", "thinking", "top_k", "anthropic_beta", "anthropic_version", "metadata", "tools", "tool_choice", "output_config"); e != nil {
		return e
	}
	if e := only(a.get("metadata"), "metadata", "user_id"); e != nil {
		return bedrockInvalid(e.message)
	}
	if a.get("tool_choice").get("disable_parallel_tool_use").yes {
		q.parallel = false
	}
	switch a.get("tool_choice").get("type").s {
	case "any":
		q.choice = chooseAny
	case "tool":
		q.choice, q.named = chooseNamed, a.get("tool_choice").get("name").s
	}
	t := a.get("thinking")
	switch t.get("type").s {
	case "enabled":
		n, ok := t.get("budget_tokens").integer()
		if !ok || n < 1024 || q.maxTokens != 0 && n >= q.maxTokens {
			return bedrockInvalid("The model returned the following errors: `max_tokens` must be greater than `thinking.budget_tokens`.")
		}
	case "adaptive":
	default:
		return nil
	}
	q.thinking, q.thinks, q.effort, q.omitted = true, true, 24, t.get("display").s == "omitted"
	if f := v.get("inferenceConfig").get("temperature"); f.kind != absent && f.float() != 1 {
		return bedrockInvalid("The model returned the following errors: `temperature` may only be set to 1 when thinking is enabled.")
	}
	if q.choice == chooseAny || q.choice == chooseNamed {
		return bedrockInvalid("The model returned the following errors: Thinking may not be enabled when tool_choice forces tool use.")
	}
	for i := len(q.turns) - 1; i >= 0 && len(q.turns[len(q.turns)-1].results) > 0; i-- {
		turn := q.turns[i]
		if turn.role == "user" && len(turn.results) == 0 {
			break
		}
		if turn.role == "assistant" && turn.first != "reasoningContent" && t.get("type").s == "enabled" {
			return bedrockInvalid(fmt.Sprintf("The model returned the following errors: messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", turn.at))
		}
	}
	return nil
}

func (q *converseRequest) settings(v value) *apiError {
	if t := v.get("serviceTier"); t.kind != absent && !slices.Contains([]string{"default", "flex", "priority", "reserved"}, t.get("type").s) {
		return bedrockInvalid("serviceTier.type is invalid")
	}
	if m := v.get("requestMetadata"); len(m.obj) > 16 {
		return bedrockInvalid("requestMetadata may have 16 entries")
	}
	o := v.get("outputConfig")
	if o.kind == absent {
		return nil
	}
	f := o.get("textFormat")
	schema, err := parseJSON(f.get("structure").get("jsonSchema").get("schema").s)
	if err != nil || f.get("type").s != "json_schema" || schema.kind != object {
		return bedrockInvalid("outputConfig.textFormat is invalid: the schema must be the text of a JSON schema")
	}
	q.schema = schema
	return nil
}
