package converse

import "gateway/shared/chat"

// Held implements chat.AnswerWriter.
func (Converse) Held(*chat.Options) chat.Held {
	return chat.Held{
		Holds:   chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted | chat.HoldsImages | chat.HoldsCalls | chat.HoldsMoreCalls,
		Images:  func(m *chat.Media) bool { return imageFormat(m) != "" },
		Content: "output.message.content",
		Broken:  chat.BrokenStop,
	}
}
