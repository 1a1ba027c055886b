package openai_test

import (
	"testing"

	"gateway/shared/dialect/openai"
)

func TestEmbeddingsHaveTheRequestedEncoding(t *testing.T) {
	const head, tail = `{"object":"list","data":[{"object":"embedding","index":0,"embedding": `, `},{"object":"embedding","index":1,"embedding":[]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`
	const empty = `},{"object":"embedding","index":1,"embedding":""}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`
	const floats, packed = `[0.1,-2,1e-7]`, `"zczMPQAAAMCVv9Yz"`
	for _, c := range []struct{ name, request, body, want string }{
		{"base64 from numbers", `{"input":"a","encoding_format":"base64"}`, head + floats + tail, head + packed + empty},
		{"numbers from base64", `{"input":"a","encoding_format":"float"}`, head + packed + tail, head + `[0.1,-2,1e-07]` + tail},
		{"numbers by default", `{"input":"a"}`, head + packed + tail, head + `[0.1,-2,1e-07]` + tail},
		{"numbers as asked for", `{"input":"a"}`, head + floats + tail, head + floats + tail},
		{"base64 as asked for", `{"input":"a","encoding_format":"base64"}`, head + packed + empty, head + packed + empty},
		{"integers of a host", `{"input":"a","encoding_format":"base64","output_dtype":"int8"}`, head + `[1,2]` + tail, head + `[1,2]` + tail},
		{"an encoding of a host", `{"input":"a","encoding_format":"ubinary"}`, head + packed + tail, head + packed + tail},
		{"no vector", `{"input":"a"}`, head + `"not base64"` + tail, head + `"not base64"` + tail},
		{"another answer", `{"input":"a","encoding_format":"base64"}`, `{"error":{"message":"embedding"}}`, `{"error":{"message":"embedding"}}`},
	} {
		if got := string(openai.ConformEmbeddings([]byte(c.body), []byte(c.request))); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
