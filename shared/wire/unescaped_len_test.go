package wire

import (
	"encoding/json"
	"testing"
)

func TestUnescapedLenIsTheLengthOfTheText(t *testing.T) {
	for _, s := range []string{``, `plain`, `a\"b`, `\\`, `\n\t\/`, `\u00e9`, `\u4e2d\u6587`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ude00\ud83d`, `x\u0041`, "中文", `\uD83D\uDE00!`} {
		var text string
		if err := json.Unmarshal([]byte(`"`+s+`"`), &text); err != nil {
			t.Fatal(err)
		}
		if got := UnescapedLen([]byte(s)); got != len(text) {
			t.Errorf("%s: %d, want %d", s, got, len(text))
		}
	}
	for _, s := range []string{`\`, `\u`, `\u12`, `\ud83d\u1`} { // cut off
		if got := UnescapedLen([]byte(s)); got > len(s) {
			t.Errorf("%s: %d", s, got)
		}
	}
}
