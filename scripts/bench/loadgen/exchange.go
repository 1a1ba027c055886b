package loadgen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

type worker struct {
	spec  *Spec
	addr  string
	sh    *shard
	conn  net.Conn
	r     *bufio.Reader
	req   []byte
	nonce int
	key   int // place of the key in req; zero if all requests have the same
	body  []byte
}

func (w *worker) close() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

func (w *worker) do(k int64, from time.Time) {
	if w.nonce >= 0 {
		d := w.req[w.nonce+6 : w.nonce+22]
		for i, x := len(d)-1, k; i >= 0; i, x = i-1, x/10 {
			d[i] = byte('0' + x%10)
		}
	}
	if w.key > 0 {
		copy(w.req[w.key:], w.spec.Keys[k%int64(len(w.spec.Keys))])
	}
	reused := w.conn != nil
	first, err := w.exchange()
	if err != nil && reused && errors.Is(err, io.EOF) {
		// The server had closed the idle connection; that is not a failure, so send again.
		w.close()
		first, err = w.exchange()
	}
	end := time.Now()
	if err == nil {
		err = w.check(k)
	}
	w.sh.n++
	if err != nil {
		w.sh.errs++
		if w.sh.firstErr == nil {
			w.sh.firstErr = err
		}
		w.close()
		return
	}
	w.sh.bytes += int64(len(w.body))
	w.sh.lat = append(w.sh.lat, int64(end.Sub(from)))
	w.sh.ttfb = append(w.sh.ttfb, int64(first.Sub(from)))
}

// exchange sends the request and reads the complete response into w.body.
func (w *worker) exchange() (first time.Time, err error) {
	if w.conn == nil {
		w.conn, err = net.DialTimeout("tcp", w.addr, 5*time.Second)
		if err != nil {
			return first, err
		}
		w.r = bufio.NewReaderSize(w.conn, 64<<10)
	}
	if err = w.conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return first, err
	}
	if _, err = w.conn.Write(w.req); err != nil {
		return first, err
	}
	h, err := w.readHead()
	if err != nil {
		return first, err
	}
	w.body = w.body[:0]
	switch {
	case h.chunked:
		first, err = w.readChunked()
	case h.length >= 0:
		if _, err = w.r.Peek(min(1, h.length)); err == nil {
			first = time.Now()
			w.body = slices.Grow(w.body, h.length)[:h.length]
			_, err = io.ReadFull(w.r, w.body)
		}
	default:
		h.shut = true
		first = time.Now()
		var b []byte
		b, err = io.ReadAll(w.r)
		w.body = append(w.body, b...)
	}
	if err != nil {
		return first, noEOF(err)
	}
	if h.shut {
		w.close()
	}
	if h.status != "200" {
		return first, fmt.Errorf("status %s: %.200s", h.status, w.body)
	}
	return first, nil
}

// head is what the head of a response states about its body.
type head struct {
	status  string
	length  int // -1: unknown
	chunked bool
	shut    bool
}

