package queue

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTextBodiesStayReadable(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":"ü\n"}`:     `{"a":"ü\n"}`,
		"tab\tand\r\n":    "tab\tand\r\n",
		"\U0001F600":      "\U0001F600",
		"":                "=",
		"=x":              "=PXg=",
		"\x00":            "=AA==",
		"a\x0b":           "=YQs=",
		"\xff\xfe":        "=//4=",
		"\xed\xa0\x80":    "=7aCA", // a surrogate
		"\uffff":          "=77+/",
		"\ufffd is valid": "\ufffd is valid",
		"del\x7f":         "del\x7f",
	} {
		if got := EncodeBody([]byte(body)); got != want {
			t.Errorf("%q became %q, want %q", body, got, want)
		}
	}
}

func TestForeignTextIsTakenAsItIs(t *testing.T) {
	for _, text := range []string{"", "plain", "=not base64!", "=YQ=", "=YR=="} {
		if got := DecodeBody(text); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestCheckRefusesWhatSQSRefuses(t *testing.T) {
	ok := []Outgoing{
		{}, {Body: bytes.Repeat([]byte("a"), MaxBody)}, {Body: make([]byte, 786_429)},
		{Group: strings.Repeat("g", 128)}, {Group: "org_1-x!~"}, {Delay: MaxDelay},
	}
	if err := CheckAll(ok); err != nil {
		t.Error(err)
	}
	for i, o := range []Outgoing{
		{Body: bytes.Repeat([]byte("a"), MaxBody+1)}, {Body: make([]byte, 786_432)},
		{Group: strings.Repeat("g", 129)}, {Group: "a b"}, {Group: "ü"}, {Group: "\n"},
		{Delay: -1}, {Delay: MaxDelay + time.Second},
	} {
		if err := CheckAll([]Outgoing{{}, o}); err == nil || !strings.Contains(err.Error(), "message 1") {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func FuzzBodyRoundTrip(f *testing.F) {
	for _, s := range []string{"", "=", "=YQ==", "{}", "\x00", "\xff", "ü", "\uffff", "\x7f"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text := EncodeBody(body)
		if text == "" || !utf8.ValidString(text) || len(text) != EncodedLen(body) {
			t.Fatalf("%q became %q", body, text)
		}
		for _, r := range text {
			if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
				t.Fatalf("%q became %q, which SQS refuses", body, text)
			}
		}
		if got := DecodeBody(text); !bytes.Equal(got, body) {
			t.Fatalf("%q came back as %q", body, got)
		}
	})
}

func BenchmarkEncodeBody(b *testing.B) {
	for name, body := range map[string][]byte{"text": bytes.Repeat([]byte("a"), 4096), "binary": bytes.Repeat([]byte{0xff}, 4096)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				EncodeBody(body)
			}
		})
	}
}
