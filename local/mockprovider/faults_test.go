package mockprovider

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestErrorFaultsHaveTheProvidersShape(t *testing.T) {
	_, url := start(t, Options{})
	r := post(t, url, "/v1/chat/completions", chat("mock: status=429 retry-after=2", ""))
	if v := decode(t, r.body); r.status != 429 || r.header.Get("Retry-After") != "2" || at(v, "error", "code") != "rate_limit_exceeded" || at(v, "error", "type") != "requests" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	r = post(t, url, "/v1/chat/completions", chat("mock: status=429 code=insufficient_quota type=insufficient_quota message=You exceeded your quota", ""))
	if v := decode(t, r.body); at(v, "error", "code") != "insufficient_quota" || at(v, "error", "message") != "You exceeded your quota" {
		t.Errorf("%s", r.body)
	}
	for status, typ := range map[string]string{"400": "invalid_request_error", "401": "authentication_error", "402": "billing_error", "403": "permission_error", "404": "not_found_error", "413": "request_too_large", "429": "rate_limit_error", "500": "api_error", "504": "timeout_error", "529": "overloaded_error"} {
		r := post(t, url, "/v1/messages", claude("mock: status="+status, ""))
		if v := decode(t, r.body); at(v, "error", "type") != typ || at(v, "request_id") != r.header.Get("Request-Id") {
			t.Errorf("%s: %s", status, r.body)
		}
	}
	r = post(t, url, "/v1/chat/completions", strings.Replace(chat("hi", ""), "gpt-4o-mini", "gpt-4o?status=503&retry-after=1", 1))
	if r.status != 503 || r.header.Get("Retry-After") != "1" {
		t.Errorf("by the model's name: %d %s", r.status, r.body)
	}
}

func TestTimesCountsRequestsOfOneConversation(t *testing.T) {
	_, url := start(t, Options{})
	body := chat("mock: status=500 times=2", "")
	var got []int
	for range 3 {
		got = append(got, post(t, url, "/v1/chat/completions", body).status)
	}
	other := post(t, url, "/v1/chat/completions", chat("mock: status=500 times=2\nother", "")).status
	if got[0] != 500 || got[1] != 500 || got[2] != 200 || other != 500 {
		t.Errorf("%v, another conversation %d", got, other)
	}
}

func TestOrderedFaults(t *testing.T) {
	_, url := start(t, Options{})
	order := func(body string) int { return do(t, "POST", url+"/__mock/faults", body).status }
	if s := order(`{"next":1,"directives":"status=503","path":"/v1/messages"}`); s != 204 {
		t.Fatal(s)
	}
	order(`{"next":2,"directives":"status=500","model":"gpt-4o-mini"}`)
	for i, c := range []struct {
		path, body string
		want       int
	}{
		{"/v1/chat/completions", chat("hi", ""), 500},
		{"/v1/chat/completions", strings.Replace(chat("hi", ""), "gpt-4o-mini", "gpt-4o", 1), 200},
		{"/v1/messages", claude("hi", ""), 503},
		{"/v1/messages", claude("hi", ""), 200},
		{"/v1/chat/completions", chat("hi", ""), 500},
		{"/v1/chat/completions", chat("hi", ""), 200},
	} {
		if r := post(t, url, c.path, c.body); r.status != c.want {
			t.Errorf("request %d: %d, want %d", i, r.status, c.want)
		}
	}
	order(`{"next":9,"directives":"drop"}`)
	if r := do(t, "GET", url+"/__mock/faults", ""); !bytes.Contains(r.body, []byte(`"next":9`)) {
		t.Errorf("%s", r.body)
	}
	do(t, "DELETE", url+"/__mock/faults", "")
	if r := post(t, url, "/v1/chat/completions", chat("hi", "")); r.status != 200 {
		t.Errorf("after DELETE: %d %v", r.status, r.err)
	}
	for _, bad := range []string{`{"next":0,"directives":"drop"}`, `{"next":1,"directives":"explode"}`, `{"next":1,"directive":"drop"}`, `x`} {
		if s := order(bad); s != 400 {
			t.Errorf("%s: %d", bad, s)
		}
	}
}

