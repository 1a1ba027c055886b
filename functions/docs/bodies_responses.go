package docs

import "gateway/shared/admin"

// besideResponses are the bodies of the other operations on responses, by route name. These
// requests are forwarded unchanged.
var besideResponses = map[string]body{
	"compactModelResponse": {
		doc:     "Compact a conversation for further responses.",
		request: ofResponses("model"),
		answer: object([]string{"object"}, map[string]admin.Schema{
			"id": text, "object": text, "created_at": integer, "output": list(open), "usage": oneOf(open, null),
		}),
	},
	"countResponseInputTokens": {
		doc: "Count the input tokens of a response before it is created. This is free.", request: ofResponses(),
		answer: object([]string{"input_tokens"}, map[string]admin.Schema{"object": text, "input_tokens": integer}),
	},
	"createDecision": {
		doc: "Create a decision, in OpenAI's format.", request: ofResponses("model"),
		answer: object(nil, map[string]admin.Schema{"id": text, "object": text, "model": text, "usage": oneOf(open, null)}),
	},
}

// ofResponses is a request with members that responses take. The provider judges any others.
func ofResponses(required ...string) admin.Schema {
	return request(required, map[string]admin.Schema{
		"model": model, "input": oneOf(text, admin.Schema{"type": "array", "items": open}, null), "instructions": text, "previous_response_id": text,
		"tools": list(open), "conversation": oneOf(text, open, null),
	})
}
