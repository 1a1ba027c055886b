package mockprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
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

// signed reports whether thinking that is shown, or omitted, has its signature.
func signed(thinking, signature string) bool {
	return hmac.Equal([]byte(signature), []byte(sign(thinking))) || thinking == "" && unsealed(signOmitted, signature)
}

// checkThinking rejects a thinking block that differs from the one that was sent.
func checkThinking(b value, at string) *apiError {
	if data := b.get("data"); data.given() && !unsealed(signRedacted, data.s) {
		return invalid("%s: Invalid `data` in `redacted_thinking` block", at)
	} else if !data.given() && !signed(b.get("thinking").s, b.get("signature").s) {
		return invalid("%s: Invalid `signature` in `thinking` block", at)
	}
	return nil
}

// thinkingField reads the thinking setting and checks the conversation against it.
func (q *messageRequest) thinkingField(v value) *apiError {
	t := v.get("thinking")
	typ := t.get("type").s
	q.effort = 24
	if q.st.reasoning > 0 {
		q.effort = int64(q.st.reasoning)
	}
	q.thinkingOn = typ == "enabled" || typ == "adaptive"
	q.thinking, q.omitted = q.thinkingOn || !t.given() && q.model == "mock-thinking", t.get("display").s == "omitted"
	if !q.thinkingOn {
		return nil
	}
	temperature, top := v.get("temperature"), v.get("top_p")
	switch n, ok := t.get("budget_tokens").integer(); {
	case ok && !q.counting && n >= q.maxTokens:
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case temperature.given() && temperature.float() != 1:
		return invalid("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
	case v.get("top_k").given():
		return invalid("`top_k` must be unset when thinking is enabled or in adaptive mode.")
	case top.given() && top.float() < 0.95:
		return invalid("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.")
	case typ == "adaptive": // there may have been none
		return nil
	}
	return thinkingFirst(q.turns)
}

// thinkingFirst checks the turn that a tool result answers: with thinking on, it must begin with
// the thinking that led to the call.
func thinkingFirst(turns []turn) *apiError {
	for _, t := range slices.Backward(turns) {
		if t.role == "user" && len(t.results) == 0 {
			return nil // earlier messages belong to an earlier turn
		}
		if t.role == "assistant" && !strings.HasSuffix(t.first, "thinking") && t.first != "reasoningContent" {
			return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", t.at, t.first)
		}
	}
	return nil
}