func TestPlainFaults(t *testing.T) {
	s, url := start(t, Options{})
	ask := func(directive string) reply {
		return post(t, url, "/v1/chat/completions", chat("mock: "+directive, ""))
	}
	if r := ask("drop"); r.err == nil {
		t.Error("drop: an answer came")
	}
	if r := ask("html"); r.status != 502 || !bytes.Contains(r.body, []byte("<html>")) || r.header.Get("Content-Type") != "text/html" {
		t.Errorf("html: %d %s", r.status, r.body)
	}
	if r := ask("html status=200"); r.status != 200 || !bytes.Contains(r.body, []byte("<html>")) {
		t.Errorf("html with status: %d", r.status)
	}
	if r := ask("empty"); r.status != 200 || len(r.body) != 0 {
		t.Errorf("empty: %d %q", r.status, r.body)
	}
	if r := ask("garbage"); r.status != 200 || json.Valid(r.body) {
		t.Errorf("garbage: %s", r.body)
	}
	if r := ask("cut=after:40"); !errors.Is(r.err, io.ErrUnexpectedEOF) || len(r.body) != 40 {
		t.Errorf("cut: %v %q", r.err, r.body)
	}
	if r := ask("wrong-length"); !errors.Is(r.err, io.ErrUnexpectedEOF) || !json.Valid(r.body) {
		t.Errorf("wrong-length: %v %q", r.err, r.body)
	}
	if r := ask("silence=after:10 for=10ms"); !errors.Is(r.err, io.ErrUnexpectedEOF) || len(r.body) != 10 {
		t.Errorf("silence: %v %q", r.err, r.body)
	}
	if r := ask("huge=300000"); len(r.body) != 300000 || !json.Valid(r.body) {
		t.Errorf("huge: %d bytes", len(r.body))
	}
	if r := ask("no-usage"); at(decode(t, r.body), "usage") != nil {
		t.Errorf("no-usage: %s", r.body)
	}
	if r := ask("finish=content_filter"); at(decode(t, r.body), "choices", 0, "finish_reason") != "content_filter" {
		t.Errorf("finish: %s", r.body)
	}
	r := ask("gzip")
	if r.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("gzip: %v", r.header)
	}
	zr, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(zr); err != nil || !json.Valid(b) {
		t.Errorf("gzip: %v %q", err, b)
	}
	if b := s.Bill(); b.Open != 0 {
		t.Errorf("%d rows are open", b.Open)
	}
}

