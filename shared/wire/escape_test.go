package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var escapeTexts = []string{
	"", "plain", "quote \" slash \\ / end", "line\nfeed\r\t\b\f", "\x00\x01\x1f\x7f", "žluťoučký 漢字 🎉",
	"bad \xff\xfe utf8 \xe2\x82", "\xed\xa0\x80", strings.Repeat("long text without any escape ", 20) + "\n" + strings.Repeat("é", 30),
	"1234567\"", "12345678\"", "123456789\n",
}

func TestAppendJSONStringIsReadBackByEncodingJSON(t *testing.T) {
	for _, s := range escapeTexts {
		checkEscape(t, s)
	}
}

func checkEscape(t *testing.T, s string) {
	t.Helper()
	raw := AppendJSONString(nil, s)
	if same := AppendJSONString(nil, []byte(s)); string(same) != string(raw) {
		t.Fatalf("%q: string and bytes differ: %s %s", s, raw, same)
	}
	if !utf8.Valid(raw) {
		t.Fatalf("%q gives bytes that are not UTF-8: %q", s, raw)
	}
	var got string
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%q gives %s: %v", s, raw, err)
	}
	var want strings.Builder
	for _, r := range s {
		want.WriteRune(r)
	}
	if got != want.String() {
		t.Fatalf("%q came back as %q", s, got)
	}
	if own := string(AppendUnquoted(nil, raw)); own != got {
		t.Fatalf("AppendUnquoted(%s) = %q, want %q", raw, own, got)
	}
}

func TestAppendUnquotedAgreesWithEncodingJSON(t *testing.T) {
	for _, raw := range []string{`""`, `"a\/b"`, `"\u0041\u00e9\u20AC"`, `"\ud83c\udf89"`, `"\ud83c"`, `"\ud83cx"`, `"\ud83c\u0041"`, `"\udf89\ud83c"`, `"\ud83c\ud83c\udf89"`, "\"\xff\\n\xfe\"", `"\b\f\n\r\t\"\\"`} {
		var want string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		if got := string(AppendUnquoted(nil, []byte(raw))); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func FuzzAppendJSONString(f *testing.F) {
	for _, s := range escapeTexts {
		f.Add(s)
	}
	f.Fuzz(checkEscape)
}

func BenchmarkAppendJSONString(b *testing.B) {
	s := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 100)
	dst := make([]byte, 0, 2*len(s))
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendJSONString(dst[:0], s)
	}
}
