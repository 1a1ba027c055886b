package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var quietLog = log.New(io.Discard, "", 0)

// reply is a response as a client reads it.
type reply struct {
	Status   string
	Header   http.Header
	Trailer  http.Header
	Length   int64
	Coding   []string
	Close    bool
	Body     string
	BodyErr  string
	Informed bool
}

// replies reads the responses to requests of some methods. What follows the last
// response that can be read is given too.
func replies(raw []byte, methods []string) (all []reply, rest string) {
	r := bufio.NewReader(bytes.NewReader(raw))
	for i := 0; ; {
		method := "GET"
		if i < len(methods) {
			method = methods[i]
		}
		left, _ := io.ReadAll(r)
		r = bufio.NewReader(bytes.NewReader(left))
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return all, unordered(string(left))
		}
		b, err := io.ReadAll(resp.Body)
		if resp.Header["Date"] != nil && resp.Header.Get("Date") != "then" {
			resp.Header["Date"] = []string{"given"}
		}
		all = append(all, reply{
			Status: resp.Status, Header: resp.Header, Trailer: resp.Trailer, Length: resp.ContentLength, Coding: resp.TransferEncoding,
			Close: resp.Close, Body: brief(string(b)), BodyErr: fmt.Sprint(err), Informed: resp.StatusCode < 200,
		})
		if resp.StatusCode >= 200 {
			i++
		}
	}
}

// brief returns a body, or a digest of a long one.
func brief(body string) string {
	if len(body) <= 200 {
		return body
	}
	return fmt.Sprintf("%d bytes, CRC %x, %s...", len(body), crc32.ChecksumIEEE([]byte(body)), body[:20])
}

// unordered is text with lines in any order.
func unordered(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\r\n"), func(l string) bool { return strings.HasPrefix(l, "Date: ") })
	slices.Sort(lines)
	return strings.Join(lines, "\r\n")
}

const probe = "GET /probe HTTP/1.1\r\nHost: p\r\n\r\n"

// compare sends the same bytes to both servers. A probe after them shows whether the connection
// is still in use and where the server sees the next request; without methods there is no
// probe.
func compare(t testing.TB, name, mine, net string, me, them *recorder, methods []string, pieces ...string) {
	t.Helper()
	me.saw, them.saw = nil, nil
	if methods != nil {
		pieces = append(slices.Clone(pieces), probe)
	}
	want, wantRest := replies(talk(t, net, pieces...), methods)
	got, gotRest := replies(talk(t, mine, pieces...), methods)
	if !reflect.DeepEqual(got, want) || gotRest != wantRest {
		t.Errorf("%s: the answers differ:\n got %.1500s %.300q\nwant %.1500s %.300q", name, fmt.Sprintf("%+v", got), gotRest, fmt.Sprintf("%+v", want), wantRest)
	}
	if g, w := me.all(), them.all(); !reflect.DeepEqual(g, w) {
		t.Errorf("%s: the handlers saw\n got %.1500s\nwant %.1500s", name, fmt.Sprintf("%+v", g), fmt.Sprintf("%+v", w))
	}
}

// pair starts both servers with recorders.
func pair(t testing.TB) (mine, net string, me, them *recorder) {
	me, them = new(recorder), new(recorder)
	mine, _ = ours(t, me, testOptions)
	return mine, theirs(t, them), me, them
}

func get(path string, lines ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(append(lines, "\r\n"), "\r\n")
}

func post(path, body string, lines ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), strings.Join(append(lines, ""), "\r\n"), body)
}

