package gemini

import "gateway/shared/chat"

// Held implements chat.AnswerWriter.
func (Generate) Held(*chat.Options) chat.Held {
	return chat.Held{
		Holds:  chat.HoldsChoices | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted | chat.HoldsImages | chat.HoldsCalls | chat.HoldsMoreCalls,
		Choice: "candidates", Content: "content.parts",
		Broken: chat.BrokenStop, CompleteCalls: true,
	}
}
