package host

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBytesOfAHostStayOutOfTheLog lets a host send on an idle connection what a
// provider could send by mistake: net/http logs it, and the log has none of it.
func TestBytesOfAHostStayOutOfTheLog(t *testing.T) {
	var out lines
	before := log.Writer()
	log.SetOutput(hostBytesFilter{to: &out, lastLogged: new(atomic.Int64)})
	t.Cleanup(func() { log.SetOutput(before) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.ReadAtLeast(c, make([]byte, 4096), 10)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		for range 200 { // until the client has put the connection aside
			if _, err := io.WriteString(c, "secret-of-the-provider \"; err=no"); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), "Unsolicited"); {
		if time.Now().After(deadline) {
			t.Fatal("net/http has said nothing")
		}
		time.Sleep(time.Millisecond)
	}
	if got := out.String(); strings.Contains(got, "secret-of") {
		t.Errorf("logged: %s", got)
	}
}

func TestOtherLinesAreLoggedAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"plain\n", "", ` starting with "x"; err=nil` + "\n", "Unsolicited response received on idle HTTP channel\n"} {
		var out bytes.Buffer
		if n, err := fmt.Fprint(hostBytesFilter{to: &out, lastLogged: new(atomic.Int64)}, line); err != nil || n != len(line) || out.String() != line {
			t.Errorf("%q became %q: %d, %v", line, out.String(), n, err)
		}
	}
}

// A host may send 50,000 frames a second that each make a line.
func TestFramesOfAHostDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"Transport: unhandled response frame type *http2.UnknownFrame", "2026/11/23 04:42:09 Transport: unhandled response frame type *http2.UnknownFrame",
		"http2: Transport received unsolicited DATA frame; closing connection", "protocol error: received DATA after END_STREAM",
		"protocol error: received *http2.PingFrame before a SETTINGS frame",
	} {
		var out bytes.Buffer
		w, began := hostBytesFilter{to: &out, lastLogged: new(atomic.Int64)}, time.Now()
		for range 20_000 {
			if n, err := fmt.Fprintln(w, line); err != nil || n != len(line)+1 {
				t.Fatal(n, err)
			}
		}
		if n, most := strings.Count(out.String(), "\n"), int(time.Since(began)/time.Second)+2; n == 0 || n > most {
			t.Errorf("%s: %d lines in the log", line, n)
		}
		fmt.Fprintln(w, "another line")
		fmt.Fprintln(w, "another line")
		if strings.Count(out.String(), "another line") != 2 {
			t.Error("other lines are left out too")
		}
	}
}

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	all []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, p...)
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.all)
}
