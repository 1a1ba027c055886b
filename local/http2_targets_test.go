package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// overHTTP2 sends a request of HTTP/2 with any target.
func (r *running) overHTTP2(method, target string, headers ...string) (status, body string) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.g.server.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	fields := append([]string{":method", method, ":scheme", "http", ":authority", "gateway.example", ":path", target}, headers...)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: strings.ToLower(fields[i]), Value: fields[i+1]})
	}
	_, _ = io.WriteString(conn, http2.ClientPreface) // an error is that of the reader
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.WriteSettings()
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			r.t.Fatalf("%s %s: %v after %s %s", method, target, err, status, body)
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			status, ended = frame.PseudoValue("status"), frame.StreamEnded()
		case *http2.DataFrame:
			body, ended = body+string(frame.Data()), frame.StreamEnded()
		case *http2.RSTStreamFrame:
			return status, body
		}
		if ended {
			return status, body
		}
	}
}

// TestForeignObjectsAreMissingByEveryTarget: a target in absolute form, which HTTP/2 allows as
// :path, names the objects that the path alone names.
func TestForeignObjectsAreMissingByEveryTarget(t *testing.T) {
	t.Parallel()
	n := share(t)
	ids := n.own(n.mine)
	n.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"x"}`, as(n.theirs)...) // it uses the credential
	tried := 0
	for below, id := range ids {
		if strings.Contains(id, "/") {
			continue
		}
		for _, prefix := range []string{"", "http://gateway.example", "https://user@other.example:443"} {
			for _, spelled := range []string{"/v1", "/v1/proxy"} {
				tried++
				if status, _ := n.overHTTP2("GET", prefix+spelled+below+"/"+id, as(n.mine)...); status != "200" && spelled == "/v1" {
					t.Errorf("%s%s%s of its own: %s", prefix, spelled, below, status)
				}
				before := len(n.mock.Requests(1000))
				status, body := n.overHTTP2("GET", prefix+spelled+below+"/"+id, as(n.theirs)...)
				if status != "404" && status != "400" && status != "403" {
					t.Errorf("%s%s%s of another workspace: %s %s", prefix, spelled, below, status, body)
				}
				if len(n.mock.Requests(1000)) != before {
					t.Errorf("%s%s%s: the provider was asked", prefix, spelled, below)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d targets were tried", tried)
	}
}
