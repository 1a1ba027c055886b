package cohere

import "gateway/shared/chat"

// Held implements chat.AnswerWriter.
func (Chat) Held(*chat.Options) chat.Held {
	return chat.Held{Holds: chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsCalls | chat.HoldsMoreCalls, Content: "message.content"}
}
