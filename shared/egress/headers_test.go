package egress

import (
	"io"
	"log"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var discardLog = log.New(io.Discard, "", 0)

func TestRequestHeadersThatAreNeverSentUpstream(t *testing.T) {
	dropped := []string{
		"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"TE", "Trailer", "Transfer-Encoding", "Upgrade", "HTTP2-Settings",
		"x-gateway-api-key", "X-Gateway-Config", "x-gateway-metadata", "Cookie", "Cookie2",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded", "X-Real-IP", "Via",
		"X-Amz-Date", "X-Amz-Security-Token", "X-Amzn-Trace-Id", "X-AMZ-CF-ID",
		"CloudFront-Viewer-Country", "CloudFront-Forwarded-Proto",
		"Metadata", "Metadata-Flavor", "X-Google-Metadata-Request", "X-aws-ec2-metadata-token", "X-aws-ec2-metadata-token-ttl-seconds",
		"X-GoLambdaProxy-ApiGw-Context", "Host", "Content-Length", "Accept-Encoding", "Expect",
		"True-Client-IP", "CF-Connecting-IP", "Bad Name", "",
	}
	for _, name := range dropped {
		if Forwardable(name) {
			t.Errorf("%q is forwardable", name)
		}
		for _, key := range []string{name, http.CanonicalHeaderKey(name)} {
			dst := http.Header{}
			CopyRequestHeaders(dst, http.Header{key: {"v"}})
			if len(dst) != 0 {
				t.Errorf("%q was copied: %v", key, dst)
			}
		}
	}
	forwarded := []string{
		"Authorization", "Content-Type", "Accept", "User-Agent", "X-Api-Key", "X-Stainless-Lang", "X-Request-Id",
		"Anthropic-Version", "Openai-Beta", "Openai-Organization", "Idempotency-Key", "Content-Encoding", "Traceparent",
		"Range", "If-None-Match", "Accept-Language", "Cache-Control", "Xylophone", "Custom_Name",
	}
	for _, name := range forwarded {
		dst := http.Header{}
		CopyRequestHeaders(dst, http.Header{http.CanonicalHeaderKey(name): {"v"}})
		if dst.Get(name) != "v" || !Forwardable(name) {
			t.Errorf("%q was not copied", name)
		}
	}
}

func TestHeadersNamedByConnectionAreDroppedBothWays(t *testing.T) {
	src := http.Header{
		"Connection":   {"close, X-Secret", "x-other ,Keep-Alive"},
		"X-Secret":     {"1"},
		"X-Other":      {"2"},
		"X-Kept":       {"3"},
		"Content-Type": {"application/json"},
	}
	want := http.Header{"X-Kept": {"3"}, "Content-Type": {"application/json"}}
	for name, copyHeaders := range map[string]func(dst, src http.Header){"request": CopyRequestHeaders, "response": CopyResponseHeaders} {
		dst := http.Header{}
		copyHeaders(dst, src)
		if diff := cmp.Diff(want, dst); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestResponseHeadersThatAreNeverSentBack(t *testing.T) {
	src := http.Header{
		"Connection": {"keep-alive"}, "Keep-Alive": {"timeout=5"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X"},
		"Upgrade": {"h2c"}, "Proxy-Authenticate": {"Basic"}, "Te": {"trailers"}, "Content-Length": {"5"},
		"X-Gateway-Provider": {"forged"}, "x-gateway-cache-status": {"forged"}, "Set-Cookie": {"a=b"},
		"Alt-Svc": {"h3"}, "Strict-Transport-Security": {"max-age=1"}, "Clear-Site-Data": {"*"},
		"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}, "Retry-After": {"3"},
		"X-Request-Id": {"req_1"}, "x-ratelimit-remaining-requests": {"9"}, "Openai-Processing-Ms": {"12"},
		"X-Amzn-Requestid": {"r"}, "Www-Authenticate": {"Bearer"}, "Date": {"now"},
	}
	want := http.Header{
		"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}, "Retry-After": {"3"},
		"X-Request-Id": {"req_1"}, "X-Ratelimit-Remaining-Requests": {"9"}, "Openai-Processing-Ms": {"12"},
		"X-Amzn-Requestid": {"r"}, "Www-Authenticate": {"Bearer"}, "Date": {"now"},
	}
	dst := http.Header{}
	CopyResponseHeaders(dst, src)
	if diff := cmp.Diff(want, dst); diff != "" {
		t.Error(diff)
	}
}

func TestCopiedValuesAreNotWrittenThrough(t *testing.T) {
	values := make([]string, 1, 4)
	values[0] = "a"
	src := http.Header{"Accept": values}
	dst := http.Header{"Accept": {"old"}}
	CopyRequestHeaders(dst, src)
	dst.Add("Accept", "b")
	if got := values[:2][1]; got != "" || len(src["Accept"]) != 1 {
		t.Errorf("the source changed: %q", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, dst["Accept"]); diff != "" {
		t.Error(diff)
	}
}

func TestHeaderValuesWithControlCharactersAreInvalid(t *testing.T) {
	for v, want := range map[string]bool{"a b\tc": true, "": true, "é": true, "a\rb": false, "a\nb": false, "a\x00b": false, "\x7f": false} {
		if ValidHeaderValue(v) != want {
			t.Errorf("%q valid = %v", v, !want)
		}
	}
}

// clientHeaders is what an SDK sends through CloudFront and API Gateway.
var clientHeaders = http.Header{
	"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer x"},
	"Content-Length": {"1024"}, "Content-Type": {"application/json"}, "User-Agent": {"OpenAI/Go 3.95.0"},
	"X-Stainless-Arch": {"arm64"}, "X-Stainless-Lang": {"go"}, "X-Stainless-Os": {"Linux"},
	"X-Stainless-Package-Version": {"3.95.0"}, "X-Stainless-Retry-Count": {"0"}, "X-Stainless-Runtime": {"go"},
	"X-Forwarded-For": {"1.2.3.4"}, "X-Gateway-Config": {"pc-1"}, "X-Amzn-Trace-Id": {"Root=1"},
}

func BenchmarkCopyRequestHeaders(b *testing.B) {
	dst := make(http.Header, 16)
	b.ReportAllocs()
	for b.Loop() {
		clear(dst)
		CopyRequestHeaders(dst, clientHeaders)
	}
}

func BenchmarkCopyResponseHeaders(b *testing.B) {
	src := http.Header{
		"Content-Type": {"text/event-stream"}, "Date": {"Thu"}, "Openai-Organization": {"o"}, "Openai-Processing-Ms": {"1"},
		"Openai-Version": {"2020"}, "X-Ratelimit-Limit-Requests": {"1"}, "X-Request-Id": {"r"}, "Server": {"cloudflare"},
		"Cf-Ray": {"1"}, "Set-Cookie": {"a", "b"}, "Strict-Transport-Security": {"m"}, "Alt-Svc": {"h3"}, "Transfer-Encoding": {"chunked"},
	}
	dst := make(http.Header, 16)
	b.ReportAllocs()
	for b.Loop() {
		clear(dst)
		CopyResponseHeaders(dst, src)
	}
}
