package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"gateway/shared/fault"
)

// notUTF8 are bytes that are no text, alone and truncated.
var notUTF8 = []string{"\xff", "\x80", "\xbf\xbf", "\xc0\xaf", "\xe9", "\xe4\xb8", "\xed\xa0\x80", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}

// Each of them at every place around the borders of the blocks that are checked together,
// within ASCII and within other text.
func TestUTF8IsCheckedAtEveryPlace(t *testing.T) {
	t.Parallel()
	for _, fill := range []string{"a", "é", "語", "😀", "ab語"} {
		text := []byte(strings.Repeat(fill, 1300/len(fill)))
		for cut := len(text) - 70; cut <= len(text); cut++ {
			if b := text[:cut]; validUTF8(b) != utf8.Valid(b) {
				t.Fatalf("%q of %d bytes: %t", fill, cut, !utf8.Valid(b))
			}
		}
		for _, bad := range notUTF8 {
			for at := 0; at < len(text)-8; at++ {
				if at == 140 {
					at = 440
				}
				b := bytes.Clone(text)
				copy(b[at:], bad)
				if want := utf8.Valid(b); validUTF8(b) != want {
					t.Fatalf("%q at %d of %q: %t", bad, at, fill, !want)
				}
			}
		}
	}
}

func TestCheckUTF8NamesThePath(t *testing.T) {
	t.Parallel()
	for _, bad := range notUTF8 {
		for text, path := range map[string]string{
			`{"model":"%s"}`: "model", `{"messages":[{"content":"` + strings.Repeat("long ", 300) + `%s"}]}`: "messages[0].content", `{"a":{"%s":1}}`: "a", `{"a":1}%s`: "",
		} {
			f := fault.From(CheckUTF8(fmt.Appendf(nil, text, bad)))
			if f == nil || f.Status() != 400 || !strings.HasPrefix(f.Field, path) || !strings.Contains(f.Message, "UTF-8") {
				t.Errorf("%q in %.40s: %v", bad, text, f)
			}
		}
	}
}

func FuzzValidUTF8(f *testing.F) {
	f.Add([]byte("text 語 \xff"), uint8(40))
	f.Fuzz(func(t *testing.T, b []byte, repeat uint8) {
		b = bytes.Repeat(b, int(repeat))
		if validUTF8(b) != utf8.Valid(b) {
			t.Fatalf("%q", b)
		}
	})
}

// BenchmarkCheckUTF8 is to be compared with BenchmarkWalkOfChat in the same run.
func BenchmarkCheckUTF8(b *testing.B) {
	for name, body := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if CheckUTF8(body) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

// BenchmarkWalkOfChat walks the same bodies.
func BenchmarkWalkOfChat(b *testing.B) {
	set := NewKeySet("model", "stream", "messages")
	for name, body := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var w Walk
			for b.Loop() {
				if set.Walk(body, &w) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

func benchBodies() map[string][]byte {
	out := map[string][]byte{}
	for name, sentence := range map[string]string{"english": "The quick brown fox jumps over the lazy dog. ", "french": "Voilà où l'été mène: là-bas, où la forêt dort. ", "chinese": "敏捷的棕色狐狸跳过懒狗。"} {
		for _, size := range []int{1 << 10, 100 << 10} {
			var s strings.Builder
			s.WriteString(`{"model":"gpt-4o-mini","messages":[`)
			for s.Len() < size {
				fmt.Fprintf(&s, `{"role":"user","content":%q},`, strings.Repeat(sentence, 10))
			}
			out[fmt.Sprintf("%s/%dKB", name, size>>10)] = []byte(strings.TrimSuffix(s.String(), ",") + `],"stream":true}`)
		}
	}
	return out
}
