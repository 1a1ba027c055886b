package dialect_test

import (
	"fmt"
	"net/http"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/job"
	"gateway/shared/dialect/ocr"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// errorReaders read the error responses of every provider.
var errorReaders = map[string]interface {
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}{
	"openai.chat": openai.Chat{}, "openai.completions": openai.Completions{}, "responses": responses.Responses{},
	"anthropic": anthropic.Messages{}, "anthropic count": anthropic.CountTokens{}, "gemini": gemini.Generate{},
	"gemini embeddings": gemini.Embeddings{}, "vertex embeddings": gemini.VertexEmbeddings{}, "imagen": gemini.Imagen{},
	"converse": converse.Converse{}, "invoke": bedrock.Invoke{}, "cohere": cohere.Chat{}, "cohere generate": cohere.Generate{},
	"cohere embeddings": cohere.Embeddings{}, "cohere rerank": cohere.Rerank{}, "ocr": ocr.Mistral{}, "others": upstream.Errors{},
	"jobs of anthropic": job.Anthropic{}, "jobs of bedrock": job.Bedrock{}, "jobs of cohere": job.Cohere{}, "jobs of fireworks": job.Fireworks{},
	"jobs of mistral": job.Mistral{}, "jobs of together": job.TogetherAI{}, "jobs of vertex": job.Vertex{},
}

// errorBodies say, in the words of each provider, what usually has another status.
var errorBodies = []string{
	`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
	`{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}`,
	`{"type":"error","error":{"type":"request_too_large","message":"Too large"}}`,
	`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`,
	`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`,
	`{"error":{"message":"maximum context length is 10","code":"context_length_exceeded"}}`,
	`{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"reason":"API_KEY_INVALID"}]}}`,
	`{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}`,
	`[{"error":{"code":401,"message":"No","status":"UNAUTHENTICATED"}}]`,
	`{"__type":"com.amazon#ThrottlingException","message":"Rate exceeded"}`,
	`{"__type":"ModelNotReadyException","message":"Not ready"}`,
	`{"id":"1","message":"invalid api token"}`,
	`{"detail":"text"}`, `{"errors":[{"code":1000,"message":"text"}]}`, `"text"`, `{}`, `[]`, `null`,
	`<Error><Code>SlowDown</Code><Message>text</Message></Error>`,
	`<!DOCTYPE html><html><body>Service Unavailable</body></html>`, `{"error":{"mess`, ``,
}

// Lists of statuses in configs name what the provider sends: no words change it.
func TestErrorResponsesRetainTheStatusOfTheProvider(t *testing.T) {
	t.Parallel()
	h := http.Header{"X-Amzn-Errortype": {"ModelTimeoutException:http://internal"}, "Retry-After": {"2"}}
	for name, d := range errorReaders {
		for _, body := range errorBodies {
			for _, head := range []http.Header{{}, h} {
				for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 424, 429, 498, 499, 500, 501, 502, 503, 504, 520, 524, 529, 599} {
					f := d.DecodeError(status, head, []byte(body))
					if f.Status() != status || f.Source != fault.SourceProvider {
						t.Errorf("%s: status %d of %s becomes %d, source %s", name, status, body, f.Status(), f.Source)
					}
					if p := chat.ProviderErrorOf(f); p != nil && p.Status != status {
						t.Errorf("%s: the cause says %d for %d", name, p.Status, status)
					}
				}
				for _, status := range []int{300, 302, 304, 399, 600, 999} {
					if f := d.DecodeError(status, head, []byte(body)); f.Status() != http.StatusBadGateway {
						t.Errorf("%s: %s", name, fmt.Sprint(status, " becomes ", f.Status()))
					}
				}
			}
		}
	}
}
