package anthropic

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
)

// Held implements chat.AnswerWriter.
func (Messages) Held(*chat.Options) chat.Held {
	return chat.Held{
		Holds: chat.HoldsSequence | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted |
			chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		Own:     name,
		Cites:   func(cite []byte) bool { c := citation.Read(cite); return c.AppendMessages(nil) != nil },
		Content: "content",
		Broken:  chat.BrokenFail,
	}
}
