package mask

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

const starred = "sk-a/b+c=\"d\\e\n0123456789"

// spellings are how a text may repeat a secret.
func spellings() map[string]string {
	one, _ := json.Marshal(starred)
	two, _ := json.Marshal(string(one))
	all := map[string]string{"plain": starred, "json": string(one), "json in json": string(two), "query": url.QueryEscape(starred), "path": url.PathEscape(starred)}
	hex := ""
	for i := range len(starred) {
		hex += `\u00` + string("0123456789abcdef"[starred[i]>>4]) + string("0123456789ABCDEF"[starred[i]&15])
	}
	all["every character escaped"] = hex
	return all
}

func TestASecretIsHiddenInEverySpelling(t *testing.T) {
	t.Parallel()
	for name, spelling := range spellings() {
		text := []byte("before " + spelling + spelling + " after \\ % \\u00")
		n := len(text)
		if !Bytes(text, []string{starred}) || bytes.Contains(text, []byte("0123456789")) || bytes.Contains(text, []byte(`u0039`)) || len(text) != n {
			t.Errorf("%s: %q", name, text)
		}
		if !bytes.HasPrefix(text, []byte("before ")) || !bytes.HasSuffix(text, []byte(" after \\ % \\u00")) {
			t.Errorf("%s: what stands around it changed: %q", name, text)
		}
	}
	for _, other := range []string{"", "sk", "sk-a/b+c=\"d\\e\n012345678", "%", `\`, `\u`, "%z", strings.Repeat(`\`, 9)} {
		if text := []byte(other); Bytes(text, []string{starred}) || string(text) != other {
			t.Errorf("%q became %q", other, text)
		}
	}
}

func TestABodyIsReadWithoutSecretsHoweverItIsCut(t *testing.T) {
	t.Parallel()
	for name, spelling := range spellings() {
		for _, pad := range []int{0, 1, 4095, 4096, 9000} {
			body := strings.Repeat("x", pad) + spelling + strings.Repeat("y", pad) + spelling
			for _, src := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
				got, err := io.ReadAll(NewBody(io.NopCloser(src), []string{starred}))
				if err != nil || len(got) != len(body) || bytes.Contains(got, []byte("0123456789")) || strings.Count(string(got), "x") != pad {
					t.Errorf("%s behind %d: %v, %d of %d bytes", name, pad, err, len(got), len(body))
				}
			}
		}
	}
	if _, err := io.ReadAll(NewBody(io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), []string{starred})); err != io.ErrUnexpectedEOF {
		t.Errorf("a body that breaks off: %v", err)
	}
}
