package mockprovider

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// turn is what the rules about the order of messages need to know of a message.
type turn struct {
	role      string
	at        int      // position in messages
	first     string   // type of its first block
	calls     []string // ids of tool_use blocks
	results   []string // ids of tool_result blocks
	unordered bool     // a tool_result comes after another block
	text      string
}

func (q *messageRequest) system(v value) *apiError {
	switch {
	case !v.given():
		return nil
	case v.kind == text:
		q.cache.add(&q.job, v.s)
		return nil
	case v.kind != array:
		return invalid("system: Input should be a valid list")
	}
	for i, b := range v.arr {
		at := fmt.Sprintf("system.%d", i)
		if b.get("type").s != "text" {
			return invalid("%s.type: Input should be 'text'", at)
		}
		if e := q.textBlock(b, at, "system"); e != nil {
			return e
		}
	}
	return nil
}

func (q *messageRequest) textBlock(b value, at, where string) *apiError {
	if e := only(b, at, "type", "text", "cache_control", "citations"); e != nil {
		return e
	}
	s := b.get("text")
	if e := need(s, at+".text", text); e != nil {
		return e
	}
	if s.s == "" {
		if b.get("cache_control").given() {
			return invalid("%s.cache_control: cache_control cannot be set for empty text blocks", at)
		}
		return invalid("%s: text content blocks must be non-empty", where)
	}
	if strings.TrimSpace(s.s) == "" {
		return invalid("%s: text content blocks must contain non-whitespace text", where)
	}
	q.cache.add(&q.job, s.s)
	return q.mark(b, at)
}

