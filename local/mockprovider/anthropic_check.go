package mockprovider

import (
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

func invalid(format string, args ...any) *apiError {
	return badRequest("", "", fmt.Sprintf(format, args...))
}

var messageFields = strings.Fields(`model max_tokens messages cache_control container diagnostics inference_geo metadata output_config
	service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p user_profile_id workspace_id`)

// version2026 is the API version that removed the sampling fields. It also refuses
// documents in assistant messages and citations in user messages.
const version2026 = "2026-10-21"

var samplingFields = []string{"temperature", "top_p", "top_k"}

// turnFields have no meaning when tokens are only counted.
var turnFields = append([]string{"max_tokens", "stream", "stop_sequences", "metadata", "service_tier"}, samplingFields...)

// betaFields are only valid with an anthropic-beta header.
var betaFields = []string{"mcp_servers", "context_management", "output_format"}

// only refuses fields that an object does not have.
func only(v value, at string, names ...string) *apiError {
	for _, m := range v.obj {
		if !slices.Contains(names, m.name) {
			return invalid("%s: Extra inputs are not permitted", strings.TrimPrefix(at+"."+m.name, "."))
		}
	}
	return nil
}

func need(v value, at string, k kind) *apiError {
	switch {
	case v.kind == absent:
		return invalid("%s: Field required", at)
	case v.kind != k:
		return invalid("%s: Input should be %s", at, map[kind]string{text: "a valid string", array: "a valid list", object: "a valid dictionary", boolean: "a valid boolean", number: "a valid number"}[k])
	}
	return nil
}

// may is like need, for a field that may be missing.
func may(v value, at string, k kind) *apiError {
	if !v.given() {
		return nil
	}
	return need(v, at, k)
}

// checkMessage reads a messages or a count_tokens request.
func checkMessage(x *exchange, v value, counting bool) (*messageRequest, *apiError) {
	if x.r.Header.Get("Anthropic-Version") == "" {
		return nil, invalid("anthropic-version: header is required")
	}
	version := x.r.Header.Get("Anthropic-Version")
	if version != "2023-06-01" && version != version2026 {
		return nil, invalid("anthropic-version: %q is not a valid version. Please use a valid version.", version)
	}
	allowed := append([]string{}, messageFields...)
	if x.r.Header.Get("Anthropic-Beta") != "" {
		allowed = append(allowed, betaFields...)
	}
	allowed = slices.DeleteFunc(allowed, func(name string) bool {
		return counting && slices.Contains(turnFields, name) || version == version2026 && slices.Contains(samplingFields, name)
	})
	if e := only(v, "", allowed...); e != nil {
		return nil, e
	}
	if e := takeModel(x, v); e != nil {
		return nil, e
	}
	q := &messageRequest{job: job{model: x.model, st: &x.st, parallel: true}, counting: counting, since2026: version == version2026}
	q.cache.on = strings.Contains(v.s, `"cache_control"`)
	messages := v.get("messages")
	if e := need(messages, "messages", array); e != nil {
		return nil, e
	}
	q.seed = seedOf(messages.s)
	for _, check := range []func() *apiError{
		func() *apiError { return q.bounds(v) },
		func() *apiError { return q.toolList(v) },
		func() *apiError { return q.system(v.get("system")) },
		func() *apiError { return q.findSteering(messages.arr) },
		func() *apiError { return q.messages(messages.arr) },
		func() *apiError { return q.mark(v, "") },
		func() *apiError { return q.thinkingField(v) },
		func() *apiError { return q.toolChoice(v.get("tool_choice"), len(q.tools) > 0) },
		func() *apiError { return q.options(v) },
	} {
		if e := check(); e != nil {
			return nil, e
		}
	}
	return q, nil
}

// findSteering reads the directives of the last user message with text before the messages
// are checked, so that they apply to the checks.
func (q *messageRequest) findSteering(all []value) *apiError {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].get("role").s != "user" {
			continue
		}
		if s := plainText(all[i].get("content")); s != "" {
			q.lastUser = s
			return steerBy(q.st, s)
		}
	}
	return nil
}

