package loadgen

import (
	"fmt"
	"strings"
)

// Body returns a chat request of size bytes of JSON, or the smallest possible size if that is
// more.
func Body(model string, size int, stream bool) []byte {
	end := `},{"role":"user","content":"Say something. ` + Nonce + `"}],"temperature":0.7,"max_tokens":256,"user":"bench-user-1"`
	if stream {
		end += `,"stream":true,"stream_options":{"include_usage":true}`
	}
	end += "}"
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q,"messages":[{"role":"system","content":"You are a helpful assistant. Answer in one paragraph."`, model)
	words := prose{}
	for i := 0; ; i++ {
		turn := fmt.Sprintf(`},{"role":%q,"content":""`, [...]string{"user", "assistant"}[i%2])
		room := size - b.Len() - len(end) - len(turn)
		if room < 1 {
			break
		}
		n := min(2000, room)
		b.WriteString(turn[:len(turn)-1] + words.take(n) + `"`)
	}
	b.WriteString(end)
	return []byte(b.String())
}

// prose makes text that does not repeat itself and is the same in every run. Compression
// must not help the measured server more than it would with text of people.
type prose struct{ state uint32 }

var vocabulary = strings.Fields(`the committee met on Tuesday to weigh a draft budget which it was they said first step and
nobody had hoped for more than three of them would stay until evening because rain was falling over harbour streets while
lamps burned behind every window where clerks copied letters about grain salt timber wool prices tolls debts wages ships
winter roads bridges schools wells fever harvest taxes guards festivals music silence weather patience laughter memory`)

// take returns n bytes of the inside of a JSON string.
func (p *prose) take(n int) string {
	var b strings.Builder
	for {
		p.state = p.state*1664525 + 1013904223
		word := vocabulary[p.state>>16%uint32(len(vocabulary))]
		switch p.state >> 24 {
		case 1, 2, 3, 4, 5, 6, 7:
			word = `\"` + word + `\"`
		case 8, 9, 10, 11:
			word += `,\n`
		}
		if b.Len()+len(word)+1 > n {
			return b.String() + strings.Repeat("x", n-b.Len())
		}
		b.WriteString(word + " ")
	}
}

// EmbeddingBody makes an embeddings request.
func EmbeddingBody(model string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"input":"The quick brown fox. %s","encoding_format":"float"}`, model, Nonce)
}
