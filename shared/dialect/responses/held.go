package responses

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/cite"
)

// Held implements chat.AnswerWriter.
func (Responses) Held(*chat.Options) chat.Held {
	return chat.Held{
		Holds: chat.HoldsTier | chat.HoldsLogprobs | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted |
			chat.HoldsImages | chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		Own:     name,
		Cites:   func(citation []byte) bool { c := cite.Read(citation); return c.URL != "" },
		Images:  takesImage,
		Content: "output",
	}
}
