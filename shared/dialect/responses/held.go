package responses

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
)

// Held implements chat.AnswerWriter.
func (Responses) Held(*chat.Options) chat.Held {
	return chat.Held{
		Holds: chat.HoldsTier | chat.HoldsLogprobs | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted |
			chat.HoldsImages | chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		Own:     name,
		Cites:   func(cite []byte) bool { c := citation.Read(cite); return c.URL != "" },
		Images:  takesImage,
		Content: "output",
	}
}