// requests are what clients, and those who mean no good, send.
var requests = []string{
	get("/"), get("/a?b=c"), get("/?"), get("/a?"), get("/a??"), get("/a?b?"), get("//a//b/../c"), get("/%2F%41"), get("/a%20b?c%zz"),
	get("/a%zz"), get("/a#b"), get("/;a=b,c:d@e&f$g+h!i'j(k)l*m"), get("/ü"), get("/a|b\"<>^`{}\\"), get("/a b"), get("/\x7f"), get("/\x00"), get("/a\tb"),
	get("*"), get("http://other/a"), get("a"), get(""), get("/" + strings.Repeat("a", 3000)), get("/" + strings.Repeat("a", 20_000)), get("/" + strings.Repeat("a", 100_000)),
	post("/", "hello"), post("/", ""), post("/", strings.Repeat("b", 100_000)), post("/", strings.Repeat("b", 400_000)),
	post("/", "a") + post("/", "b") + get("/c"), get("/1") + get("/2") + get("/3"),
	post("/", "a") + "\r\n" + get("/b"), post("/", "a") + "\r\n\r\n" + get("/b"), post("/", "a") + "\n\n\n\n" + get("/b"), post("/", "a") + "\r\n\r\n\r\n" + get("/b"), post("/", "a") + "\r",
	" " + get("/"),
	"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "GET / HTTP/1.1\r\nHost: ü\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / HTTP/1.1\r\nhost: a_b:1\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
	"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "GET / HTTP/0.9\r\nHost: h\r\n\r\n",
	"GET / http/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "GET /  HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1x\r\nHost: h\r\n\r\n", "GET /\r\n\r\n", "GET\r\n\r\n", "GET / \r\n\r\n",
	"G\x00T / HTTP/1.1\r\nHost: h\r\n\r\n", "get / HTTP/1.1\r\nHost: h\r\n\r\n", "QUERY / HTTP/1.1\r\nHost: h\r\n\r\n", "G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS / HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", "CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n",
	"PRI * HTTP/2.0\r\nHost: h\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET", "GE", "GET / HTTP/1.1\r\nHos", "GET / HTTP/1.1\r\nHost: h\r\n", "",
	"GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nHost: h\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA: b\n\n", "GET / HTTP/1.1\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\rHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\r\n\r\n",
	get("/", "X-A: 1", "X-A: 2", "x-a: 3"), get("/", "X-A:1"), get("/", "X-A:  \t 1 \t "), get("/", "X-A:"), get("/", "X-A: a\x00b"), get("/", "X-A: a\x7fb"), get("/", "X-A: a\x01b"), get("/", "X-A: a\tb"), get("/", "X-A: \xff\xfe"),
	get("/", "X A: 1"), get("/", "X-A : 1"), get("/", "X-Ä: 1"), get("/", ": 1"), get("/", "X-A"), get("/", "X-A: 1", " folded"), get("/", "X-A: 1", "\tfolded"), get("/", " folded: 1"), get("/", "X-A: a\rb"), get("/", "X-A: 1", "\r"),
	get("/", "_x: 1", "!#$%&'*+-.^_`|~9: 1"), get("/", "x-stainless-OS: L", "OpenAI-Beta: b", "openai-beta: c"),
	get("/", "Pragma: no-cache"), get("/", "Pragma: no-cache", "Cache-Control: x"), get("/", "Trailer: X-A"), get("/", "TE: trailers"), get("/", "Keep-Alive: 5"),
	get("/", "Connection: close"), get("/", "Connection: Close"), get("/", "Connection: keep-alive"), get("/", "Connection: Keep-Alive, close"), get("/", "Connection: keep-alive", "Connection: close"), get("/", "Connection: x"), get("/", "Connection:"), get("/", "Connection: upgrade", "Upgrade: websocket"), get("/", "Upgrade: h2c", "HTTP2-Settings: AAA", "Connection: Upgrade, HTTP2-Settings"),
	get("/", "Expect: 100-continue"), post("/", "abc", "Expect: 100-continue"), post("/unread", "abc", "Expect: 100-continue"), post("/", "abc", "Expect: 200-ok"), post("/", "abc", "expect:"),
	get("/", "Content-Length: 0"), get("/", "Content-Length: 3") + "abc", "HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
	get("/", "Content-Length: 3", "Content-Length: 3") + "abc", get("/", "Content-Length: 3", "Content-Length: 4") + "abcd", get("/", "Content-Length: 3, 3") + "abc", get("/", "Content-Length: +3") + "abc", get("/", "Content-Length: -3") + "abc",
	get("/", "Content-Length: 3 ") + "abc", get("/", "Content-Length:\t3") + "abc", get("/", "Content-Length: 03") + "abc", get("/", "Content-Length: 0x3") + "abc", get("/", "Content-Length: 3.0") + "abc", get("/", "Content-Length: 3_0") + "abc", get("/", "Content-Length:") + "abc", get("/", "Content-Length: ") + "abc",
	get("/", "Content-Length: 99999999999999999999"), get("/", "Content-Length: 9223372036854775807"), get("/", "Content-Length: 9223372036854775808"), get("/", "content-length: 3") + "abc", get("/", "Content_Length: 3") + "abc", get("/", "Content-Length : 3") + "abc", get("/", "Content-Length: 3\x0b") + "abc", get("/", "Content-Length: ٣") + "abc",
	post("/", "0\r\n\r\n"+probe, "Transfer-Encoding: chunked"), "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: t\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\x0bchunked\r\nContent-Length: 3\r\n\r\nabc",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 3\r\n\r\nabc", "POST / HTTP/1.1\r\nHost: h\r\nX: y\r\n\tTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", "POST / HTTP/1.1\r\nHost: h\r\nX: y\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", "POST / HTTP/1.1\r\nHost: h\r\nX: y\rTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
	"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\n\r\nabc", get("/", strings.Repeat("X-Many: v\r\n", 900)+"X-End: e"), get("/", strings.Repeat("X-Many: v\r\n", 5000)+"X-End: e"), get("/", strings.Repeat("X-Many: v\r\n", 9000)+"X-End: e"), get("/", "X-Long: "+strings.Repeat("l", 15_000)), get("/", "X-Long: "+strings.Repeat("l", 17_000)), get("/", "X-Long: "+strings.Repeat("l", 60_000)), get("/", "X-Long: "+strings.Repeat("l", 100_000)),
	get("/", "X-Long: "+strings.Repeat("l", 16_384-len(get("/", "X-Long: ")))), get("/", "X-Long: "+strings.Repeat("l", 16_385-len(get("/", "X-Long: ")))),
	post("/unread", "hello"), post("/unread", strings.Repeat("u", 200_000)), post("/unread", strings.Repeat("u", 262_143)), post("/unread", strings.Repeat("u", 262_144)), post("/unread", strings.Repeat("u", 262_145)), post("/unread", strings.Repeat("u", 600_000)), post("/unread", "hello", "Connection: close"), post("/unread", strings.Repeat("u", 600_000), "Connection: close"),
	post("/", "abc")[:len(post("/", "abc"))-1], "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc", "POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc",
}

