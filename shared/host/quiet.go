package host

import (
	"bytes"
	"io"
	"log"
	"sync/atomic"
	"time"
)

// QuietLog removes bytes received from other hosts from the process's log: net/http logs
// what a host sends on an idle connection, by the log package and in full.
func QuietLog() { log.SetOutput(hostBytesFilter{to: log.Writer(), said: new(atomic.Int64)}) }

// hostBytesFilter removes the quoted bytes of such lines. Lines that a host can cause
// with unexpected HTTP/2 frames, at ten bytes each, are limited to one per second.
type hostBytesFilter struct {
	to   io.Writer
	said *atomic.Int64 // Unix seconds of the last such line
}

var ofFrames = [][]byte{
	[]byte("Transport: unhandled response frame type"), []byte("Transport received unsolicited DATA frame"), []byte("protocol error: received "),
}

// repeated reports whether a line exceeds that limit.
func (w hostBytesFilter) repeated(line []byte) bool {
	for _, text := range ofFrames {
		if bytes.Contains(line, text) {
			now := time.Now().Unix()
			return w.said.Swap(now) == now
		}
	}
	return false
}

var unsolicited, quoted, behind = []byte("Unsolicited response received on idle HTTP channel"), []byte(` starting with "`), []byte(`"; err=`)

// Write implements io.Writer; p is one line of the log package.
func (w hostBytesFilter) Write(p []byte) (int, error) {
	if w.repeated(p) {
		return len(p), nil
	}
	line := p
	if at := bytes.Index(line, unsolicited); at >= 0 {
		if from := bytes.Index(line[at:], quoted); from >= 0 {
			cut := append([]byte(nil), line[:at+from]...)
			if to := bytes.LastIndex(line, behind); to >= 0 {
				cut = append(cut, line[to+1:]...)
			}
			line = append(bytes.TrimRight(cut, "\n"), '\n')
		}
	}
	if _, err := w.to.Write(line); err != nil {
		return 0, err
	}
	return len(p), nil
}
