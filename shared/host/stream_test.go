package host_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/host"
	"gateway/shared/host/originauth"
)

// clock is what the function under test takes for the time; /later moves it on.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
	thaws  int
	skip   int // readings until the clock jumps; 0: it does not
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skip > 0 {
		if c.skip--; c.skip == 0 {
			c.offset += time.Minute
		}
	}
	return time.Now().Add(c.offset)
}

// functions are the functions that this package's test binary can be.
func functions() map[string]any {
	c := &clock{}
	stream := &host.Stream{
		Handler: streamHandler(c), Verifier: originauth.New([]string{"old-secret", "new-secret"}, nil, nil),
		KeepAlive: 60 * time.Millisecond, Now: c.now,
		Thaw: func() { c.mu.Lock(); c.thaws++; c.mu.Unlock() },
	}
	buffered := host.NewBuffered(http.HandlerFunc(bufferedHandler), originauth.New([]string{"new-secret"}, nil, nil))
	return map[string]any{"stream": stream.Invoke, "buffered": buffered.Invoke, "sqs": host.SQS(sqsWork), "schedule": host.Tasks(scheduled(), nil)}
}

// streamHandler answers by the last segment of the path. Where it must wait for
// the test it waits for the file that the test names.
func streamHandler(c *clock) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/v1/") {
		case "chunks":
			w.Header()["X-Multi"] = []string{"a", "b"}
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusTeapot) // ignored
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				waitFor(r.Header.Get("X-File") + fmt.Sprint(i))
			}
		case "nothing":
		case "early-panic":
			w.Header().Set("X-Half", "done")
			panic("secret of the handler")
		case "late-panic":
			_, _ = io.WriteString(w, "half")
			panic("secret of the handler")
		case "stream-panic":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: half")
			panic("secret of the handler")
		case "abort":
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		case "quiet":
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			w.(http.Flusher).Flush()
			waitFor(r.Header.Get("X-File") + "0")
			_, _ = io.WriteString(w, "data: ha")
			waitFor(r.Header.Get("X-File") + "1")
			_, _ = io.WriteString(w, "lf\n")
			_, _ = io.WriteString(w, "\n")
			waitFor(r.Header.Get("X-File") + "2")
			_, _ = io.WriteString(w, "data: end\n\n")
		case "books":
			_, _ = io.WriteString(w, "whole")
			w.(host.BodyEnder).EndBody()
			if _, err := io.WriteString(w, "too late"); err == nil {
				panic("written after the end")
			}
			waitFor(r.Header.Get("X-File") + "0")
			_ = os.WriteFile(r.Header.Get("X-File")+"written", nil, 0o600)
		case "endless":
			_, _ = io.WriteString(w, "begun")
			<-r.Context().Done()
			_ = os.WriteFile(r.Header.Get("X-File")+"cancelled", nil, 0o600)
		case "stubborn":
			_, _ = io.WriteString(w, "whole")
			w.(host.BodyEnder).EndBody()
			waitFor(r.Header.Get("X-File") + "0")
		case "later":
			c.mu.Lock()
			c.offset += time.Minute
			c.mu.Unlock()
		case "freeze": // after the reading at the end of this request
			c.mu.Lock()
			c.skip = 2
			c.mu.Unlock()
		case "thaws":
			c.mu.Lock()
			fmt.Fprint(w, c.thaws)
			c.mu.Unlock()
		default:
			echo(w, r)
		}
	}
}

