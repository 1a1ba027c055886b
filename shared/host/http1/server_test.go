package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestClientGone: the request's context ends when the client disconnects while the handler
// waits, half or fully, and not while the client stays.
func TestClientGone(t *testing.T) {
	t.Parallel()
	entered, ended := make(chan struct{}), make(chan error, 1)
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/stays" {
			select {
			case <-r.Context().Done():
				ended <- errors.New("the context ended though the client is there")
			case <-time.After(4 * tick):
				ended <- nil
			}
			return
		}
		entered <- struct{}{}
		select {
		case <-r.Context().Done():
			ended <- nil
		case <-time.After(time.Minute):
			ended <- errors.New("the context never ended")
		}
	}), testOptions)
	for _, raw := range []string{get("/"), post("/", "hello"), post("/", strings.Repeat("x", 100_000))} {
		for _, how := range []string{"close", "half", "reset"} {
			c := dial(t, addr)
			// Once after a request with a client that stays.
			if how == "close" {
				_, _ = io.WriteString(c, get("/stays"))
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			_, _ = io.WriteString(c, raw)
			<-entered
			switch how {
			case "half":
				_ = c.CloseWrite()
			case "reset":
				_ = c.SetLinger(0)
				fallthrough
			default:
				_ = c.Close()
			}
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", how, err)
			}
			_ = c.Close()
		}
	}
}

// TestContextEndsWithTheHandler and with the client's body.
func TestContextEndsWithTheHandler(t *testing.T) {
	contexts := make(chan context.Context, 1)
	errs := make(chan error, 1)
	addr, _ := ours(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err != nil {
			<-r.Context().Done()
		} else if r.Context().Err() != nil {
			err = r.Context().Err()
		}
		errs <- err
		contexts <- r.Context()
	}), testOptions)
	for raw, want := range map[string]error{get("/"): nil, post("/", "a"): nil, post("/", "abc")[:len(post("/", "abc"))-2]: io.ErrUnexpectedEOF} {
		_ = talk(t, addr, raw)
		if err := <-errs; !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", raw, err, want)
		}
		ctx := <-contexts
		eventually(t, "the context ends", func() bool { return ctx.Err() != nil })
	}
}

// TestTimes: a head must come in HeadTime, the next request in IdleTime; what a
// handler takes has no bound.
func TestTimes(t *testing.T) {
	t.Parallel()
	const bound, longer = 8 * tick, 12 * tick
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(longer)
		}
		_, _ = io.Copy(w, r.Body)
	}), Options{HeadTime: bound, IdleTime: bound, MaxHead: 64 << 10})
	var wg sync.WaitGroup
	for name, raw := range map[string]string{
		"nothing": "", "half a head": "GET / HTTP/1.1\r\nHo", "idle": get("/"), "half of the next": get("/") + "GET / HT",
	} {
		wg.Go(func() {
			began := time.Now()
			c := dial(t, addr)
			defer c.Close()
			_, _ = io.WriteString(c, raw)
			b, err := io.ReadAll(c)
			if err != nil || strings.HasPrefix(raw, get("/")) != strings.HasPrefix(string(b), "HTTP/1.1 200 OK\r\n") {
				t.Errorf("%s: %q, %v", name, b, err)
			}
			if elapsed := time.Since(began); elapsed < bound {
				t.Errorf("%s: closed after %v", name, elapsed)
			}
		})
	}
	defer wg.Wait()
	// A client that is slow in everything but heads is served.
	c := dial(t, addr)
	defer c.Close()
	r := bufio.NewReader(c)
	for range 2 {
		_, _ = io.WriteString(c, "POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n")
		time.Sleep(longer)
		_, _ = io.WriteString(c, "ok")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// TestIdleConnectionsHoldNoFrames: only what works holds large memory.
func TestIdleConnectionsHoldNoFrames(t *testing.T) {
	addr, s := ours(t, new(recorder), testOptions)
	for range 20 {
		c := dial(t, addr)
		defer c.Close()
		_, _ = io.WriteString(c, post("/", "hello"))
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
	eventually(t, "all connections are idle", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			if c.state.Load()&what != idle || c.current.Load() != nil {
				return false
			}
		}
		return len(s.conns) == 20
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.in != nil {
			t.Error("an idle connection holds a frame")
		}
	}
}

// TestFlush: flushed data arrives before the handler continues.
func TestFlush(t *testing.T) {
	next := make(chan struct{})
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 50 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
		repeat(w, 30_000, 30_000)
	}), testOptions)
	c := dial(t, addr)
	defer c.Close()
	_, _ = io.WriteString(c, get("/"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	for i := range 50 {
		if line, err := r.ReadString('\n'); line != fmt.Sprintf("data: %d\n", i) || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = r.ReadString('\n')
		next <- struct{}{}
	}
	if b, err := io.ReadAll(r); len(b) != 30_000 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestPanics: the client sees that the response is incomplete, and the server reports panics
// other than aborts.
func TestPanics(t *testing.T) {
	var panicked atomic.Pointer[any]
	o := testOptions
	o.Panicked = func(p any) { panicked.Store(&p) }
	addr, s := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repeat(w, 50_000, 50_000)
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/exit":
			runtime.Goexit()
		}
		panic("a handler's")
	}), o)
	for _, path := range []string{"/abort", "/exit", "/panic"} {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(talk(t, addr, get(path)))), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != io.ErrUnexpectedEOF {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
		if p := panicked.Load(); (p != nil) != (path == "/panic") || p != nil && *p != "a handler's" {
			t.Errorf("%s: told of %v", path, p)
		}
	}
	eventually(t, "the connections are forgotten", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) == 0 })
}

