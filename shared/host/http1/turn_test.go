package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answered reads one response and gives its body.
func answered(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAnEndWithARequestIsDetected: the client closes its side together with a request,
// the first one or a later one. It sees the server's end when it has its response, and not
// only after the idle time.
func TestAnEndWithARequestIsDetected(t *testing.T) {
	addr, _ := ours(t, new(recorder), testOptions)
	for _, before := range []int{0, 1, 3} {
		c := dial(t, addr)
		r := bufio.NewReader(c)
		for range before {
			_, _ = io.WriteString(c, get("/"))
			if got := answered(t, r); got != "GET /" {
				t.Errorf("%q", got)
			}
		}
		// Both are available when the server reads: it is busy until then.
		_, _ = io.WriteString(c, get("/")+get("/"))
		_ = c.CloseWrite()
		for range 2 {
			if got := answered(t, r); got != "GET /" {
				t.Errorf("%q", got)
			}
		}
		if b, err := io.ReadAll(r); len(b) != 0 || err != nil {
			t.Errorf("behind the answers: %q, %v", b, err)
		}
		c.Close()
	}
}

// TestDataReceivedDuringARequestIsServed: the socket signals it while there is no reader, and
// never again.
func TestDataReceivedDuringARequestIsServed(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-leave
		}
		_, _ = w.Write(b)
	}), testOptions)
	c := dial(t, addr)
	defer c.Close()
	r := bufio.NewReader(c)
	for i := range 20 {
		first, second := "a"+strconv.Itoa(i), strings.Repeat("b"+strconv.Itoa(i), 1+i*997)
		_, _ = io.WriteString(c, post("/wait", first))
		<-entered
		half := post("/", second)
		_, _ = io.WriteString(c, half[:len(half)-i])
		leave <- struct{}{}
		_, _ = io.WriteString(c, half[len(half)-i:])
		if got := answered(t, r); got != first {
			t.Fatalf("%d: %q, want %q", i, got, first)
		}
		if got := answered(t, r); got != second {
			t.Fatalf("%d: %d bytes, want %d", i, len(got), len(second))
		}
	}
}

// TestRequestsBehindOneAnother: many in a row, of sizes that fit the frame and that
// do not, sent in one go.
func TestRequestsBehindOneAnother(t *testing.T) {
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	}), testOptions)
	var all bytes.Buffer
	var want []string
	for i := range 200 {
		want = append(want, strings.Repeat(strconv.Itoa(i), []int{0, 1, 100, 3000, 9000}[i%5]))
		all.WriteString(post("/", want[i]))
	}
	c := dial(t, addr)
	defer c.Close()
	sent := make(chan error, 1)
	go func() { _, err := c.Write(all.Bytes()); sent <- err }()
	r := bufio.NewReader(c)
	for i, w := range want {
		if got := answered(t, r); got != w {
			t.Fatalf("answer %d: %d bytes, want %d", i, len(got), len(w))
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestCloseDoesNotWaitForHandlers: Close returns, and the client is notified, while a handler
// that does not notice continues; its writes are discarded.
func TestCloseDoesNotWaitForHandlers(t *testing.T) {
	for _, body := range []string{"", strings.Repeat("x", 100_000)} { // served within the wait for it, and outside
		entered, leave, wrote := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		addr, s := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(entered)
			<-leave
			_, err := w.Write(make([]byte, 1<<20))
			wrote <- err
		}), testOptions)
		c := dial(t, addr)
		_, _ = io.WriteString(c, post("/", body))
		<-entered
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if b, err := io.ReadAll(c); len(b) != 0 || err != nil {
			t.Errorf("the client got %d bytes, %v", len(b), err)
		}
		close(leave)
		if err := <-wrote; err == nil {
			t.Error("a write went on after Close")
		}
		eventually(t, "the connection is forgotten", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) == 0 })
		c.Close()
	}
}

// TestHandlersThatGiveUpLeaveNothing: neither goroutine nor connection.
func TestHandlersThatGiveUpLeaveNothing(t *testing.T) {
	addr, s := ours(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/exit" {
			runtime.Goexit()
		}
		panic(http.ErrAbortHandler)
	}), testOptions)
	empty := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) == 0 }
	talk(t, addr, get("/")) // all of the server has begun
	eventually(t, "the connection is forgotten", empty)
	before := runtime.NumGoroutine()
	for i := range 40 {
		path := []string{"/exit", "/panic"}[i%2]
		if got := talk(t, addr, post(path, strings.Repeat("x", i%4*10_000))); len(got) != 0 {
			t.Errorf("%s: %q", path, got)
		}
	}
	eventually(t, "the connections are forgotten", empty)
	eventually(t, "their goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// TestAClientThatDisappearsIsRemoved, with a request half sent or none.
func TestAClientThatDisappearsIsRemoved(t *testing.T) {
	addr, s := ours(t, new(recorder), testOptions)
	for _, raw := range []string{"", get("/"), get("/") + "GET / HT", post("/", "abc")[:40]} {
		c := dial(t, addr)
		_, _ = io.WriteString(c, raw)
		if strings.HasPrefix(raw, get("/")) {
			answered(t, bufio.NewReader(c))
		}
		_ = c.SetLinger(0) // a reset
		_ = net.Conn(c).Close()
	}
	eventually(t, "the connections are forgotten", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) == 0 })
}

// TestHandlersRunOutsideTheSocketsReads: while one runs, the socket can be read, and
// a Close is done at once.
func TestHandlersRunOutsideTheSocketsReads(t *testing.T) {
	for _, body := range []string{"", "short", strings.Repeat("x", 100_000)} {
		entered, leave := make(chan struct{}), make(chan struct{})
		addr, s := ours(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			entered <- struct{}{}
			<-leave
		}), testOptions)
		c := dial(t, addr)
		_, _ = io.WriteString(c, post("/", body))
		<-entered
		s.mu.Lock()
		var served *conn
		for served = range s.conns {
		}
		s.mu.Unlock()
		free := make(chan error, 1)
		go func() {
			err := served.net.Sys().Read(func(uintptr) bool { return true })
			free <- errors.Join(err, served.net.Close())
		}()
		select {
		case err := <-free:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Errorf("a handler that was sent %d bytes runs within a read of its socket", len(body))
		}
		close(leave)
		c.Close()
	}
}