// bounded reports whether net/http would do more than is allowed here: treat the target as
// another server's, or serve what follows a message with an ambiguous end.
func bounded(raw string) bool {
	lower := strings.ToLower(raw)
	return strings.Contains(lower, "transfer-encoding") || strings.Contains(raw, "HTTP/1.0") || strings.Contains(raw, " http://")
}

// TestSameAsNetHTTP sends everything to the server, to net/http with its bounds, and
// to net/http alone.
func TestSameAsNetHTTP(t *testing.T) {
	mine, net, me, them := pair(t)
	alone := new(recorder)
	aloneAddr := bare(t, alone)
	t.Logf("%d requests", len(requests))
	for _, raw := range requests {
		methods := []string{"GET"}
		if strings.HasPrefix(raw, "HEAD") {
			methods[0] = "HEAD"
		}
		compare(t, fmt.Sprintf("%.150q", raw), mine, net, me, them, methods, raw)
		if !bounded(raw) {
			compare(t, fmt.Sprintf("net/http alone: %.150q", raw), net, aloneAddr, them, alone, methods, raw)
		}
	}
}

// TestAnswersSameAsNetHTTP lets every handler answer every method.
func TestAnswersSameAsNetHTTP(t *testing.T) {
	t.Parallel()
	mine, net, me, them := pair(t)
	for path := range handlers {
		for _, method := range []string{"GET", "HEAD", "POST", "large POST", "closing"} {
			raw, m := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\n\r\n", method, path), method
			switch method {
			case "POST":
				raw = post(path, "hello")
			case "large POST":
				raw, m = post(path, strings.Repeat("b", 500_000)), "POST"
			case "closing":
				raw, m = get(path, "Connection: close"), "GET"
			}
			if path == "/bad-length" && m == http.MethodHead {
				continue // net/http passes the word on
			}
			methods := []string{m}
			if method == "closing" {
				// Data sent to a connection that the server has closed may discard the end of a
				// large response.
				methods = nil
			}
			compare(t, method+" "+path, mine, net, me, them, methods, raw)
		}
	}
}

// TestSplitAnywhere sends requests in two pieces, cut at every byte, and in pieces
// of one byte.
func TestSplitAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand connections; left out by -short")
	}
	t.Parallel()
	mine, net, me, them := pair(t)
	for _, raw := range []string{
		post("/", "hello", "X-A: b") + get("/2"), post("/", "a") + "\r\n" + get("/b"), get("/", "X-A: 1", " folded"), "GET / HTTP/1.1\nHost: h\n\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		for i := 1; i < len(raw); i++ {
			compare(t, fmt.Sprintf("%q at %d", raw, i), mine, net, me, them, []string{"GET"}, raw[:i], raw[i:])
		}
		compare(t, fmt.Sprintf("%q in bytes", raw), mine, net, me, them, []string{"GET"}, strings.Split(raw, "")...)
	}
}

// forgiven are line ends before a request, which net/http drops only after a POST.
var forgiven = regexp.MustCompile(`(?s)^[\r\n]|\r\n\r\n[\r\n]|[\r\n]{4}$|[^\r\n][\r\n]+(GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS) `)

// FuzzServer compares the two servers on anything.
func FuzzServer(f *testing.F) {
	for _, raw := range requests {
		if len(raw) < 1000 {
			f.Add([]byte(raw))
		}
	}
	mine, net, me, them := pair(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if forgiven.Match(raw) {
			return
		}
		compare(t, "fuzzed", mine, net, me, them, []string{"GET"}, string(raw))
	})
}