// TestLateUse: who uses a request or a response when the handler has returned harms
// no other.
func TestLateUse(t *testing.T) {
	type held struct {
		w http.ResponseWriter
		r *http.Request
	}
	released := make(chan held, 2)
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		released <- held{w, r}
		_, _ = io.WriteString(w, "ok")
	}), testOptions)
	c := dial(t, addr)
	defer c.Close()
	r := bufio.NewReader(c)
	for range 2 {
		_, _ = io.WriteString(c, post("/", "hello"))
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %q %v", resp.StatusCode, b, err)
		}
		h := <-released
		<-h.r.Context().Done()
		eventually(t, "the body is closed", func() bool { _, err := h.r.Body.Read(make([]byte, 9)); return err == http.ErrBodyReadAfterClose })
	}
}

// TestUpgrade: a connection that net/http serves can be hijacked, with the bytes that arrived
// with the request.
func TestUpgrade(t *testing.T) {
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := w.(http.Hijacker)
		if !ok {
			_, _ = io.WriteString(w, "plain")
			return
		}
		c, rw, err := h.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(c, line)
	}), testOptions)
	got := string(talk(t, addr, get("/")+get("/", "Connection: Upgrade", "Upgrade: echo")+"hel", "lo\n"))
	if !strings.Contains(got, "plain") || !strings.HasSuffix(got, "\r\n\r\nhello\n") {
		t.Errorf("%q", got)
	}
}

// TestParallel: many clients at once, each getting its own answers over
// connections that are used again.
func TestParallel(t *testing.T) {
	addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Path", r.URL.Path)
		for len(b) > 0 {
			n := min(len(b), 1000)
			_, _ = w.Write(b[:n])
			b = b[n:]
			if r.Header.Get("X-Flush") != "" {
				w.(http.Flusher).Flush()
			}
		}
	}), testOptions)
	var wg sync.WaitGroup
	for n := range 200 {
		wg.Go(func() {
			c := dial(t, addr)
			defer c.Close()
			r := bufio.NewReader(c)
			for i := range 10 {
				body := strings.Repeat(fmt.Sprintf("%d-%d ", n, i), 1+(n*i)%900)
				flush := "X-Other: 1"
				if i%2 == 0 {
					flush = "X-Flush: 1"
				}
				if i == 7 {
					flush = "Expect: 100-continue" // net/http serves from here on
				}
				path := fmt.Sprintf("/%d/%d", n, i)
				_, _ = io.WriteString(c, post(path, body, flush))
				resp, err := http.ReadResponse(r, nil)
				for err == nil && resp.StatusCode == 100 {
					resp, err = http.ReadResponse(r, nil)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if b, err := io.ReadAll(resp.Body); string(b) != body || err != nil || resp.Header.Get("X-Path") != path {
					t.Errorf("%s: %d bytes, want %d, %v", path, len(b), len(body), err)
				}
			}
		})
	}
	wg.Wait()
}