// TestStreamFaults runs each fault in both dialects.
func TestStreamFaults(t *testing.T) {
	_, url := start(t, Options{})
	type dialect struct {
		path string
		body func(user, more string) string
		read func([]byte) (*StreamResult, error)
	}
	for name, d := range map[string]dialect{
		"openai":    {"/v1/chat/completions", chat, ReadOpenAIStream},
		"anthropic": {"/v1/messages", claude, ReadAnthropicStream},
	} {
		ask := func(directive string) (reply, *StreamResult, error) {
			r := post(t, url, d.path, d.body("mock: "+directive, `,"stream":true`))
			got, err := d.read(r.body)
			return r, got, err
		}
		t.Run(name, func(t *testing.T) {
			for _, framing := range []string{"ping", "split-utf8", "huge-line=100000", "ping split-utf8", "pace=1ms", "no-usage"} {
				r, got, err := ask("chunks=9 " + framing)
				if r.err != nil || err != nil || got.Text == "" {
					t.Errorf("%s: %v %v", framing, r.err, err)
				}
			}
			r, _, _ := ask("huge-line=200000")
			if sc := bufio.NewScanner(bytes.NewReader(r.body)); !longest(sc, 200_000) {
				t.Error("huge-line: no line is long")
			}
			for _, cut := range []string{"cut=after:3", "cut=mid:3", "silence=after:3 for=5ms"} {
				r, got, err := ask("chunks=20 " + cut)
				if r.err == nil || err == nil {
					t.Errorf("%s: the stream ended well", cut)
				}
				if strings.Contains(cut, "after") && got.Events != 3 {
					t.Errorf("%s: %d events", cut, got.Events)
				}
			}
			if r, _, err := ask("silence=after:0 for=5ms"); r.status != 200 || len(r.body) != 0 || r.err == nil || err == nil {
				t.Errorf("headers then silence: %d %v %q", r.status, r.err, r.body)
			}
			if r, _, err := ask("no-done"); r.err != nil || err == nil || !strings.Contains(err.Error(), "ends without") {
				t.Errorf("no-done: %v %v", r.err, err)
			}
			if _, _, err := ask("garbage=after:2"); err == nil || !strings.Contains(err.Error(), "event 2") {
				t.Errorf("garbage: %v", err)
			}
			for _, after := range []string{"0", "2"} {
				r, _, err := ask("error-event=overloaded_error message=Too busy")
				if after != "0" {
					r, _, err = ask("error-event=overloaded_error after=" + after + " message=Too busy")
				}
				if r.status != 200 || r.err != nil || err == nil || !strings.Contains(err.Error(), "event "+after+": error event overloaded_error: Too busy") {
					t.Errorf("error event after %s: %v %v", after, r.err, err)
				}
			}
			r, _, _ = ask("gzip")
			zr, err := gzip.NewReader(bytes.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(zr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.read(b); err != nil {
				t.Errorf("gzip: %v", err)
			}
		})
	}
}

func longest(sc *bufio.Scanner, n int) bool {
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if len(sc.Bytes()) >= n {
			return true
		}
	}
	return false
}

// TestSplitUTF8CutsInsideACharacter reads what each read of the stream brings.
func TestSplitUTF8CutsInsideACharacter(t *testing.T) {
	s := New(Options{})
	var pieces []string
	w := &pieceWriter{header: http.Header{}, wrote: func(b []byte) { pieces = append(pieces, string(b)) }}
	r, _ := http.NewRequest("POST", "/v1/chat/completions", strings.NewReader(chat("mock: split-utf8", `,"stream":true`)))
	r.RequestURI = "/v1/chat/completions"
	r.Header.Set("Authorization", "Bearer mock-key")
	r.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(w, r)
	cut := 0
	for _, p := range pieces {
		if p != "" && p[0] >= 0x80 && p[0] < 0xC0 {
			cut++
		}
	}
	if cut < 3 {
		t.Errorf("%d pieces begin inside a character", cut)
	}
	if _, err := ReadOpenAIStream([]byte(strings.Join(pieces, ""))); err != nil {
		t.Error(err)
	}
}

type pieceWriter struct {
	header http.Header
	wrote  func([]byte)
}

func (w *pieceWriter) Header() http.Header         { return w.header }
func (w *pieceWriter) WriteHeader(int)             {}
func (w *pieceWriter) Write(b []byte) (int, error) { w.wrote(b); return len(b), nil }

// leaveAfter reads some lines of a stream and goes away.
func leaveAfter(t *testing.T, url, path, body string, lines int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer mock-key")
	resp, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(resp.Body)
	for range lines {
		sc.Scan()
	}
	cancel()
	_ = resp.Body.Close()
}

// waitClosed waits until no row is open.
func waitClosed(t *testing.T, s *Server) Bill {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if b := s.Bill(); b.Open == 0 {
			return b
		}
		if time.Now().After(end) {
			t.Fatal("a row stays open")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestBillOfAClientThatLeaves(t *testing.T) {
	s, url := start(t, Options{})
	leaveAfter(t, url, "/v1/chat/completions", chat("mock: chunks=400 pace=2ms", `,"stream":true`), 5)
	b := waitClosed(t, s)
	if row := b.Rows[0]; row.Output != 400 || !row.ClientGone || row.Status != 200 {
		t.Errorf("generated to the end: %+v", row)
	}
	s.Reset()
	leaveAfter(t, url, "/v1/chat/completions", chat("mock: chunks=400 pace=2ms stop-on-cancel", `,"stream":true`), 5)
	b = waitClosed(t, s)
	if row := b.Rows[0]; row.Output < 1 || row.Output >= 400 || !row.ClientGone || row.Input == 0 {
		t.Errorf("stopped on cancel: %+v", row)
	}
}

func TestBill(t *testing.T) {
	s, url := start(t, Options{})
	for _, c := range []struct {
		name, path, body string
		want             Usage
		fault            string
	}{
		{"plain", "/v1/chat/completions", chat("mock: say=a b c", ""), Usage{Input: 11, Output: 3}, ""},
		{"stream", "/v1/chat/completions", chat("mock: say=a b c", `,"stream":true`), Usage{Input: 11, Output: 3}, ""},
		{"without usage", "/v1/chat/completions", chat("mock: no-usage chunks=5", ""), Usage{Input: 13, Output: 5}, ""},
		{"cached and reasoning", "/v1/chat/completions", chat("mock: cached=4 reasoning=7 chunks=2", ""), Usage{Input: 12, CacheRead: 4, Output: 2, Reasoning: 7}, ""},
		{"n", "/v1/chat/completions", chat("mock: chunks=2", `,"n":3`), Usage{Input: 11, Output: 6}, ""},
		{"cut", "/v1/chat/completions", chat("mock: chunks=20 cut=after:5", `,"stream":true`), Usage{Input: 14, Output: 5}, "cut"},
		{"error event", "/v1/chat/completions", chat("mock: chunks=20 error-event=x after=3", `,"stream":true`), Usage{Input: 17, Output: 3}, "error-event"},
		{"refused", "/v1/chat/completions", chat("mock: status=500", ""), Usage{}, ""},
		{"dropped", "/v1/chat/completions", chat("mock: drop", ""), Usage{}, "drop"},
		{"message", "/v1/messages", claude("mock: chunks=4", ""), Usage{Input: 8, Output: 4}, ""},
		{"message stream cut", "/v1/messages", claude("mock: chunks=40 cut=after:6", `,"stream":true`), Usage{Input: 11, Output: 5}, "cut"},
		{"completion", "/v1/completions", `{"model":"m","prompt":"mock: chunks=3"}`, Usage{Input: 4, Output: 3}, ""},
		{"embedding", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"hello"}`, Usage{Input: 2}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Reset()
			r := post(t, url, c.path, c.body)
			b := waitClosed(t, s)
			if len(b.Rows) != 1 || b.Rows[0].Usage != c.want || b.Rows[0].Fault != c.fault {
				t.Fatalf("%+v\nwant %+v %s\n%s", b.Rows, c.want, c.fault, r.body)
			}
			if b.Total.Usage != c.want || b.Models[b.Rows[0].Model].Usage != c.want {
				t.Errorf("sums differ from the row: %+v", b)
			}
		})
	}
}

func TestBillInNanoDollars(t *testing.T) {
	s, url := start(t, Options{KeepRows: 3})
	for range 5 {
		post(t, url, "/v1/chat/completions", chat("mock: cached=4 reasoning=7 chunks=2", ""))
	}
	post(t, url, "/v1/chat/completions", strings.Replace(chat("hi", ""), "gpt-4o-mini", "nobody-knows", 1))
	b := s.Bill()
	const one = 12*150 + 4*75 + 9*600
	if b.Models["gpt-4o-mini"].NanoDollars != 5*one || b.Total.NanoDollars != 5*one || b.Total.Unpriced != 1 || b.Total.Requests != 6 {
		t.Errorf("%+v", b.Total)
	}
	if len(b.Rows) != 3 || b.Dropped != 3 {
		t.Errorf("%d rows, %d dropped", len(b.Rows), b.Dropped)
	}
	var over Bill
	if err := json.Unmarshal(do(t, "GET", url+"/__mock/bill", "").body, &over); err != nil || over.Total != b.Total || len(over.Rows) != 3 {
		t.Errorf("over HTTP: %v %+v", err, over.Total)
	}
	if r := do(t, "DELETE", url+"/__mock/bill", ""); r.status != 204 || s.Bill().Total.Requests != 0 {
		t.Errorf("after DELETE: %+v", s.Bill())
	}
}

func TestARowNamesItsAnswer(t *testing.T) {
	s, url := start(t, Options{})
	ids := map[string]bool{}
	for range 3 {
		ids[at(decode(t, post(t, url, "/v1/chat/completions", chat("hi", "")).body), "id").(string)] = true
	}
	for _, row := range s.Bill().Rows {
		delete(ids, row.ID)
	}
	if len(ids) != 0 {
		t.Errorf("answers without a row: %v", ids)
	}
}

func TestRequestsAreShownAsReceived(t *testing.T) {
	s, url := start(t, Options{KeepRequests: 2})
	body := "{\"model\" : \"gpt-4o-mini\",\n\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9\"}]}"
	post(t, url, "/v1/chat/completions?a=%20b&c;d", body, "X-Thing", "Value")
	do(t, "PUT", url+"/echo/a%2Fb//c;d?q=%zz", "\xff\x00", "Content-Type", "application/octet-stream")
	var got []map[string]any
	if err := json.Unmarshal(do(t, "GET", url+"/__mock/requests?last=5", "").body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0]["body"] != body || got[0]["raw_query"] != "a=%20b&c;d" || at(got[0], "headers", "X-Thing", 0) != "Value" {
		t.Errorf("%v", got)
	}
	if got[1]["raw_path"] != "/echo/a%2Fb//c;d" || got[1]["raw_query"] != "q=%zz" || got[1]["body_base64"] != "/wA=" || got[1]["method"] != "PUT" {
		t.Errorf("%v", got[1])
	}
	post(t, url, "/v1/chat/completions", chat("hi", ""))
	if last := s.Requests(9); len(last) != 2 || last[1].Seq != 3 {
		t.Errorf("%d requests kept", len(last))
	}
	do(t, "DELETE", url+"/__mock/requests", "")
	if n := len(s.Requests(9)); n != 0 {
		t.Errorf("%d after DELETE", n)
	}
}

func TestRequestBodiesAreBoundedInBytes(t *testing.T) {
	s, url := start(t, Options{KeepBytes: 1000})
	for range 5 {
		do(t, "POST", url+"/echo/x", strings.Repeat("x", 400))
	}
	if n := len(s.Requests(9)); n != 2 {
		t.Errorf("%d bodies of 400 bytes kept under 1000", n)
	}
}

func TestEchoAndBinary(t *testing.T) {
	_, url := start(t, Options{})
	r := do(t, "PATCH", url+"/v1/echo/deep/./path?x=1", "raw \x01 body", "Authorization", "Bearer anything", "Content-Type", "")
	v := decode(t, r.body)
	if v["method"] != "PATCH" || v["raw_path"] != "/v1/echo/deep/./path" || v["raw_query"] != "x=1" || v["body"] != "raw \x01 body" || v["body_length"] != 10.0 || at(v, "headers", "Authorization", 0) != "Bearer anything" {
		t.Errorf("%s", r.body)
	}
	r = do(t, "GET", url+"/v1/binary/1000", "")
	if len(r.body) != 1000 || r.body[250] != 250 || r.body[251] != 0 || r.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%d bytes", len(r.body))
	}
	if r = do(t, "GET", url+"/v1/binary/many", ""); r.status != 400 {
		t.Errorf("%d", r.status)
	}
}

func TestCloseEndsASilentStream(t *testing.T) {
	s, url := start(t, Options{})
	done := make(chan reply)
	go func() {
		done <- post(t, url, "/v1/chat/completions", chat("mock: silence=after:1 for=60s", `,"stream":true`))
	}()
	for s.Bill().Open == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if r := <-done; r.err == nil {
		t.Error("the stream ended well")
	}
	if err := s.Close(); err != nil {
		t.Error("closing twice:", err)
	}
}