// messages reads all turns, then checks the rules between them.
func (q *messageRequest) messages(all []value) *apiError {
	if len(all) == 0 {
		return invalid("messages: at least one message is required")
	}
	for i, m := range all {
		at := fmt.Sprintf("messages.%d", i)
		if e := firstFault(need(m, at, object), need(m.get("role"), at+".role", text)); e != nil {
			return e
		}
		role := m.get("role").s
		if role == "system" {
			return invalid("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
		}
		if role != "user" && role != "assistant" {
			return invalid("messages: Unexpected role \"%s\". Allowed roles are \"user\" or \"assistant\"", role)
		}
		if e := only(m, at, "role", "content"); e != nil {
			return e
		}
		t, e := q.content(m.get("content"), role, i, i == len(all)-1)
		if e != nil {
			return e
		}
		q.job.prompt += 4
		if n := len(q.turns); n > 0 && q.turns[n-1].role == role { // read as one
			q.turns[n-1].join(t)
			continue
		}
		q.turns = append(q.turns, t)
	}
	return q.order()
}

func (t *turn) join(u turn) {
	t.unordered = t.unordered || u.unordered || len(u.results) > 0 && len(t.results) == 0
	t.calls, t.results = append(t.calls, u.calls...), append(t.results, u.results...)
	t.text += u.text
}

// order checks the rules between turns: a user begins, and each tool_use has its tool_result at
// the start of the next one.
func (q *messageRequest) order() *apiError {
	if q.turns[0].role != "user" {
		return invalid("messages: first message must use the \"user\" role")
	}
	for i, t := range q.turns {
		var callIDs []string
		if i > 0 {
			callIDs = q.turns[i-1].calls
		}
		for _, id := range t.results {
			if !slices.Contains(callIDs, id) {
				return invalid("messages.%d.content.0: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", t.at, id)
			}
		}
		for _, id := range callIDs {
			if !slices.Contains(t.results, id) || t.unordered {
				return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", q.turns[i-1].at, id)
			}
		}
		for k, id := range t.results {
			if slices.Contains(t.results[:k], id) {
				return invalid("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", t.at, k, id)
			}
		}
	}
	last := q.turns[len(q.turns)-1]
	q.afterTool = len(last.results) > 0
	switch {
	case len(last.calls) > 0:
		return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", last.at, last.calls[0])
	case last.role == "assistant" && last.text != strings.TrimRight(last.text, " \t\n"):
		return invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

func (q *messageRequest) content(c value, role string, i int, final bool) (turn, *apiError) {
	t := turn{role: role, at: i}
	at := fmt.Sprintf("messages.%d.content", i)
	switch c.kind {
	case absent:
		return t, invalid("%s: Field required", at)
	case text:
		if c.s == "" && !(final && role == "assistant") {
			return t, nonEmpty(i)
		}
		if strings.TrimSpace(c.s) == "" && c.s != "" {
			return t, invalid("messages: text content blocks must contain non-whitespace text")
		}
		t.first, t.text = "text", c.s
		q.cache.add(&q.job, c.s)
		return t, nil
	case array:
	default:
		return t, invalid("%s: Input should be a valid list", at)
	}
	if len(c.arr) == 0 && !(final && role == "assistant") {
		return t, nonEmpty(i)
	}
	for k, b := range c.arr {
		if e := q.block(b, &t, fmt.Sprintf("%s.%d", at, k), k); e != nil {
			return t, e
		}
	}
	return t, nil
}

func nonEmpty(i int) *apiError {
	return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
}

// block reads one content block.
func (q *messageRequest) block(b value, t *turn, at string, k int) *apiError {
	if e := need(b, at, object); e != nil {
		return e
	}
	typ := b.get("type").s
	if typ == "" {
		return invalid("%s.type: Field required", at)
	}
	if k == 0 {
		t.first = typ
	}
	in := at + "." + typ
	wrongRole := func(role string) *apiError {
		return invalid("%s: `%s` blocks can only be in `%s` messages", at, typ, role)
	}
	switch typ {
	case "text":
		t.text += b.get("text").s
		if q.since2026 && t.role == "user" && len(b.get("citations").arr) > 0 {
			return invalid("%s.citations: citations are not permitted in user messages", in)
		}
		return q.textBlock(b, in, "messages")
	case "image", "document":
		if t.role != "user" && (typ == "image" || q.since2026) {
			return wrongRole("user")
		}
		return q.media(b, typ, in)
	case "tool_use":
		if t.role != "assistant" {
			return wrongRole("assistant")
		}
		return q.toolUse(b, t, in)
	case "tool_result":
		if t.role != "user" {
			return wrongRole("user")
		}
		if k > len(t.results) {
			t.unordered = true
		}
		return q.toolResult(b, t, in)
	case "thinking", "redacted_thinking":
		if t.role != "assistant" {
			return wrongRole("assistant")
		}
		q.cache.add(&q.job, b.s)
		return checkThinking(b, typ, at)
	case "search_result", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload":
		q.cache.add(&q.job, b.s)
		return q.mark(b, in)
	}
	return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', 'text', 'thinking', 'tool_result', 'tool_use'", at, typ)
}

func (q *messageRequest) toolUse(b value, t *turn, at string) *apiError {
	if e := only(b, at, "type", "id", "name", "input", "cache_control", "caller", "toolset_name"); e != nil {
		return e
	}
	for _, f := range []struct {
		name string
		kind kind
	}{{"id", text}, {"name", text}, {"input", object}} {
		if e := need(b.get(f.name), at+"."+f.name, f.kind); e != nil {
			return e
		}
	}
	id := b.get("id").s
	if !isName(id, 256) {
		return invalid("%s.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
	}
	if slices.Contains(t.calls, id) {
		return invalid("messages: `tool_use` ids must be unique")
	}
	t.calls = append(t.calls, id)
	q.cache.add(&q.job, b.s)
	return q.mark(b, at)
}

func (q *messageRequest) toolResult(b value, t *turn, at string) *apiError {
	if e := firstFault(only(b, at, "type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"), need(b.get("tool_use_id"), at+".tool_use_id", text), may(b.get("is_error"), at+".is_error", boolean)); e != nil {
		return e
	}
	t.results = append(t.results, b.get("tool_use_id").s)
	c := b.get("content")
	if c.given() && c.kind != text && c.kind != array {
		return invalid("%s.content: Input should be a valid list", at)
	}
	for i, p := range c.arr {
		at := fmt.Sprintf("%s.content.%d", at, i)
		var e *apiError
		switch typ := p.get("type").s; typ {
		case "text":
			e = q.textBlock(p, at+".text", "messages")
		case "image", "document":
			e = q.media(p, typ, at+"."+typ)
		case "search_result", "tool_reference", "browser_state":
			q.cache.add(&q.job, p.s)
		default:
			e = invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text'", at, typ)
		}
		if e != nil {
			return e
		}
	}
	q.toolText = strings.TrimSpace(q.toolText + " " + plainText(c))
	if c.kind == text {
		q.cache.add(&q.job, c.s)
	}
	return q.mark(b, at)
}

// media checks the source of an image or a document.
func (q *messageRequest) media(b value, typ, at string) *apiError {
	fields := []string{"type", "source", "cache_control"}
	if typ == "document" {
		fields = append(fields, "title", "context", "citations")
	}
	if e := only(b, at, fields...); e != nil {
		return e
	}
	s := b.get("source")
	if e := need(s, at+".source", object); e != nil {
		return e
	}
	switch s.get("type").s {
	case "base64":
		types := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
		if typ == "document" {
			types = []string{"application/pdf"}
		}
		if !slices.Contains(types, s.get("media_type").s) {
			return invalid("%s.source.base64.media_type: Input should be '%s'", at, strings.Join(types, "', '"))
		}
		if _, err := base64.StdEncoding.DecodeString(s.get("data").s); err != nil || s.get("data").s == "" {
			return invalid("%s.source.base64.data: Invalid base64 data", at)
		}
	case "url":
		if u := s.get("url").s; !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") {
			return invalid("%s.source.url.url: Only HTTPS URLs are supported.", at)
		}
	case "file":
		if e := need(s.get("file_id"), at+".source.file.file_id", text); e != nil {
			return e
		}
	case "text", "content":
		if typ != "document" {
			return invalid("%s.source: Input tag '%s' found using 'type' does not match any of the expected tags: 'base64', 'url', 'file'", at, s.get("type").s)
		}
	default:
		return invalid("%s.source: Input tag '%s' found using 'type' does not match any of the expected tags", at, s.get("type").s)
	}
	q.cache.addTokens(&q.job, s.s, imageTokens)
	return q.mark(b, at)
}
