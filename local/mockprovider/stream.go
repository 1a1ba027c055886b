package mockprovider

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"unicode/utf8"
)

// stream writes server-sent events, with the faults that a stream can have. With spend the
// caller reports the tokens generated for the next event; it calls finish before the event that
// marks the response as complete.
type stream struct {
	x       *exchange
	out     io.Writer
	gz      *gzip.Writer
	buf     []byte
	events  int // number of events written
	full    Usage
	output  int64 // generated so far
	hidden  int64
	gone    bool // the client has disconnected; generation may continue
	stopped bool // generation has ended
	binary  bool // messages of the AWS event-stream encoding
	invoke  bool // whose data is encoded
}

// startStream sends the head of a stream. full is what the complete response costs.
func (x *exchange) startStream(id string, full Usage) *stream {
	h := x.setHeaders("text/event-stream; charset=utf-8", id)
	h["Cache-Control"] = []string{"no-cache"}
	s := &stream{x: x, out: x.w, full: full, buf: make([]byte, 0, 1024)}
	if x.st.gzip {
		h["Content-Encoding"] = []string{"gzip"}
		s.gz = gzip.NewWriter(x.w)
		s.out = s.gz
	}
	x.w.WriteHeader(http.StatusOK)
	return s
}

// spend counts what has been generated.
func (s *stream) spend(output, reasoning int64) {
	s.output += output
	s.hidden += reasoning
}

// usageSoFar is what the response has cost so far.
func (s *stream) usageSoFar() Usage {
	u := s.full
	u.Output, u.Reasoning = s.output, s.hidden
	return u
}

// finish closes the row: the complete response has been generated.
func (s *stream) finish() {
	s.x.row.close(http.StatusOK, s.full, s.gone || s.x.gone(), "")
}

// fail closes the row with the output so far, and breaks the connection.
func (s *stream) fail(fault string) {
	s.x.row.close(http.StatusOK, s.usageSoFar(), s.x.gone(), fault)
	if s.gz != nil {
		_ = s.gz.Flush()
	}
	s.x.flush()
	panic(http.ErrAbortHandler)
}

// event sends one event; name may be "". It reports whether to generate more.
func (s *stream) event(name string, data []byte) bool {
	if s.stopped {
		return false
	}
	st := &s.x.st
	if !s.gone && s.x.gone() {
		s.gone = true
	}
	if s.gone {
		if st.stopOnCancel {
			s.stopped = true
			s.x.row.close(http.StatusOK, s.usageSoFar(), true, "cancelled")
			return false
		}
		s.events++
		return true
	}
	switch {
	case st.cutAfter == s.events:
		s.fail("cut")
	case st.silent == s.events:
		s.x.flush()
		s.x.sleep(st.silenceFor)
		s.fail("silence")
	case st.errorEvent != "" && max(0, st.errorAfter) == s.events:
		s.errorEvent()
		return false
	}
	if st.pace > 0 && s.events > 0 {
		s.x.sleep(st.pace)
	}
	s.buf = s.frame(s.buf, name, data)
	if st.cutMid == s.events {
		_, _ = s.out.Write(s.buf[:len(s.buf)/2])
		s.fail("cut")
	}
	s.events++
	s.send()
	return true
}

// frame writes one event in the framing that was ordered.
func (s *stream) frame(b []byte, name string, data []byte) []byte {
	if s.binary {
		return s.binaryFrame(b, name, data)
	}
	st := &s.x.st
	eol := "\n"
	if st.crlf {
		eol = "\r\n"
	}
	if st.ping && s.events%2 == 1 {
		if s.x.anthropic {
			b = append(append(append(b, "event: ping"+eol+"data: "...), `{"type":"ping"}`...), eol+eol...)
		} else {
			b = append(b, ": ping"+eol+eol...)
		}
	}
	if name != "" {
		b = append(append(append(b, "event: "...), name...), eol...)
	}
	if st.garbage == s.events {
		data = []byte(`{"choices":[{"delta" : not json`)
	}
	if st.hugeLine > len(data) && s.events == 1 {
		// JSON may have white space between two values.
		data = append(append(append([]byte{}, data[:len(data)-1]...), bytes.Repeat([]byte{' '}, st.hugeLine-len(data))...), '}')
	}
	b = append(append(append(b, "data: "...), data...), eol...)
	return append(b, eol...)
}

// send writes the buffer, in pieces of the ordered size.
func (s *stream) send() {
	b := s.buf
	if s.x.st.splitUTF8 {
		for i := range b {
			if b[i] >= utf8.RuneSelf && !utf8.RuneStart(b[i]) {
				_, _ = s.out.Write(b[:i])
				s.flush()
				b = b[i:]
				break
			}
		}
	}
	if s.gz == nil {
		s.x.write(b)
	} else {
		_, _ = s.gz.Write(b)
	}
	s.buf = s.buf[:0]
	s.flush()
}

func (s *stream) flush() {
	if s.gz != nil {
		_ = s.gz.Flush()
	}
	s.x.flush()
}

// errorEvent sends an error in the provider's format and ends the stream.
func (s *stream) errorEvent() {
	st := &s.x.st
	message := st.message
	if message == "" {
		message = "Overloaded"
	}
	s.x.row.close(http.StatusOK, s.usageSoFar(), s.x.gone(), "error-event")
	shape := ""
	if s.x.shape != nil {
		shape = s.x.shape.name
	}
	switch {
	case s.binary:
		s.buf = append(s.buf, messageFrame("exception", st.errorEvent, fill(`{"message":$}`, message))...)
	case s.x.anthropic:
		s.buf = append(s.buf, "event: error\ndata: "+string(anthropicErrorOf(st.errorEvent, message))+"\n\n"...)
	case shape == "gemini":
		s.buf = append(s.buf, "data: "+string(geminiErrorOf(geminiErrorStatus(st.errorEvent), st.errorEvent, message, ""))+"\n\n"...)
	case shape == "cohere":
		s.buf = append(s.buf, "event: message-end\ndata: "+string(cohereErrorOf(message))+"\n\n"...)
	default:
		s.buf = append(s.buf, "data: "+string(openAIErrorOf(message, st.errorEvent, "", st.code))+"\n\n"...)
	}
	s.send()
	s.end()
	s.stopped = true
}

// last sends the event that ends a stream. finish must have been called before.
func (s *stream) last(name string, data []byte) {
	st := &s.x.st
	if st.noDone || s.stopped {
		if !s.stopped {
			s.end()
		}
		return
	}
	s.event(name, data)
	s.end()
}

func (s *stream) end() {
	if s.gz != nil {
		_ = s.gz.Close()
	}
}
