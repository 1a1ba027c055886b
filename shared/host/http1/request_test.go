package http1

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// TestTargets reads every byte in every place of a target as net/url does.
func TestTargets(t *testing.T) {
	for c := range 256 {
		for _, target := range []string{"/a" + string([]byte{byte(c)}) + "b", "/" + string([]byte{byte(c)}), "/a?x" + string([]byte{byte(c)}), "/%" + string([]byte{byte(c)}) + "1"} {
			if _, _, ok := requestLine("GET " + target + " HTTP/1.1"); !ok {
				continue
			}
			var x exchange
			ok := x.setTarget(target)
			want, err := url.ParseRequestURI(target)
			if ok != (err == nil) || ok && x.url != *want {
				t.Errorf("%q: %+v, want %+v, %v", target, x.url, want, err)
			}
		}
	}
}

// FuzzHead: a head that is taken is what net/http reads, to the byte.
func FuzzHead(f *testing.F) {
	for _, raw := range requests {
		if len(raw) < 2000 {
			f.Add([]byte(raw))
		}
	}
	s := New(nil, testOptions)
	f.Fuzz(func(t *testing.T, raw []byte) {
		end := bytes.Index(raw, []byte("\r\n\r\n"))
		if end < 0 {
			return
		}
		c := &conn{s: s}
		x, ok := c.parse(string(raw[:end+4]))
		if !ok {
			return
		}
		r := bufio.NewReader(bytes.NewReader(raw))
		want, err := http.ReadRequest(r)
		if err != nil {
			t.Fatalf("taken, and net/http says %v", err)
		}
		if n := len(raw) - r.Buffered(); len(raw) <= r.Size() && n != end+4 {
			t.Fatalf("the head has %d bytes, net/http reads %d", end+4, n)
		}
		got := x.req
		if got.Method != want.Method || got.RequestURI != want.RequestURI || *got.URL != *want.URL || got.Host != want.Host || got.Proto != want.Proto ||
			got.ContentLength != want.ContentLength || got.Close != want.Close || !reflect.DeepEqual(got.Header, without(want.Header)) ||
			(got.Body == http.NoBody) != (want.Body == http.NoBody) || len(want.TransferEncoding) > 0 || len(want.Trailer) > 0 {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	})
}

// without is a header as the server gives it on: the host is no part of it.
func without(h http.Header) http.Header {
	h.Del("Host")
	return h
}

// TestValuesShareNoRoom: a handler that adds to one field does not write into the
// next.
func TestValuesShareNoRoom(t *testing.T) {
	c := &conn{s: New(nil, testOptions)}
	x, ok := c.parse("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nA: 3\r\nC: 4\r\n\r\n")
	if !ok {
		t.Fatal("not accepted")
	}
	h := x.req.Header
	h.Add("A", "5")
	h.Add("B", "6")
	if got := strings.Join(h["A"], "") + strings.Join(h["B"], "") + strings.Join(h["C"], ""); got != "135264" {
		t.Errorf("%v", h)
	}
}
