package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// skipSlowly is skipString, a byte at a time.
func skipSlowly(b []byte, i int) (int, problem) {
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, fine
		case c < 0x20:
			return i, badControl
		case c == '\\':
			n := escapeLength(b, i)
			if n == 0 {
				return i, badEscape
			}
			i += n - 1
		}
	}
	return len(b), cutShort
}

func checkSkipString(t *testing.T, b []byte, i int) {
	t.Helper()
	got, why := skipString(b, i)
	want, wanted := skipSlowly(b, i)
	if got != want || why != wanted {
		t.Fatalf("skipString(%q, %d) = %d, %d; want %d, %d", b, i, got, why, want, wanted)
	}
}

// stops are what a text may have at some place: its end, escapes, whole and broken, and
// bytes next to those that matter.
var stops = []string{
	`"`, "\x00", "\x1f", "\n", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\u00e`, `\x`, `\`, `\\"`, `\\\"`, `\\\\`,
	" ", "!", "#", "[", "]", "^", "\x7f", "\x80", "\x9f", "\xa2", "\xdc", "\xff", "é",
}

// A stop of every kind at every place of texts of every length, which begin and
// end at every alignment.
func TestSkipStringFindsEveryStop(t *testing.T) {
	room := make([]byte, 64+200+16)
	for length := range 200 {
		from := length * 7 % 64
		for at := 0; at <= length; at++ {
			for _, stop := range stops {
				b := room[from : from+length]
				for i := range b {
					b[i] = 'a' + byte(i%26)
				}
				b = append(append(b[:at], stop...), "tail"...)
				checkSkipString(t, b[:max(at+len(stop), min(length, len(b)))], 0)
				checkSkipString(t, b, min(at, 3))
			}
		}
	}
}

// Two stops at all distances, around the borders of what is looked at together.
func TestSkipStringTakesEscapesTogether(t *testing.T) {
	for first := range 150 {
		for gap := range 70 {
			for _, stop := range [...]string{`"`, `\"`, `\x`, "\x01", `\`} {
				b := bytes.Repeat([]byte{'x'}, 300)
				copy(b[first:], `\\`)
				copy(b[first+2+gap:], stop)
				checkSkipString(t, b, 0)
				checkSkipString(t, b[:first+2+gap+len(stop)], 0)
				checkSkipString(t, b[:first+1], 0)
			}
		}
	}
}

func FuzzSkipString(f *testing.F) {
	f.Add([]byte(`the "first" line\nthe second \u00e9 and so on, until there are more than sixty-four bytes"`), uint8(3), uint16(2))
	f.Add(bytes.Repeat([]byte(`\\`), 80), uint8(1), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, i uint8, repeat uint16) {
		b = bytes.Repeat(b, int(repeat%64))
		checkSkipString(t, b, min(int(i), len(b)))
		// The same with a text around it that is long enough for whole blocks.
		r := rand.New(rand.NewPCG(uint64(repeat), uint64(i)))
		long := bytes.Repeat([]byte{'t'}, len(b)+r.IntN(200))
		copy(long[r.IntN(len(long)-len(b)+1):], b)
		checkSkipString(t, long, 0)
	})
}
