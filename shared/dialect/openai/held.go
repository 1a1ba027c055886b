package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
)

// Held implements chat.AnswerWriter. What has no place in the shape itself goes into
// members of the gateway's own, which only clients see that did not ask for the strict
// shape.
func (Chat) Held(o *chat.Options) chat.Held {
	h := chat.Held{
		Holds: chat.HoldsChoices | chat.HoldsFingerprint | chat.HoldsTier | chat.HoldsLogprobs | chat.HoldsRefusals |
			chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		Cites:  addressed,
		Choice: "choices", Content: "message",
	}
	if !o.Strict {
		h.Cites = nil
		h.Holds |= chat.HoldsExtra | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted | chat.HoldsForeign | chat.HoldsImages | chat.HoldsSignedCalls
	}
	if o.Legacy() {
		h.Holds &^= chat.HoldsMoreCalls
	}
	return h
}

// addressed reports whether a source has an address. Without one it cannot be an
// annotation.
func addressed(cite []byte) bool {
	c := citation.Read(cite)
	return c.URL != ""
}

// Held implements chat.AnswerWriter: a text completion is text and nothing else.
func (Completions) Held(*chat.Options) chat.Held {
	return chat.Held{Holds: chat.HoldsChoices | chat.HoldsFingerprint | chat.HoldsTier, Choice: "choices"}
}
