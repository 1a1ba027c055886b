package docs

import (
	"maps"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/prompt"
)

// body is what the document states about a kind of request. Objects are open:
// what a provider takes beyond this is forwarded.
type body struct {
	doc               string
	request, response admin.Schema
	streams           bool // the response is a stream if the request sets stream
	query             []parameter
}

type parameter struct {
	name   string
	schema admin.Schema
}

func object(required []string, members map[string]admin.Schema) admin.Schema {
	s := admin.ObjectSchema(members)
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// request is an object; its fields that are not required may be null, which counts as absent.
func request(required []string, members map[string]admin.Schema) admin.Schema {
	for name, s := range members {
		if kind, ok := s["type"].(string); ok && !slices.Contains(required, name) {
			s = maps.Clone(s)
			s["type"] = []string{kind, "null"}
			members[name] = s
		}
	}
	return object(required, members)
}

func list(of admin.Schema) admin.Schema { return admin.Schema{"type": "array", "items": of} }

func oneOf(s ...admin.Schema) admin.Schema { return admin.Schema{"oneOf": s} }

func within(kind string, low, high float64) admin.Schema {
	return admin.Schema{"type": kind, "minimum": low, "maximum": high}
}

func constant(s string) admin.Schema { return admin.Schema{"type": "string", "const": s} }

var (
	text    = admin.Schema{"type": "string"}
	integer = admin.Schema{"type": "integer"}
	boolean = admin.Schema{"type": "boolean"}
	open    = admin.Schema{"type": "object"}
	null    = admin.Schema{"type": "null"}
	maybe   = admin.Schema{"type": []string{"string", "null"}}
	model   = admin.Schema{"type": "string", "description": "A model, or @slug/model to name the saved provider too."}
	parts   = oneOf(text, list(open), null)
	usage   = object(nil, map[string]admin.Schema{"prompt_tokens": integer, "completion_tokens": integer, "total_tokens": integer})
	stop    = oneOf(text, admin.Schema{"type": "array", "items": text, "maxItems": 4}, null)
)

// sampling are parameters that chat and text completions share.
func sampling(members map[string]admin.Schema) map[string]admin.Schema {
	for name, s := range map[string]admin.Schema{
		"frequency_penalty": within("number", -2, 2), "presence_penalty": within("number", -2, 2), "temperature": within("number", 0, 2), "top_p": within("number", 0, 1),
		"n": within("integer", 1, 128), "seed": integer, "stop": stop, "stream": boolean, "stream_options": object(nil, map[string]admin.Schema{"include_usage": boolean}),
		"user": text, "logit_bias": {"type": "object", "additionalProperties": within("number", -100, 100)}, "max_tokens": {"type": "integer", "minimum": 0},
	} {
		members[name] = s
	}
	return members
}

// prompted is a body for a saved prompt: its variables, and fields that take the place
// of the prompt's own.
func prompted(members map[string]admin.Schema) admin.Schema {
	all := map[string]admin.Schema{
		"variables": {"type": []string{"object", "null"}, "description": "Values for the template, by name.", "example": map[string]any{"name": "World"}},
		"stream":    {"type": "boolean", "example": false},
		"model":     model, "messages": {"type": "array", "items": open, "description": "Overrides the template's."}, "max_completion_tokens": integer, "temperature": within("number", 0, 2),
	}
	for name, s := range members {
		all[name] = s
	}
	return request(nil, all)
}

// choice is an entry of choices.
func choice(members map[string]admin.Schema) admin.Schema {
	members["index"], members["finish_reason"] = integer, maybe
	return object([]string{"index"}, members)
}

// completion is a response of chat and text completions.
func completion(kind string, of admin.Schema) admin.Schema {
	return object([]string{"id", "object", "created", "model", "choices"}, map[string]admin.Schema{
		"id": text, "object": constant(kind), "created": integer, "model": text, "choices": list(of), "usage": usage,
	})
}

// bodies by the endpoint of a route.
var bodies = map[string]body{
	"promptCompletions": {
		doc: "Render a saved prompt and call its model.", streams: true, request: prompted(nil), response: oneOf(
			completion("chat.completion", choice(map[string]admin.Schema{"message": open, "logprobs": {}})),
			completion("text_completion", choice(map[string]admin.Schema{"text": text, "logprobs": {}})),
		),
	},
	"promptRender": {
		doc: "Render a saved prompt. The response contains the body for a model request.", request: prompted(nil),
		response: object([]string{"success", "data"}, map[string]admin.Schema{"success": {"type": "boolean", "const": true}, "data": open}),
	},
	"promptTest": {
		doc: "Run tests on a version of a saved prompt: those of the body, or the saved ones. Each calls the model with a request of the caller, which counts against limits and is logged.",
		request: request(nil, map[string]admin.Schema{"tests": {
			"type": "array", "minItems": 1, "maxItems": 50, "description": "Replaces the prompt's saved tests.",
			"items": object([]string{"name", "assertions"}, map[string]admin.Schema{
				"name": text, "variables": open, "render_only": boolean,
				"assertions": {"type": "array", "minItems": 1, "maxItems": 20, "items": object([]string{"type", "value"}, map[string]admin.Schema{
					"type": {"type": "string", "enum": prompt.Assertions}, "value": {"type": []string{"string", "object", "integer"}}, "on": {"type": "string", "enum": []string{prompt.OnAnswer, prompt.OnRendered}},
				})},
			}),
			"example": []any{map[string]any{"name": "greets", "variables": map[string]any{"name": "World"}, "assertions": []any{map[string]any{"type": "contains", "value": "World"}}}},
		}}),
		response: object([]string{"object", "prompt_id", "prompt_version", "passed", "counts", "cases"}, map[string]admin.Schema{
			"object": constant("prompt-test"), "prompt_id": text, "prompt_version": integer, "passed": boolean,
			"counts": {"type": "boolean", "description": "The saved tests were run; require_tests requires such a run."},
			"cases": list(object([]string{"name", "passed", "answer", "assertions"}, map[string]admin.Schema{
				"name": text, "passed": boolean, "rendered": text, "answer": maybe, "status": integer, "latency_ms": integer, "problem": text,
				"assertions": list(object([]string{"type", "on", "passed"}, map[string]admin.Schema{"type": text, "on": text, "passed": boolean, "reason": text})),
			})),
		}),
	},
	"chatComplete": {
		doc: "Create a chat completion, in OpenAI's format.", streams: true,
		request: request([]string{"messages"}, sampling(map[string]admin.Schema{
			"model": model, "messages": {"type": "array", "minItems": 1, "items": object([]string{"role"}, map[string]admin.Schema{
				"role": {"type": "string", "enum": []string{"system", "developer", "user", "assistant", "tool", "function"}}, "content": parts, "name": text,
				"tool_calls": list(open), "tool_call_id": text,
			})},
			"tools": {"type": "array", "maxItems": 128, "items": open}, "tool_choice": oneOf(text, open, null), "response_format": open, "logprobs": boolean,
			"top_logprobs": within("integer", 0, 20), "max_completion_tokens": integer, "parallel_tool_calls": boolean, "reasoning_effort": text,
		})),
		response: completion("chat.completion", choice(map[string]admin.Schema{"message": object([]string{"role"}, map[string]admin.Schema{
			"role": constant("assistant"), "content": maybe, "refusal": maybe, "tool_calls": list(open),
		})})),
	},
	"complete": {
		doc: "Create a text completion, in OpenAI's format.", streams: true,
		request: request([]string{"prompt"}, sampling(map[string]admin.Schema{
			"model": model, "prompt": oneOf(text, list(admin.Schema{})), "best_of": within("integer", 0, 20), "echo": boolean, "logprobs": within("integer", 0, 5), "suffix": text,
		})),
		response: completion("text_completion", choice(map[string]admin.Schema{"text": text})),
	},
	"messages": {
		doc: "Create a message, in Anthropic's format.", streams: true,
		request: request([]string{"messages", "max_tokens"}, map[string]admin.Schema{
			"model": model, "max_tokens": {"type": "integer", "minimum": 0}, "system": oneOf(text, list(open), null), "stream": boolean, "temperature": within("number", 0, 1),
			"messages": {"type": "array", "minItems": 1, "items": object([]string{"role", "content"}, map[string]admin.Schema{
				"role": {"type": "string", "enum": []string{"user", "assistant"}}, "content": oneOf(text, list(open)),
			})},
			"tools": list(open), "tool_choice": open, "top_k": {"type": "integer", "minimum": 0}, "top_p": within("number", 0, 1), "stop_sequences": list(text), "thinking": open, "metadata": open,
		}),
		response: object([]string{"id", "type", "role", "content", "model", "usage"}, map[string]admin.Schema{
			"id": text, "type": constant("message"), "role": constant("assistant"), "content": list(object([]string{"type"}, map[string]admin.Schema{"type": text, "text": text})), "model": text,
			"stop_reason": maybe, "stop_sequence": maybe, "usage": object(nil, map[string]admin.Schema{"input_tokens": integer, "output_tokens": integer}),
		}),
	},
	"configDryRun": {
		doc: "Simulate a request without sending anything: which targets would be called with what, at what price, within which limits. assume contains the assumed response statuses of targets.",
		request: request([]string{"path"}, map[string]admin.Schema{
			"config": oneOf(text, open, null), "method": {"type": "string", "enum": []string{"POST", "GET", "PUT", "DELETE"}}, "path": {"type": "string", "description": "Below the base URL, such as /chat/completions."},
			"headers": {"type": "object", "additionalProperties": text, "maxProperties": 100}, "body": {}, "assume": {"type": "array", "maxItems": 100, "items": within("integer", 200, 599)},
		}),
		response: object([]string{"object", "endpoint", "config", "targets", "limits", "decision", "error", "sent"}, map[string]admin.Schema{
			"object": constant("dry-run"), "endpoint": text, "config": oneOf(open, null), "targets": list(open), "limits": list(open), "decision": open, "error": oneOf(open, null), "sent": {"const": false},
		}),
	},
	"messagesCountTokens": {
		doc: "Count the input tokens of a conversation in Anthropic's format. If the provider cannot count them, the response is an estimate with estimated true.",
		request: request([]string{"messages"}, map[string]admin.Schema{
			"model": model, "system": oneOf(text, list(open), null), "tools": list(open), "tool_choice": open, "thinking": open,
			"messages": {"type": "array", "minItems": 1, "items": object([]string{"role", "content"}, map[string]admin.Schema{
				"role": {"type": "string", "enum": []string{"user", "assistant"}}, "content": oneOf(text, list(open)),
			})},
		}),
		response: object([]string{"input_tokens"}, map[string]admin.Schema{"input_tokens": integer, "estimated": boolean}),
	},
	"createModelResponse": {
		doc: "Create a response, in the format of OpenAI's Responses API.", streams: true,
		request: request(nil, map[string]admin.Schema{
			"model": model, "input": oneOf(text, admin.Schema{"type": "array", "items": open}, null), "instructions": text, "stream": boolean, "store": boolean, "background": boolean,
			"temperature": within("number", 0, 2), "top_p": within("number", 0, 1), "top_logprobs": within("integer", 0, 20), "max_output_tokens": {"type": "integer", "minimum": 1},
			"max_tool_calls": {"type": "integer", "minimum": 1}, "tools": list(open), "tool_choice": oneOf(text, open, null), "parallel_tool_calls": boolean, "reasoning": open, "text": open,
			"include": list(text), "metadata": oneOf(open, null), "truncation": maybe,
			"previous_response_id": text, "conversation": oneOf(text, open, null), "prompt": open, "user": text, "stream_options": open,
		}),
		response: object([]string{"id", "object", "created_at", "status", "model", "output"}, map[string]admin.Schema{
			"id": text, "object": constant("response"), "created_at": integer, "model": text, "status": {"type": "string", "enum": []string{"completed", "failed", "in_progress", "incomplete", "queued", "cancelled"}},
			"error": oneOf(open, null), "incomplete_details": oneOf(open, null), "output": list(object([]string{"type"}, map[string]admin.Schema{"type": text, "id": text})),
			"usage": oneOf(object(nil, map[string]admin.Schema{"input_tokens": integer, "output_tokens": integer, "total_tokens": integer}), null),
		}),
	},
	"embed": {
		doc: "Create embeddings.",
		request: request([]string{"input"}, map[string]admin.Schema{
			"model": model, "input": oneOf(text, list(admin.Schema{})), "encoding_format": {"enum": []any{"float", "base64", nil}}, "dimensions": {"type": "integer", "minimum": 1}, "user": text,
		}),
		response: object([]string{"object", "data", "model"}, map[string]admin.Schema{
			"object": constant("list"), "model": text, "usage": usage, "data": list(object([]string{"object", "index", "embedding"}, map[string]admin.Schema{
				"object": constant("embedding"), "index": integer, "embedding": oneOf(list(admin.Schema{"type": "number"}), text),
			})),
		}),
	},
	"models": {
		doc: "List the models that the workspace can call, as @slug/model, with known prices in US cents, context windows, input modalities and end of life. If the request names a provider, that provider's list is returned. With anthropic-version, in Anthropic's format; with x-goog-api-key or x-goog-api-client, in Google's.",
		query: []parameter{
			{"ai_service", text}, {"provider", text}, {"limit", admin.Schema{"type": "integer", "minimum": 0}}, {"offset", admin.Schema{"type": "integer", "minimum": 0}},
			{"sort", admin.Schema{"type": "string", "enum": []string{"name", "provider", "ai_service"}}}, {"order", admin.Schema{"type": "string", "enum": []string{"asc", "desc"}}},
		},
		response: object([]string{"object", "data"}, map[string]admin.Schema{
			"object": constant("list"), "total_count": integer,
			"data": list(object([]string{"id", "object"}, map[string]admin.Schema{
				"id": text, "object": constant("model"), "created": integer, "owned_by": text, "pricing": open,
				"context_window": integer, "max_output_tokens": integer, "input_modalities": list(text), "deprecation_date": text, "shutdown_date": text,
			})),
		}),
	},
	"proxy": {
		doc:     "Call any path of a provider: path, query, body and response are forwarded byte for byte. Below /proxy for paths that the gateway serves itself.",
		request: admin.Schema{}, response: admin.Schema{},
	},
}

// headers are the gateway's request headers of data-plane routes.
var headers = []struct{ name, doc string }{
	{"x-gateway-provider", "@slug of a saved provider, or the name of a provider with its credential in Authorization."},
	{"x-gateway-virtual-key", "Slug of a saved provider; the older name of x-gateway-provider."},
	{"x-gateway-config", "Slug of a saved config, or a config as JSON."},
	{"x-gateway-custom-host", "Base URL of the provider; requires the caller's own credential."},
	{"x-gateway-metadata", "JSON object of strings, for logs and analytics; _user names the user."},
	{"x-gateway-trace-id", "Groups requests; generated and returned if absent."},
	{"x-gateway-span-id", "Span id of this request in its trace."},
	{"x-gateway-parent-span-id", "Of the span that this request belongs to."},
	{"x-gateway-span-name", "Name of the span."},
	{"x-gateway-request-timeout", "Timeout of a provider in milliseconds."},
	{"x-gateway-forward-headers", "Names of headers to forward to the provider, comma-separated."},
	{"x-gateway-sensitive-headers", "Names of headers to mask in logs, comma-separated."},
	{"x-gateway-debug", "false: logs contain no bodies."},
	{"x-gateway-translation", "strict: a target that cannot represent every part of the request is rejected with 400."},
	{"x-gateway-refusals", "event: a final rejection of a streamed request to /responses is a stream with the single event response.failed."},
	{"x-gateway-beta", "server-side-mcp-2026-06-01: the gateway calls tools of MCP servers for the model, in /responses and /messages. use-responses-api-2026-07-30: the request is sent to /responses of a provider that supports it."},
	{"x-gateway-strict-open-ai-compliance", "false: responses include fields beyond OpenAI's format."},
}

// responseHeaders are the gateway's headers of responses.
var responseHeaders = map[string]any{
	"x-gateway-trace-id":               describedHeader("The trace of the request."),
	"x-gateway-provider":               describedHeader("The provider that responded."),
	"x-gateway-cache-status":           describedHeader("HIT, SEMANTIC HIT, MISS, SEMANTIC MISS, REFRESH or DISABLED."),
	"x-gateway-retry-attempt-count":    describedHeader("0 without retries, n if retry n succeeded, -1 if none did."),
	"x-gateway-last-used-option-index": describedHeader("Path of the target in the config."),
	"x-gateway-prompt-cache":           describedHeader("unread: the caller's cached prompt prefixes were written to the provider's cache three times in a row and never read."),
	"deprecation":                      describedHeader("If the end of the model is known: @ and the Unix time of its deprecation (RFC 9745)."),
	"sunset":                           describedHeader("If the end of the model is known: when the provider shuts it down (RFC 8594)."),
}

func describedHeader(doc string) map[string]any {
	return map[string]any{"description": doc, "schema": admin.Schema{"type": "string"}}
}

// errorName is the schema of the data plane's rejections.
const errorName = "DataPlaneError"

var errorSchema = object([]string{"error"}, map[string]admin.Schema{
	"status": constant("failure"), "message": text, "type": constant("error"), "errors": list(text),
	"error": object([]string{"message"}, map[string]admin.Schema{"message": text, "type": maybe, "param": maybe, "code": {}}),
})

// besideResponses are the bodies of the other operations on responses, by route name. These
// requests are forwarded unchanged.
var besideResponses = map[string]body{
	"compactModelResponse": {
		doc:     "Compact a conversation for further responses.",
		request: ofResponses("model"),
		response: object([]string{"object"}, map[string]admin.Schema{
			"id": text, "object": text, "created_at": integer, "output": list(open), "usage": oneOf(open, null),
		}),
	},
	"countResponseInputTokens": {
		doc: "Count the input tokens of a response before it is created. This is free.", request: ofResponses(),
		response: object([]string{"input_tokens"}, map[string]admin.Schema{"object": text, "input_tokens": integer}),
	},
	"createDecision": {
		doc: "Create a decision, in OpenAI's format.", request: ofResponses("model"),
		response: object(nil, map[string]admin.Schema{"id": text, "object": text, "model": text, "usage": oneOf(open, null)}),
	},
}

// ofResponses is a request with fields that responses take. The provider judges any others.
func ofResponses(required ...string) admin.Schema {
	return request(required, map[string]admin.Schema{
		"model": model, "input": oneOf(text, admin.Schema{"type": "array", "items": open}, null), "instructions": text, "previous_response_id": text,
		"tools": list(open), "conversation": oneOf(text, open, null),
	})
}

// sessionOfSecret are settings of a session; the provider decides what they may be.
func sessionOfSecret(more map[string]admin.Schema) map[string]admin.Schema {
	all := map[string]admin.Schema{
		"model":        {"type": "string", "description": "A model, or @slug/model to name the saved provider too. If it is absent, the config must set it.", "example": "gpt-realtime"},
		"instructions": {"type": "string", "example": "Answer in one sentence."},
	}
	for name, s := range more {
		all[name] = s
	}
	return all
}

var (
	transcriptionOfSecret = object(nil, map[string]admin.Schema{"model": {"type": "string", "example": "whisper-1"}})
	secretOfSession       = object([]string{"value", "expires_at"}, map[string]admin.Schema{"value": {"type": "string", "description": "The secret; it is shown once."}, "expires_at": integer})
)

const geminiLive = "Open a Live session of Gemini over a WebSocket. Its first message, setup, names the model."

var realtimeBodies = map[string]body{
	"realtimeSecret": {
		doc: "Create a short-lived secret for realtime sessions of one model, with the key, headers, config and settings of this request.",
		request: request(nil, map[string]admin.Schema{
			"expires_after": object(nil, map[string]admin.Schema{"anchor": constant("created_at"), "seconds": within("integer", 10, 7200)}),
			"session": object(nil, sessionOfSecret(map[string]admin.Schema{
				"type": {"type": "string", "enum": []any{"realtime", "transcription"}}, "audio": object(nil, map[string]admin.Schema{"input": object(nil, map[string]admin.Schema{"transcription": transcriptionOfSecret})}),
			})),
		}),
		response: object([]string{"value", "expires_at", "session"}, map[string]admin.Schema{"value": {"type": "string", "description": "The secret; it is shown once."}, "expires_at": integer, "session": open}),
	},
	"liveSession":               {doc: "Open a Live session of OpenAI over a WebSocket. Its first message, session.start, names the model.", request: open, response: open},
	"geminiLiveSession_v1alpha": {doc: geminiLive, request: open, response: open},
	"geminiLiveSession_v1beta":  {doc: geminiLive, request: open, response: open},
	"geminiLiveSession_v1":      {doc: geminiLive, request: open, response: open},
	"responsesSocket":           {doc: "Create responses over a WebSocket: each response.create is processed like POST /responses, and the events of its stream are sent as messages.", request: open, response: open},
	"realtimeSession": {
		doc:      "Create a client secret in the format of the beta, valid for a minute.",
		request:  request(nil, sessionOfSecret(map[string]admin.Schema{"input_audio_transcription": transcriptionOfSecret})),
		response: object([]string{"id", "client_secret"}, map[string]admin.Schema{"id": text, "object": text, "model": text, "client_secret": secretOfSession}),
	},
	"realtimeTranscriptionSession": {
		doc:      "Create a client secret for a transcription session, in the format of the beta.",
		request:  object([]string{"input_audio_transcription"}, map[string]admin.Schema{"input_audio_transcription": transcriptionOfSecret}),
		response: object([]string{"id", "client_secret"}, map[string]admin.Schema{"id": text, "object": text, "client_secret": secretOfSession}),
	},
}