// waitFor waits for a file. The process ends with its test when it never comes.
func waitFor(file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// gate gives the header that names files, and a function that makes the n-th.
func gate(t *testing.T) (func(*events.APIGatewayProxyRequest), func(n string)) {
	base := t.TempDir() + "/"
	return withHeader("X-File", base), func(n string) {
		t.Helper()
		if err := os.WriteFile(base+n, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func exists(ev func(*events.APIGatewayProxyRequest), name string) bool {
	e := events.APIGatewayProxyRequest{MultiValueHeaders: map[string][]string{}}
	ev(&e)
	_, err := os.Stat(e.MultiValueHeaders["X-File"][0] + name)
	return err == nil
}

func TestEachWriteArrivesBeforeTheNext(t *testing.T) {
	e := start(t, "stream")
	files, open := gate(t)
	a := invoke(t, e, event("POST", "/chunks", files), time.Minute)
	if a.Status != http.StatusCreated || strings.Join(a.Header["X-Multi"], ",") != "a,b" {
		t.Errorf("status %d, header %v", a.Status, a.Header)
	}
	r := bufio.NewReader(a.Body)
	for i := range 3 {
		line := nextData(t, r)
		if line != fmt.Sprintf("data: %d\n", i) {
			t.Errorf("event %d is %q", i, line)
		}
		open(fmt.Sprint(i))
	}
	if rest, err := io.ReadAll(r); err != nil || strings.Contains(string(rest), "data") {
		t.Errorf("behind the last event: %q, %v", rest, err)
	}
	settled(t, a)
}

// nextData skips comments and empty lines.
func nextData(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(line) != "" && line[0] != ':' {
			return line
		}
	}
}

func TestHandlerThatWritesNothingAnswers200(t *testing.T) {
	a := invoke(t, start(t, "stream"), event("GET", "/nothing"), time.Minute)
	if body := readAll(t, a); a.Status != 200 || body != "" {
		t.Errorf("%d %q", a.Status, body)
	}
}

func TestPanicsAreContained(t *testing.T) {
	e := start(t, "stream")
	t.Run("before the header: a 500", func(t *testing.T) {
		a := invoke(t, e, event("GET", "/early-panic"), time.Minute)
		body := readAll(t, a)
		if a.Status != 500 || a.Header.Get("X-Half") != "" || strings.Contains(body, "secret") {
			t.Errorf("%d %v %q", a.Status, a.Header, body)
		}
		contains(t, body, `"status":"failure"`, `"error"`)
	})
	t.Run("in a body: it breaks", func(t *testing.T) {
		a := invoke(t, e, event("GET", "/late-panic"), time.Minute)
		if b, err := io.ReadAll(a.Body); !isFunctionError(err) || string(b) != "half" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("in a stream: an error event of its own", func(t *testing.T) {
		a := invoke(t, e, event("GET", "/stream-panic"), time.Minute)
		body := readAll(t, a)
		contains(t, body, "data: half\n\ndata: {", `"error"`)
		if strings.Contains(body, "secret") || strings.Contains(body, "[DONE]") {
			t.Errorf("%q", body)
		}
	})
	t.Run("an aborted answer is no whole one", func(t *testing.T) {
		a := invoke(t, e, event("GET", "/abort"), time.Minute)
		if b, err := io.ReadAll(a.Body); !isFunctionError(err) || string(b) != "half" {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("and the process goes on", func(t *testing.T) {
		_ = readAll(t, invoke(t, e, event("GET", "/echo"), time.Minute))
	})
}

func TestCommentsHoldAnIdleStreamOpenBetweenEventsOnly(t *testing.T) {
	e := start(t, "stream")
	files, open := gate(t)
	a := invoke(t, e, event("POST", "/quiet", files), time.Minute)
	r := bufio.NewReader(a.Body)
	comment := func() {
		t.Helper()
		for _, want := range []string{": keep-alive\n", "\n"} {
			if line, err := r.ReadString('\n'); err != nil || line != want {
				t.Fatalf("%q, %v; want %q", line, err, want)
			}
		}
	}
	comment() // before the first event
	comment() // and again
	open("0")
	// Half an event was sent; comments may still precede it, none within it.
	part := make([]byte, len("data: ha"))
	for {
		head, err := r.Peek(1)
		if err != nil {
			t.Fatal(err)
		}
		if head[0] != ':' {
			break
		}
		comment()
	}
	if _, err := io.ReadFull(r, part); err != nil || string(part) != "data: ha" {
		t.Fatalf("%q, %v", part, err)
	}
	time.AfterFunc(200*time.Millisecond, func() { open("1") }) // three quiet times
	if line, err := r.ReadString('\n'); err != nil || line != "lf\n" {
		t.Fatalf("a comment within an event: %q, %v", line, err)
	}
	if line, err := r.ReadString('\n'); err != nil || line != "\n" {
		t.Fatalf("%q, %v", line, err)
	}
	comment() // the end of the event arrived in two writes
	open("2")
	if line := nextData(t, r); line != "data: end\n" {
		t.Errorf("%q", line)
	}
}

func TestBooksAreWrittenAfterTheBodyAndBeforeTheNextEvent(t *testing.T) {
	e := start(t, "stream")
	files, open := gate(t)
	a := invoke(t, e, event("POST", "/books", files), time.Minute)
	if body := readAll(t, a); body != "whole" { // it ends before the handler
		t.Errorf("%q", body)
	}
	select {
	case <-a.Settled:
		t.Fatal("the next event was asked for while the handler had books to write")
	default:
	}
	open("0")
	settled(t, a)
	if !exists(files, "written") {
		t.Error("the books are not written")
	}
}

func TestHandlerIsCanceledBeforeTheDeadline(t *testing.T) {
	e := start(t, "stream")
	files, _ := gate(t)
	a := invoke(t, e, event("POST", "/endless", files), 4500*time.Millisecond)
	if body := readAll(t, a); body != "begun" {
		t.Errorf("%q", body)
	}
	settled(t, a)
	if !exists(files, "cancelled") {
		t.Error("the request's context did not end")
	}
}

func TestHandlerThatDoesNotEndIsLeftBehind(t *testing.T) {
	e := start(t, "stream")
	files, _ := gate(t)
	a := invoke(t, e, event("POST", "/stubborn", files), 2500*time.Millisecond)
	if body := readAll(t, a); body != "whole" {
		t.Errorf("%q", body)
	}
	settled(t, a) // the file that the handler waits for never comes
	_ = readAll(t, invoke(t, e, event("GET", "/echo"), time.Minute))
}

func TestThawAfterAFreezeOnly(t *testing.T) {
	e := start(t, "stream")
	get := func(path string) string { return readAll(t, invoke(t, e, event("GET", path), time.Minute)) }
	if n := get("/thaws"); n != "0" {
		t.Errorf("%s thaws at the first request", n)
	}
	if n := get("/thaws"); n != "0" {
		t.Errorf("%s thaws without a pause", n)
	}
	// The clock moves within the request: a long request is no freeze.
	get("/later")
	if n := get("/thaws"); n != "0" {
		t.Errorf("%s thaws after a long request", n)
	}
	get("/freeze")
	if n := get("/thaws"); n != "1" {
		t.Errorf("%s thaws after a freeze", n)
	}
}

func TestRequestOfAnEvent(t *testing.T) {
	e := start(t, "stream")
	t.Run("path, query, headers and body", func(t *testing.T) {
		ev := event("PUT", "/files/a%2Fb%20c", withHeader("Content-Type", "text/plain"), withHeader("x-two", "1", "2"),
			withHeader("X-GoLambdaProxy-ApiGw-Context", "{}"), func(ev *events.APIGatewayProxyRequest) {
				ev.MultiValueQueryStringParameters = map[string][]string{"b": {"2", "3"}, "a": {"x y&z"}}
				ev.IsBase64Encoded, ev.Body = true, base64.StdEncoding.EncodeToString([]byte{0, 1, 255})
			})
		s := decodeSeen(t, readAll(t, invoke(t, e, ev, time.Minute)))
		if s.Method != "PUT" || s.Path != "/v1/files/a/b c" || s.Escaped != "/v1/files/a%2Fb%20c" || s.Query != "a=x+y%26z&b=2&b=3" || s.URI != s.Escaped+"?"+s.Query {
			t.Errorf("%+v", s)
		}
		if s.Host != "api.example.com" || s.Header.Get("Host") != "" || s.Length != 3 || len(s.Header["X-Two"]) != 2 || s.Header.Get("X-Golambdaproxy-Apigw-Context") != "" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("without the stage in the context's path", func(t *testing.T) {
		ev := event("GET", "/models", func(ev *events.APIGatewayProxyRequest) { ev.RequestContext.Path = "/models" })
		if s := decodeSeen(t, readAll(t, invoke(t, e, ev, time.Minute))); s.Path != "/v1/models" {
			t.Errorf("%+v", s)
		}
	})
	for _, path := range []string{"/a%zz", "/a\nb"} {
		t.Run(fmt.Sprintf("path %q is refused", path), func(t *testing.T) {
			a := invoke(t, e, event("GET", path), time.Minute)
			if body := readAll(t, a); a.Status != 400 {
				t.Errorf("status %d: %s", a.Status, body)
			}
		})
	}
	t.Run("a path that came unescaped is kept", func(t *testing.T) {
		if s := decodeSeen(t, readAll(t, invoke(t, e, event("GET", "/a b/ü?c"), time.Minute))); s.Path != "/v1/a b/ü?c" || s.Query != "" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a body over the limit is refused", func(t *testing.T) {
		a := invoke(t, e, event("POST", "/echo", func(ev *events.APIGatewayProxyRequest) { ev.Body = strings.Repeat("x", host.MaxLambdaBody+1) }), time.Minute)
		if body := readAll(t, a); a.Status != 413 || !strings.Contains(body, "3500000") {
			t.Errorf("%d %s", a.Status, body)
		}
	})
}
