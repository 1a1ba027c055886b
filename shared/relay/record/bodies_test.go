package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/seal"
	"gateway/shared/usage"
)

// open is a sealer that does not seal.
type open struct{ seal.Sealer }

func (open) Seal(_ context.Context, _ seal.Binding, plain []byte) ([]byte, error) {
	return bytes.Clone(plain), nil
}

type broken struct{ seal.Sealer }

func (broken) Seal(context.Context, seal.Binding, []byte) ([]byte, error) {
	return nil, errors.New("no key")
}

func sealed(t *testing.T, b *Bodies, what Extras, secrets ...string) *usage.Bodies {
	t.Helper()
	b.SetExtras(what, secrets)
	text, err := b.Seal(context.Background(), open{}, seal.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := usage.DecodeBodies(text)
	if err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestWhatALogShows(t *testing.T) {
	t.Parallel()
	const secret = "sk-0123456789"
	var b Bodies
	for range 2 { // the second time in the memory of the first
		b.Send(http.Header{"Authorization": {"Bearer " + secret}, "X-Custom": {"basic " + secret}, "X-Named": {"value"}, "X-Other": {"shown"}}, []byte("sent"), []string{"X-Named"}, []string{secret})
		b.Receive([]byte("before"))
		b.Receive([]byte("received " + secret))
		b.AppendResponse([]byte("ans"))
		b.AppendResponse([]byte("wer " + secret))
		got := sealed(t, &b, Extras{
			ResponseHeaders: http.Header{"X-Answer": {secret}}, Requests: true,
			RequestHeaders: http.Header{"Cookie": {"c"}, "X-Gateway-Aws-Secret-Access-Key": {"s"}, "X-Mine": {"m"}}, SensitiveHeaders: []string{"X-Mine"}, Request: []byte("request"),
		}, secret)
		stars := strings.Repeat("*", len(secret))
		for name, c := range map[string]struct {
			got  []byte
			want string
		}{
			"sent": {got.Sent, "sent"}, "request": {got.Request, "request"}, "answer": {got.Response, "answer " + stars}, "received": {got.Received, "received " + stars},
			"sent headers":    {got.SentHeaders, `{"Authorization":"*****","X-Custom":"basic ` + stars + `","X-Named":"*****","X-Other":"shown"}`},
			"request headers": {got.RequestHeaders, `{"Cookie":"*****","X-Gateway-Aws-Secret-Access-Key":"*****","X-Mine":"*****"}`},
			"answer headers":  {got.ResponseHeaders, `{"X-Answer":"` + stars + `"}`},
		} {
			if string(c.got) != c.want {
				t.Errorf("%s: %s", name, c.got)
			}
		}
		if got.Truncated {
			t.Error("nothing was cut")
		}
		b.Free()
	}
}

func TestWhatALogLeavesOut(t *testing.T) {
	t.Parallel()
	var b Bodies
	b.Send(http.Header{}, []byte("sent"), nil, nil)
	b.AppendResponse([]byte("vectors"))
	if got := sealed(t, &b, Extras{NoResponse: true}); len(got.Sent)+len(got.SentHeaders)+len(got.Response)+len(got.Request) != 0 {
		t.Errorf("%+v", got)
	}
	b.Free()
	if got, err := b.Seal(context.Background(), broken{}, seal.Binding{}); got != nil || err == nil {
		t.Errorf("%s, %v", got, err)
	}
}

// Every body is limited, and the log reports whether a visible one was truncated.
func TestLongBodiesAreCut(t *testing.T) {
	t.Parallel()
	long := make([]byte, MaxBody+1)
	for name, c := range map[string]struct {
		answer []byte
		what   Extras
	}{
		"answer": {long, Extras{}}, "request": {nil, Extras{Requests: true, Request: long}},
	} {
		var b Bodies
		b.AppendResponse(c.answer)
		if got := sealed(t, &b, c.what); !got.Truncated || len(got.Request)+len(got.Response) != MaxBody {
			t.Errorf("%s: cut %t, %d bytes", name, got.Truncated, len(got.Request)+len(got.Response))
		}
	}
	var b Bodies
	b.Receive(long)
	b.Send(nil, long, nil, nil)
	if got := sealed(t, &b, Extras{Requests: true}); len(got.Received) != MaxBody || len(got.Sent) != MaxBody {
		t.Errorf("%d and %d bytes", len(got.Received), len(got.Sent))
	}
}

func TestHeadersThatHoldSecrets(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{
		"Authorization": true, "Set-Cookie": true, "X-Api-Key": true, "X-Gateway-Config": true, "X-Gateway-Azure-Ad-Token": true, "X-Gateway-Vertex-Service-Account-Json": true,
		"X-Gateway-Provider": false, "X-Gateway-Trace-Id": false, "Content-Type": false, "X-Gateway-Virtual-Key": false,
		"X-Token": true, "X-Auth": true, "X_api_key": true, "Cf-Access-Client-Secret": true, "Ocp-Apim-Subscription-Key": true, "X-Goog-Iam-Authorization-Token": true, "X-Accesstoken": true,
		"Idempotency-Key": false, "X-Ratelimit-Remaining-Tokens": false, "Anthropic-Beta": false, "User-Agent": false, "Www-Authenticate": false, "X-Keyspace": false,
	} {
		if IsSensitive(name, nil) != hidden || !IsSensitive(name, []string{name}) {
			t.Errorf("%s: hidden %t", name, IsSensitive(name, nil))
		}
	}
	shown := AppendHeaders(nil, http.Header{"X-Gateway-Custom-Host": {"https://u:p@h"}, "B": {"\"b\"", "second"}, "A": {"a"}}, nil)
	var in map[string]string
	if err := json.Unmarshal(shown, &in); err != nil || in["B"] != `"b"` || !bytes.HasPrefix(shown, []byte(`{"A"`)) || in["X-Gateway-Custom-Host"] != "*****" {
		t.Errorf("%v %s", err, shown)
	}
}
