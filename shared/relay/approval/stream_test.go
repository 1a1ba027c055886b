package approval

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A stream contains the ids of requests without their random parts, at any chunk boundary, and
// has the same length.
func TestStreamsDoNotHaveTheSecretsOfIDs(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("B", 26)
	for text, kept := range map[string]bool{
		"x" + Prefix + secret + "_call_1 and " + Prefix + Prefix + secret + "_": false,
		Prefix + secret + "_call":                  false,
		Prefix + secret:                            true, // truncated: it is not an id
		Prefix + strings.ToLower(secret) + "_call": true,
		Prefix + "123":                             true,
		"":                                         true,
		strings.Repeat(Prefix+secret+"_c", 5000) + Prefix:   false,
		strings.Repeat("m", 70_000) + Prefix + secret + "_": false,
	} {
		for name, src := range map[string]io.Reader{
			"whole": strings.NewReader(text), "by the byte": iotest.OneByteReader(strings.NewReader(text)), "by halves": iotest.HalfReader(strings.NewReader(text)), "with its end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			got, err := io.ReadAll(ConcealStream(io.NopCloser(src)))
			if err != nil || len(got) != len(text) || strings.Contains(string(got), secret) != (kept && strings.Contains(text, secret)) || kept && string(got) != text {
				t.Errorf("%s: %.80s is %.80s %v", name, text, got, err)
			}
		}
	}
	if n, err := ConcealStream(io.NopCloser(strings.NewReader("x"))).Read(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if _, err := io.ReadAll(ConcealStream(io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)))); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
}