// TestShutdown lets running requests end, closes the idle, and takes no new ones.
func TestShutdown(t *testing.T) {
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-leave
		}
		_, _ = io.WriteString(w, "done")
	})
	ln := listen(t)
	s := New(h, testOptions)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	addr := ln.Addr().String()

	idleConn := dial(t, addr)
	defer idleConn.Close()
	_, _ = io.WriteString(idleConn, get("/"))
	idleReader := bufio.NewReader(idleConn)
	if resp, err := http.ReadResponse(idleReader, nil); err != nil || resp.Close {
		t.Fatal(err)
	}
	running := dial(t, addr)
	defer running.Close()
	_, _ = io.WriteString(running, get("/wait")+get("/"))
	odd := dial(t, addr)
	defer odd.Close()
	_, _ = io.WriteString(odd, "GET /wait HTTP/1.0\r\n\r\n")
	<-entered
	<-entered

	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.Background()) }()
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
	if _, err := io.Copy(io.Discard, idleReader); err != nil {
		t.Errorf("the idle connection: %v", err)
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped while requests ran: %v", err)
	default:
	}
	if c, err := net.Dial("tcp4", addr); err == nil {
		t.Error("a new connection was taken")
		_ = c.Close()
	}
	close(leave)
	got, _ := io.ReadAll(running)
	if !strings.Contains(string(got), "Connection: close\r\n") || !strings.HasSuffix(string(got), "\r\n\r\ndone") || strings.Count(string(got), "HTTP/1.1") != 1 {
		t.Errorf("the running request: %q", got)
	}
	if got, _ := io.ReadAll(odd); !strings.HasSuffix(string(got), "\r\n\r\ndone") {
		t.Errorf("the odd request: %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// TestClose ends what Shutdown waits for.
func TestClose(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan struct{})
	addr, s := ours(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(ended)
	}), testOptions)
	c := dial(t, addr)
	defer c.Close()
	_, _ = io.WriteString(c, get("/"))
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-ended
}

// TestNoGoroutineARequest: a connection with a running request has one.
func TestNoGoroutineARequest(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	addr, _ := ours(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-leave
	}), testOptions)
	before := runtime.NumGoroutine()
	for range 50 {
		c := dial(t, addr)
		defer c.Close()
		_, _ = io.WriteString(c, post("/", "a"))
		<-entered
	}
	if n := runtime.NumGoroutine() - before; n > 52 {
		t.Errorf("%d goroutines for 50 requests", n)
	}
	close(leave)
}

// The map of a response's header is reused for the next response of the connection: without its
// contents.
func TestHeadersOfAnswersDoNotReachTheNext(t *testing.T) {
	for _, fields := range []int{3, 12, 2 * maxReusedFields} {
		addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n := len(w.Header()); n > 0 {
				t.Errorf("%d fields before the handler set one", n)
			}
			if r.URL.Path != "/first" {
				w.Header().Set("Own", "yes")
				return
			}
			for i := range fields {
				w.Header().Add("Of-The-First-"+strconv.Itoa(i), "a")
				w.Header().Add("Of-The-First-"+strconv.Itoa(i), "b")
			}
		}), testOptions)
		const next = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n"
		out := string(talk(t, addr, "GET /first HTTP/1.1\r\nHost: h\r\n\r\n", next, "GET /first HTTP/1.1\r\nHost: h\r\n\r\n"+strings.Replace(next, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)))
		all := strings.Split(out, "HTTP/1.1 200 OK")[1:]
		if len(all) != 4 {
			t.Fatalf("%d answers: %s", len(all), out)
		}
		for i, answer := range all {
			first := i%2 == 0
			if n := strings.Count(answer, "Of-The-First-"); first && n != 2*fields || !first && n != 0 || first == strings.Contains(answer, "Own: yes") {
				t.Errorf("answer %d of %d fields: %s", i, fields, answer)
			}
		}
	}
}

// A handler that says so reads the body while its response goes out, and the connection
// serves on where all of it was read.
func TestBodiesReadBesideTheirAnswers(t *testing.T) {
	const size = 100_000
	for _, standard := range []bool{false, true} {
		o := testOptions
		o.Standard = standard
		addr, _ := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, "begun;")
			w.(http.Flusher).Flush()
			if r.URL.Path == "/reads" {
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprintf(w, "%d%v;", n, err)
			}
		}), o)
		c := dial(t, addr)
		in := bufio.NewReader(c)
		expect := func(want string, then func()) {
			t.Helper()
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("standard: %t: %v", standard, err)
			}
			begun := make([]byte, len("begun;"))
			if _, err := io.ReadFull(res.Body, begun); err != nil {
				t.Fatal(err)
			}
			then()
			if rest, err := io.ReadAll(res.Body); err != nil || string(begun)+string(rest) != want {
				t.Fatalf("standard: %t: %s%s %v", standard, begun, rest, err)
			}
		}
		write := func(s string) {
			if _, err := io.WriteString(c, s); err != nil {
				t.Error(err)
			}
		}
		head := fmt.Sprintf(" HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size)
		body := strings.Repeat("x", size)
		for range 3 {
			write("POST /reads" + head)
			expect(fmt.Sprintf("begun;%d<nil>;", size), func() { write(body) })
		}
		write("POST /leaves" + head)
		expect("begun;", func() { write(body) })
		_ = c.Close()
	}
}
