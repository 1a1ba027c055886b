package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// upgraded sends a handshake as it is given, with further lines and bytes behind it.
func (r *running) upgraded(lines, behind string) (net.Conn, *bufio.Reader, *http.Response) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.g.server.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprintf(conn, "GET /v1/realtime?model=@mock/gpt-realtime HTTP/1.1\r\nHost: gateway\r\nX-Gateway-Api-Key: %s\r\n%s\r\n%s", workspaceKey, lines, behind)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return conn, in, nil
	}
	return conn, in, resp
}

const goodUpgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// closeOf reads frames of the gateway up to its close, and gives the code.
func closeOf(in io.Reader) (int, error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return 0, err
		}
		n := int64(head[1] & 0x7f)
		switch n {
		case 126:
			var b [2]byte
			if _, err := io.ReadFull(in, b[:]); err != nil {
				return 0, err
			}
			n = int64(binary.BigEndian.Uint16(b[:]))
		case 127:
			var b [8]byte
			if _, err := io.ReadFull(in, b[:]); err != nil {
				return 0, err
			}
			n = int64(binary.BigEndian.Uint64(b[:]))
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return 0, err
		}
		if head[0]&0x0f == 8 {
			if n < 2 {
				return 1005, nil
			}
			return int(binary.BigEndian.Uint16(body)), nil
		}
	}
}

// What breaks the rules of WebSockets ends the session with the code that says so.
func TestFramesThatAreNone(t *testing.T) {
	t.Parallel()
	r := start(t)
	const mask = "\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		bytes string
		code  int
	}{
		"no mask":                      {"\x81\x02{}", 1002},
		"a reserved bit":               {"\xc1\x82" + mask + "{}", 1002},
		"all reserved bits":            {"\xf1\x82" + mask + "{}", 1002},
		"a reserved opcode":            {"\x83\x80" + mask, 1002},
		"a reserved control":           {"\x8b\x80" + mask, 1002},
		"a ping in pieces":             {"\x09\x80" + mask, 1002},
		"a long ping":                  {"\x89\xfe\x00\x7e" + mask + strings.Repeat("x", 126), 1002},
		"a continuation of none":       {"\x80\x80" + mask, 1002},
		"a message in a message":       {"\x01\x81" + mask + "{\x01\x81" + mask + "{", 1002},
		"a length beyond all":          {"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff" + mask, 1002},
		"a close of one byte":          {"\x88\x81" + mask + "x", 1002},
		"a close with a bad code":      {"\x88\x82" + mask + "\x03\xed", 1002},
		"a close of no end's":          {"\x88\x82" + mask + "\x03\xee", 1002},
		"a close beyond all":           {"\x88\x82" + mask + "\x13\x88", 1002},
		"a close that is not a string": {"\x88\x84" + mask + "\x03\xe8\xff\xff", 1007},
		"a masked one":                 {"\x88\x84\x01\x02\x03\x04\x02\xea\xfc\xfb", 1007},
		"a long length":                {"\x81\xfe\x00\x02" + mask + "{}", 1002},
		"a longer one":                 {"\x81\xff\x00\x00\x00\x00\x00\x00\x01\x00" + mask, 1002},
		"a long one of a ping":         {"\x89\xfe\x00\x01" + mask + "x", 1002},
		"text that is no UTF-8":        {"\x81\x82" + mask + "\xc3\x28", 1007},
		"text cut in a rune":           {"\x81\x81" + mask + "\xc3", 1007},
		"100 MB in a frame":            {"\x81\xff\x00\x00\x00\x00\x06\x40\x00\x00" + mask + strings.Repeat("x", 17<<20), 1009},
	} {
		t.Run(name, func(t *testing.T) {
			conn, in, resp := (&running{t: t, base: r.base, g: r.g, mock: r.mock}).upgraded(goodUpgrade, "")
			if resp == nil || resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
				t.Fatalf("%v", resp)
			}
			go func() { _, _ = io.WriteString(conn, c.bytes) }() // may be cut off; ends with the connection
			if code, err := closeOf(in); err != nil || code != c.code {
				t.Errorf("closed with %d, %v; want %d", code, err, c.code)
			}
		})
	}
}

