package bedrock_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/openai"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// FuzzInvokeStream returns any lines to the models that InvokeModel streams, each as one
// event of the model in the service's framing.
func FuzzInvokeStream(f *testing.F) {
	golden.Seeds(f, "*-invoke", "upstream_response.*")
	f.Add([]byte(`{"text":"a","is_finished":false,"index":4}` + "\n" + `{"is_finished":true,"index":4,"amazon-bedrock-invocationMetrics":{"inputTokenCount":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var framed []byte
		for _, line := range bytes.Split(body, []byte("\n")) {
			line = bytes.TrimPrefix(line, []byte("data: "))
			framed = wire.AppendEventStream(framed, "chunk", []byte(`{"bytes":"`+base64.StdEncoding.EncodeToString(line)+`"}`))
		}
		dec := bedrock.Invoke{}.NewStreamDecoder(&chat.Traits{Family: "cohere"})
		out, _ := golden.Reencode(dec, openai.Chat{}, &chat.Options{ID: "i", Model: "m"}, dec.(chat.Framed).Parser(), framed)
		golden.WellFormed(t, openai.Chat{}, out)
	})
}
