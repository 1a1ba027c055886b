package mockprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Signatures of thinking are the same in every process, just as the provider's are valid on
// every host: a conversation can continue after a restart.
var signingKey = []byte("mock provider thinking")

// What a signature covers.
const (
	signShown    = "shown:"    // the text of a thinking block
	signOmitted  = "omitted:"  // a thinking block without a displayed text
	signRedacted = "redacted:" // the data of a redacted block
)

func mac(what, content string) string {
	h := hmac.New(sha256.New, signingKey)
	h.Write([]byte(what))
	h.Write([]byte(content))
	return string(h.Sum(nil))
}

// sign makes the signature of a thinking block that shows its text.
func sign(thinking string) string {
	return base64.StdEncoding.EncodeToString([]byte(mac(signShown, thinking)))
}

// seal makes an opaque value that carries its own content.
func seal(what, content string) string {
	return base64.StdEncoding.EncodeToString([]byte(mac(what, content) + content))
}

func unsealed(what, sealed string) bool {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	return err == nil && len(raw) > sha256.Size && hmac.Equal(raw[:sha256.Size], []byte(mac(what, string(raw[sha256.Size:]))))
}

// checkThinking rejects a thinking block that differs from the one that was sent.
func checkThinking(b value, typ, at string) *apiError {
	in := at + "." + typ
	if typ == "redacted_thinking" {
		if e := firstFault(only(b, in, "type", "data"), need(b.get("data"), in+".data", text)); e != nil {
			return e
		}
		if !unsealed(signRedacted, b.get("data").s) {
			return invalid("%s: Invalid `data` in `redacted_thinking` block", at)
		}
		return nil
	}
	if e := firstFault(only(b, in, "type", "thinking", "signature"), need(b.get("thinking"), in+".thinking", text), need(b.get("signature"), in+".signature", text)); e != nil {
		return e
	}
	thinking, signature := b.get("thinking").s, b.get("signature").s
	if hmac.Equal([]byte(signature), []byte(sign(thinking))) || thinking == "" && unsealed(signOmitted, signature) {
		return nil
	}
	return invalid("%s: Invalid `signature` in `thinking` block", at)
}

// thinkingField reads the thinking setting and checks the conversation against it.
func (q *messageRequest) thinkingField(v value) *apiError {
	t := v.get("thinking")
	if e := may(t, "thinking", object); e != nil {
		return e
	}
	q.effort = 24
	q.thinking = q.model == "mock-thinking"
	typ := t.get("type").s
	if t.given() {
		allowed := map[string][]string{"enabled": {"type", "budget_tokens", "display"}, "adaptive": {"type", "display"}, "disabled": {"type"}, "between_tools": {"type"}}[typ]
		if allowed == nil {
			return invalid("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", typ)
		}
		if e := only(t, "thinking."+typ, allowed...); e != nil {
			return e
		}
		if d := t.get("display"); d.given() && d.s != "summarized" && d.s != "omitted" {
			return invalid("thinking.%s.display: Input should be 'summarized' or 'omitted'", typ)
		}
		q.omitted = t.get("display").s == "omitted"
		q.thinkingOn = typ == "enabled" || typ == "adaptive"
		q.thinking = q.thinkingOn
	}
	if typ == "enabled" {
		n, ok := t.get("budget_tokens").integer()
		switch {
		case t.get("budget_tokens").kind == absent:
			return invalid("thinking.enabled.budget_tokens: Field required")
		case !ok || n < 1024:
			return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case !q.counting && n >= q.maxTokens:
			return invalid("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
		}
	}
	if q.st.reasoning > 0 {
		q.effort = int64(q.st.reasoning)
	}
	if !q.thinkingOn {
		return nil
	}
	if f := v.get("temperature"); f.given() && f.float() != 1 {
		return invalid("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
	}
	if v.get("top_k").given() {
		return invalid("`top_k` must be unset when thinking is enabled or in adaptive mode.")
	}
	if f := v.get("top_p"); f.given() && f.float() < 0.95 {
		return invalid("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.")
	}
	return q.thinkingFirst(typ)
}

// thinkingFirst checks the assistant turn that a tool result answers: with thinking on, it
// must begin with the thinking that led to the call. With adaptive thinking there may have
// been none.
func (q *messageRequest) thinkingFirst(typ string) *apiError {
	for i := len(q.turns) - 1; i >= 0; i-- {
		t := q.turns[i]
		if t.role == "user" && len(t.results) == 0 {
			return nil // earlier messages belong to an earlier turn
		}
		if t.role != "assistant" || strings.HasSuffix(t.first, "thinking") || typ == "adaptive" {
			continue
		}
		if len(t.calls) == 0 {
			return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", t.at, t.first)
		}
		return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", t.at, t.first)
	}
	return nil
}