// A handshake that is none, or that carries something else along, is rejected before
// anybody is called.
func TestHandshakesThatCarryMore(t *testing.T) {
	t.Parallel()
	r := start(t)
	without := func(name string) string {
		var out string
		for line := range strings.SplitAfterSeq(goodUpgrade, "\r\n") {
			if !strings.HasPrefix(line, name+":") {
				out += line
			}
		}
		return out
	}
	for name, c := range map[string]struct{ lines, behind string }{
		"no connection": {without("Connection"), ""},
		"no upgrade":    {without("Upgrade"), ""},
		"to h2c":        {without("Upgrade") + "Upgrade: h2c\r\n", ""},
		"no version":    {without("Sec-WebSocket-Version"), ""},
		"an old one":    {without("Sec-WebSocket-Version") + "Sec-WebSocket-Version: 8\r\n", ""},
		"two versions":  {goodUpgrade + "Sec-WebSocket-Version: 13\r\n", ""},
		"no key":        {without("Sec-WebSocket-Key"), ""},
		"a short key":   {without("Sec-WebSocket-Key") + "Sec-WebSocket-Key: eA==\r\n", ""},
		"two keys":      {goodUpgrade + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""},
		"a body":        {goodUpgrade + "Content-Length: 4\r\n", "GET "},
		"a chunked one": {goodUpgrade + "Transfer-Encoding: chunked\r\n", "0\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n"},
	} {
		_, _, resp := r.upgraded(c.lines, c.behind)
		if resp == nil || resp.StatusCode != 400 {
			t.Errorf("%s: %v", name, resp)
		}
	}
	if n := len(r.mock.Requests(64)); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// What comes behind a handshake before its response is neither taken for a request nor for
// a frame.
func TestNothingBehindAHandshake(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, in, resp := r.upgraded(goodUpgrade, "GET /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n")
	if resp == nil || resp.StatusCode != 400 {
		t.Fatalf("%v", resp)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), "before the response to the handshake") {
		t.Errorf("%s %v", body, err)
	}
	if rest, _ := io.ReadAll(in); len(rest) != 0 {
		t.Errorf("%s", rest)
	}
}

// An event that cannot be read one way only is told to be wrong, and does not continue.
func TestEventsThatAreNoneDoNotGoOn(t *testing.T) {
	t.Parallel()
	r := start(t)
	s := r.speak("model=@mock/gpt-realtime")
	for _, event := range []string{
		`{`, `[]`, `{"type":7}`, `{}`, `{"type":"session.update","type":"response.create"}`, `{"Type":"response.create","type":"x"}`,
		`{"type":"session.update","session":{"model":"gpt-4o"}}`, `{"type":"session.update","session":{"max_output_tokens":-1}}`, `{"type":"response.create","response":[]}`,
	} {
		s.send(event)
		if e, err := s.read(); err != nil || e["type"] != "error" || !strings.HasPrefix(fmt.Sprint(e["event_id"]), "event_0") {
			t.Fatalf("%s: %v %v", event, e, err)
		}
	}
	for _, got := range r.mock.Requests(64) {
		if got.Method == "EVENT" {
			t.Errorf("the provider got %s", got.Body)
		}
	}
	s.turn("words")
}

// Guardrails judge the kind of a request before a session is opened.
func TestGuardrailsRefuseSessions(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := `{"provider":"@mock","input_guardrails":[{"allowedRequestTypes":{"blockedTypes":["realtime"]},"deny":true}]}`
	_, resp, err := r.dialRealtime("model=gpt-realtime", "X-Gateway-Config", config)
	if err == nil || resp == nil || resp.StatusCode != 446 {
		t.Fatalf("%v %v", resp, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "hooks_failed") {
		t.Errorf("%s %v", body, err)
	}
	if n := len(r.mock.Requests(64)); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}
