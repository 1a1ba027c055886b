package dialect_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/image"
	"gateway/shared/dialect/ocr"
	"gateway/shared/dialect/rerank"
	"gateway/shared/testkit/golden"
)

// carriers are all translators.
var carriers = []chat.Translator{
	bedrock.Embeddings{}, bedrock.Images{}, bedrock.Rerank{}, bedrock.CountTokens{},
	cohere.Embeddings{}, cohere.Rerank{}, embedding.Voyage{}, embedding.Jina{}, embedding.Nomic{},
	rerank.Voyage{}, rerank.Jina{}, ocr.Mistral{}, ocr.Azure{},
	gemini.Embeddings{}, gemini.VertexEmbeddings{}, gemini.VertexEmbedContent{}, gemini.Imagen{},
	image.WorkersAI{}, image.SiliconFlow{}, image.Hyperbolic{}, image.Stability{}, image.Segmind{}, image.Fireworks{},
}

// FuzzOperation returns any bytes to every translator, as a request and as the response to
// one: rejections below 500, strict JSON, no panic.
func FuzzOperation(f *testing.F) {
	golden.Seeds(f, "operations/*", "request.json")
	golden.Seeds(f, "operations/*", "upstream_response.json")
	bodies := [][]byte{
		[]byte(`{"model":"m","input":["a","b"]}`), []byte(`{"model":"m","query":"q","documents":["a",{"text":"b"}],"return_documents":true}`),
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, c := range carriers {
			var loss chat.Loss
			a := &chat.TranslatorRequest{Body: body, Model: "m", Traits: &chat.Traits{}, Loss: &loss, Field: func(string) string { return "" }}
			out, media, err := c.EncodeRequest(nil, body, a)
			if !golden.NotFault(t, err) && media == "" && !json.Valid(out) {
				t.Fatalf("%s: not JSON: %q", c.Name(), out)
			}
			if fault := c.DecodeError(500, nil, body); fault == nil {
				t.Fatal("no error")
			}
			for _, sample := range bodies {
				a.Body = sample
				out, _, _, err := c.DecodeResponse(nil, body, http.Header{}, a)
				if !golden.NotFault(t, err) && !json.Valid(out) {
					t.Fatalf("%s: not JSON: %q", c.Name(), out)
				}
			}
		}
	})
}
