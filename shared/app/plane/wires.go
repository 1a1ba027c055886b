package plane

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/openai"
)

// Dialects are the wire shapes of conversations that the gateway speaks.
func Dialects() []chat.Dialect {
	return []chat.Dialect{
		openai.Chat{}, openai.Completions{}, anthropic.Messages{},
		cohere.Chat{},
	}
}

// Translators carry the operations that are no conversations.
func Translators() []chat.Translator {
	return []chat.Translator{}
}
