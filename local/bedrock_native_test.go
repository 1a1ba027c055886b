package main

import (
	"gateway/shared/provider"
)

const (
	chatPath      = "/openai/v1/chat/completions"
	responsesPath = "/openai/v1/responses"
	messagesPath  = "/anthropic/v1/messages"
)

// nativeShapes are the operations that TestBedrockTakesItsClientsFormats of shared/relay proves.
var nativeShapes = []struct {
	op   provider.Operation
	path string
}{{provider.NativeChat, chatPath}, {provider.NativeResponses, responsesPath}, {provider.NativeMessages, messagesPath}}
