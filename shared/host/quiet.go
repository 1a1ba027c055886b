package host

import (
	"bytes"
	"io"
	"log"
)

// QuietLog keeps the bytes of other hosts out of the process's log: net/http logs
// what a host sends on an idle connection, by the log package and in full.
func QuietLog() { log.SetOutput(withoutHostBytes{log.Writer()}) }

// withoutHostBytes cuts what such a line quotes.
type withoutHostBytes struct{ to io.Writer }

var unsolicited, quoted, behind = []byte("Unsolicited response received on idle HTTP channel"), []byte(` starting with "`), []byte(`"; err=`)

// Write implements io.Writer; p is one line of the log package.
func (w withoutHostBytes) Write(p []byte) (int, error) {
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