// plainText joins the text blocks of a content.
func plainText(c value) string {
	if c.kind == text {
		return c.s
	}
	var b strings.Builder
	for _, p := range c.arr {
		if p.get("type").s == "text" {
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

func (q *messageRequest) bounds(v value) *apiError {
	if !q.counting {
		m := v.get("max_tokens")
		if m.kind == absent {
			return invalid("max_tokens: Field required")
		}
		n, ok := m.integer()
		switch {
		case !ok:
			return invalid("max_tokens: Input should be a valid integer")
		case n < 1:
			return invalid("max_tokens: Input should be greater than or equal to 1")
		case n > maxOutput(q.model):
			return invalid("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", n, maxOutput(q.model), q.model)
		}
		q.maxTokens = n
	}
	for _, name := range []string{"temperature", "top_p"} {
		f := v.get(name)
		if e := may(f, name, number); e != nil {
			return e
		}
		if f.given() && f.float() < 0 {
			return invalid("%s: Input should be greater than or equal to 0", name)
		}
		if f.given() && f.float() > 1 {
			return invalid("%s: Input should be less than or equal to 1", name)
		}
	}
	if k := v.get("top_k"); k.given() {
		if n, ok := k.integer(); !ok || n < 0 {
			return invalid("top_k: Input should be greater than or equal to 0")
		}
	}
	if e := may(v.get("stream"), "stream", boolean); e != nil {
		return e
	}
	q.stream = v.get("stream").yes
	return nil
}

func (q *messageRequest) options(v value) *apiError {
	stops := v.get("stop_sequences")
	if e := may(stops, "stop_sequences", array); e != nil {
		return e
	}
	for i, s := range stops.arr {
		if s.kind != text {
			return invalid("stop_sequences.%d: Input should be a valid string", i)
		}
		if strings.TrimSpace(s.s) == "" {
			return invalid("stop_sequences: each stop sequence must contain non-whitespace")
		}
		q.stops = append(q.stops, s.s)
	}
	meta := v.get("metadata")
	if e := firstFault(may(meta, "metadata", object), only(meta, "metadata", "user_id")); e != nil {
		return e
	}
	if t := v.get("service_tier"); t.given() && t.s != "auto" && t.s != "standard_only" {
		return invalid("service_tier: Input should be 'auto' or 'standard_only'")
	}
	return q.outputConfig(v)
}

func (q *messageRequest) outputConfig(v value) *apiError {
	o, at := v.get("output_config"), "output_config"
	if e := firstFault(may(o, at, object), only(o, at, "format", "effort")); e != nil {
		return e
	}
	if f := o.get("effort"); f.given() && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, f.s) {
		return invalid("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	f := o.get("format")
	if old := v.get("output_format"); old.given() {
		f, at = old, ""
		if o.get("format").given() {
			return invalid("output_format: may not be given together with output_config.format")
		}
	}
	if !f.given() {
		return nil
	}
	at = strings.TrimPrefix(at+".format", ".")
	if f.get("type").s != "json_schema" {
		return invalid("%s.type: Input should be 'json_schema'", at)
	}
	if e := only(f, at, "type", "schema", "name"); e != nil {
		return e
	}
	q.schema = f.get("schema")
	if e := need(q.schema, at+".schema", object); e != nil {
		return e
	}
	if q.schema.get("type").s == "object" {
		if a := q.schema.get("additionalProperties"); a.kind != boolean || a.yes {
			return invalid("%s.schema: For 'object' type, 'additionalProperties' must be explicitly set to false", at)
		}
	}
	return nil
}

func (q *messageRequest) toolList(v value) *apiError {
	list := v.get("tools")
	if e := may(list, "tools", array); e != nil {
		return e
	}
	for i, t := range list.arr {
		at := fmt.Sprintf("tools.%d", i)
		if e := need(t, at, object); e != nil {
			return e
		}
		name := t.get("name")
		if e := need(name, at+".name", text); e != nil {
			return e
		}
		if slices.ContainsFunc(q.tools, func(o tool) bool { return o.name == name.s }) {
			return invalid("tools: Tool names must be unique.")
		}
		if typ := t.get("type"); typ.given() && typ.s != "custom" {
			q.cache.add(&q.job, t.s) // a tool that the provider runs itself: count it
			continue
		}
		at += ".custom"
		if e := only(t, at, "type", "name", "description", "input_schema", "cache_control", "strict", "defer_loading", "eager_input_streaming", "allowed_callers", "input_examples"); e != nil {
			return e
		}
		if !isName(name.s, 128) {
			return invalid("%s.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", at)
		}
		schema := t.get("input_schema")
		if e := need(schema, at+".input_schema", object); e != nil {
			return e
		}
		if typ := schema.get("type"); typ.kind == absent {
			return invalid("%s.input_schema.type: Field required", at)
		} else if typ.s != "object" {
			return invalid("%s.input_schema.type: Input should be 'object'", at)
		}
		q.cache.add(&q.job, t.s)
		if e := q.mark(t, at); e != nil {
			return e
		}
		q.tools = append(q.tools, tool{name.s, schema})
	}
	return nil
}

func (q *messageRequest) toolChoice(c value, hasTools bool) *apiError {
	if !c.given() {
		return nil
	}
	if e := need(c, "tool_choice", object); e != nil {
		return e
	}
	if !hasTools {
		return invalid("tool_choice: tool_choice may only be specified while providing tools")
	}
	typ := c.get("type").s
	fields := []string{"type", "disable_parallel_tool_use"}
	switch typ {
	case "auto":
	case "any":
		q.choice = chooseAny
	case "none":
		q.choice, fields = chooseNone, fields[:1]
	case "tool":
		q.choice, fields = chooseNamed, append(fields, "name")
		if e := need(c.get("name"), "tool_choice.tool.name", text); e != nil {
			return e
		}
		q.named = c.get("name").s
		if !slices.ContainsFunc(q.tools, func(t tool) bool { return t.name == q.named }) {
			return invalid("tool_choice.tool.name: Tool '%s' not found in provided tools", q.named)
		}
	default:
		return invalid("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'", typ)
	}
	if e := only(c, "tool_choice."+typ, fields...); e != nil {
		return e
	}
	q.parallel = !c.get("disable_parallel_tool_use").yes
	if q.thinkingOn && (q.choice == chooseAny || q.choice == chooseNamed) {
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}