func (w *worker) readHead() (head, error) {
	h := head{length: -1}
	line, err := w.r.ReadSlice('\n')
	if err != nil {
		return h, err // io.EOF here means that the server had closed an idle connection
	}
	if len(line) < 12 {
		return h, fmt.Errorf("bad status line %q", line)
	}
	h.status = string(line[9:12])
	for {
		line, err = w.r.ReadSlice('\n')
		if err != nil {
			return h, noEOF(err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return h, nil
		}
		name, val, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return h, fmt.Errorf("bad header %q", line)
		}
		val = bytes.TrimSpace(val)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if h.length, err = strconv.Atoi(string(val)); err != nil {
				return h, err
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			h.chunked = bytes.EqualFold(val, []byte("chunked"))
		case bytes.EqualFold(name, []byte("connection")):
			h.shut = bytes.EqualFold(val, []byte("close"))
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (w *worker) readChunked() (first time.Time, err error) {
	stream := w.spec.Kind == "stream"
	var lastRead time.Time
	for {
		// Count a gap only if the client had to wait: buffered data arrived with the previous
		// read.
		waited := w.r.Buffered() == 0
		line, err := w.r.ReadSlice('\n')
		if err != nil {
			return first, err
		}
		if i := bytes.IndexByte(line, ';'); i >= 0 {
			line = line[:i]
		}
		n64, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return first, err
		}
		n := int(n64)
		if n > 0 && (waited || first.IsZero()) {
			now := time.Now()
			if first.IsZero() {
				first = now
			} else if stream {
				w.sh.gap = append(w.sh.gap, int64(now.Sub(lastRead)))
			}
			lastRead = now
		}
		at := len(w.body)
		w.body = slices.Grow(w.body, n)[:at+n]
		if _, err := io.ReadFull(w.r, w.body[at:]); err != nil {
			return first, err
		}
		if _, err := w.r.ReadSlice('\n'); err != nil {
			return first, err
		}
		if n == 0 {
			return first, nil
		}
	}
}

// check checks every response cheaply, and decodes one in 64.
func (w *worker) check(k int64) error {
	full := k%64 == 0
	switch w.spec.Kind {
	case "chat":
		if !bytes.Contains(w.body, []byte(Marker)) || !bytes.Contains(w.body, []byte(`"choices"`)) || !bytes.Contains(w.body, []byte(`"total_tokens"`)) {
			return fmt.Errorf("not a chat completion: %.300s", w.body)
		}
		if full {
			return checkChat(w.body)
		}
	case "embeddings":
		if !bytes.Contains(w.body, []byte(`"embedding"`)) || !bytes.Contains(w.body, []byte(`"usage"`)) {
			return fmt.Errorf("not embeddings: %.300s", w.body)
		}
	case "stream":
		parts := bytes.Count(w.body, []byte(Marker))
		w.sh.minParts = min(w.sh.minParts, parts)
		if parts < w.spec.Chunks || !bytes.HasSuffix(bytes.TrimRight(w.body, "\r\n"), []byte("data: [DONE]")) {
			tail := w.body[max(0, len(w.body)-200):]
			return fmt.Errorf("stream fell short: %d of %d chunks, ends %q", parts, w.spec.Chunks, tail)
		}
		if !bytes.Contains(w.body, []byte(`"total_tokens"`)) {
			w.sh.noUsage++
		}
		if !finished(w.body) {
			w.sh.noFinish++
		}
		if full {
			return checkStream(w.body, w.spec.Chunks)
		}
	}
	return nil
}

type completion struct {
	Choices []struct {
		Message struct {
			Role, Content string
		}
		Delta struct {
			Content string
		}
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

func checkChat(b []byte) error {
	var c completion
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%w: %.300s", err, b)
	}
	switch {
	case len(c.Choices) == 0 || !strings.Contains(c.Choices[0].Message.Content, Marker):
		return fmt.Errorf("no content in choices: %.300s", b)
	case c.Choices[0].FinishReason == nil || *c.Choices[0].FinishReason == "":
		return fmt.Errorf("no finish_reason: %.300s", b)
	case c.Usage == nil || c.Usage.Prompt != 120 || c.Usage.Completion == 0:
		return fmt.Errorf("usage is not the upstream's: %.800s", b)
	}
	return nil
}

func checkStream(b []byte, want int) error {
	n := 0
	for ev := range bytes.SplitSeq(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n\n")) {
		for line := range bytes.SplitSeq(ev, []byte("\n")) {
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			data = bytes.TrimSpace(data)
			if !ok || string(data) == "[DONE]" {
				continue
			}
			var c completion
			if err := json.Unmarshal(data, &c); err != nil {
				return fmt.Errorf("%w: %.300s", err, data)
			}
			for _, ch := range c.Choices {
				n += strings.Count(ch.Delta.Content, Marker)
			}
		}
	}
	if n != want {
		return fmt.Errorf("%d content chunks of %d", n, want)
	}
	return nil
}

// finished reports whether the end of a stream contains a finish_reason that is a string.
func finished(b []byte) bool {
	const key = `"finish_reason":`
	for b = b[max(0, len(b)-2048):]; ; {
		i := bytes.Index(b, []byte(key))
		if i < 0 {
			return false
		}
		b = bytes.TrimLeft(b[i+len(key):], " ")
		if len(b) > 1 && b[0] == '"' && b[1] != '"' {
			return true
		}
	}
}
