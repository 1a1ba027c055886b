package loadgen

import (
	"fmt"
	"strings"
)

// Body makes a chat request whose JSON is size bytes, or the least that it can be.
func Body(model string, size int, stream bool) []byte {
	end := `},{"role":"user","content":"Say something. ` + Nonce + `"}],"temperature":0.7,"max_tokens":256,"user":"bench-user-1"`
	if stream {
		end += `,"stream":true,"stream_options":{"include_usage":true}`
	}
	end += "}"
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q,"messages":[{"role":"system","content":"You are a helpful assistant. Answer in one paragraph."`, model)
	const words = `The committee met on Tuesday to weigh the \"draft\" budget; it was, they said,\n a first step. `
	for i := 0; ; i++ {
		turn := fmt.Sprintf(`},{"role":%q,"content":""`, [...]string{"user", "assistant"}[i%2])
		room := size - b.Len() - len(end) - len(turn)
		if room < 1 {
			break
		}
		n := min(2000, room)
		text := strings.Repeat(words, n/len(words)) + strings.Repeat("x", n%len(words))
		b.WriteString(turn[:len(turn)-1] + text + `"`)
	}
	b.WriteString(end)
	return []byte(b.String())
}

// EmbeddingBody makes an embeddings request.
func EmbeddingBody(model string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"input":"The quick brown fox. %s","encoding_format":"float"}`, model, Nonce)
}
