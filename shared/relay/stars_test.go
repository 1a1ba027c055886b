package relay

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"gateway/shared/provider"
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
	for name, said := range spellings() {
		text := []byte("before " + said + said + " after \\ % \\u00")
		n := len(text)
		if !hide(text, []string{starred}) || bytes.Contains(text, []byte("0123456789")) || bytes.Contains(text, []byte(`u0039`)) || len(text) != n {
			t.Errorf("%s: %q", name, text)
		}
		if !bytes.HasPrefix(text, []byte("before ")) || !bytes.HasSuffix(text, []byte(" after \\ % \\u00")) {
			t.Errorf("%s: what stands around it changed: %q", name, text)
		}
	}
	for _, other := range []string{"", "sk", "sk-a/b+c=\"d\\e\n012345678", "%", `\`, `\u`, "%z", strings.Repeat(`\`, 9)} {
		if text := []byte(other); hide(text, []string{starred}) || string(text) != other {
			t.Errorf("%q became %q", other, text)
		}
	}
}

func TestABodyIsReadWithoutSecretsHoweverItIsCut(t *testing.T) {
	t.Parallel()
	for name, said := range spellings() {
		for _, pad := range []int{0, 1, 4095, 4096, 9000} {
			body := strings.Repeat("x", pad) + said + strings.Repeat("y", pad) + said
			for _, src := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
				got, err := io.ReadAll(newStars(io.NopCloser(src), []string{starred}))
				if err != nil || len(got) != len(body) || bytes.Contains(got, []byte("0123456789")) || strings.Count(string(got), "x") != pad {
					t.Errorf("%s behind %d: %v, %d of %d bytes", name, pad, err, len(got), len(body))
				}
			}
		}
	}
	if _, err := io.ReadAll(newStars(io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), []string{starred})); err != io.ErrUnexpectedEOF {
		t.Errorf("a body that breaks off: %v", err)
	}
}

func TestWhatIsSecretInACredential(t *testing.T) {
	t.Parallel()
	for _, p := range provider.All() {
		cred := provider.Credential{Key: "the-key-itself", Fields: map[string]string{}, CustomHeaders: map[string]string{"X-A": "Basic dXNlcjpwYXNz"}}
		want := []string{"the-key-itself", "Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", "Bearer other-header-value", "other-header-value"}
		for _, f := range p.Fields {
			cred.Fields[f.Name] = "value-of-" + f.Name
			if f.Secret {
				want = append(want, "value-of-"+f.Name)
			}
			if f.Name == "vertex_service_account_json" {
				cred.Fields[f.Name] = `{"private_key":"-----BEGIN KEY","private_key_id":"0123456789ab"}`
				want = append(want[:len(want)-1], cred.Fields[f.Name], "-----BEGIN KEY", "0123456789ab")
			}
		}
		target := provider.Target{Provider: p, Credential: cred, CustomHeaders: map[string]string{"X-B": "Bearer other-header-value"}}
		got := "\x00" + strings.Join(target.Secrets(nil, true), "\x00") + "\x00"
		for _, w := range want {
			if !strings.Contains(got, "\x00"+w+"\x00") {
				t.Errorf("%s: %q is no secret", p.ID, w)
			}
		}
	}
}

// Tokens that were made for the request are secrets too.
func TestDerivedTokensAreHidden(t *testing.T) {
	t.Parallel()
	c := newCall()
	c.to.target.Provider, _ = provider.ByID("bedrock")
	c.sentHeader = http.Header{
		"Authorization":        {"AWS4-HMAC-SHA256 Credential=AKIA/2026, SignedHeaders=host, Signature=00112233445566778899"},
		"X-Amz-Security-Token": {"session-token-0123456789"}, "Accept": {"application/json"},
	}
	text := []byte("token session-token-0123456789 signature 00112233445566778899 type application/json")
	hide(text, c.secrets())
	if string(text) != "token ************************ signature ******************** type application/json" {
		t.Errorf("%s", text)
	}
}

// Answers that go well are searched without allocating.
func TestSearchingAGoodAnswerAllocatesNothing(t *testing.T) {
	c := newCall()
	c.to.target.Provider, _ = provider.ByID("openai")
	c.to.target.Credential.Key = "sk-0123456789"
	c.rec.Model, c.rec.FinishReason = "gpt-4o-mini", "stop"
	c.bodies.Response = bytes.Repeat([]byte("sk-answer "), 1000)
	h := http.Header{"X-Request-Id": {"abc"}}
	if n := testing.AllocsPerRun(100, func() { c.hideInLog(); c.hideInRecord(); c.hideInHead(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSearchAGoodAnswer(b *testing.B) {
	c := newCall()
	c.to.target.Provider, _ = provider.ByID("openai")
	c.to.target.Credential.Key = "sk-0123456789"
	c.bodies.Response = bytes.Repeat([]byte(`{"choices":[{"message":"some text of an answer"}]}`), 20)
	b.ReportAllocs()
	for b.Loop() {
		c.hideInLog()
	}
}
