package mockprovider

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"time"
)

const page = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"

// settle adds the faults that were ordered for this request to those of its directives.
// conversation identifies the requests counted for "times".
func (x *exchange) settle(conversation uint32) *apiError {
	path := x.path
	if directives := x.s.faults.take(path, x.model); directives != "" {
		if err := x.st.read(directives); err != nil {
			return badRequest("", "", err.Error())
		}
	}
	if x.st.times > 0 && x.s.faults.spent(uint64(conversation)<<32|uint64(seedOf(x.model)), x.st.times) {
		x.st.faultFree()
	}
	return nil
}

// misbehave applies the faults that precede the first byte of a response. It reports whether it
// has responded.
func (x *exchange) misbehave() (done bool, e *apiError) {
	st := &x.st
	if st.delay > 0 {
		x.sleep(st.delay)
		if x.gone() && st.stopOnCancel {
			x.row.close(499, Usage{}, true, "cancelled")
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case st.drop:
		x.row.close(0, Usage{}, x.gone(), "drop")
		panic(http.ErrAbortHandler)
	case st.html:
		status := st.status
		if status == 0 {
			status = http.StatusBadGateway
		}
		x.row.close(status, Usage{}, x.gone(), "html")
		x.w.Header().Set("Content-Type", "text/html")
		x.w.WriteHeader(status)
		_, _ = x.w.Write([]byte(page))
		return true, nil
	case st.empty:
		status := st.status
		if status == 0 {
			status = http.StatusOK
		}
		x.row.close(status, Usage{}, x.gone(), "empty")
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(status)
		return true, nil
	case st.status >= 300:
		message := st.message
		if message == "" {
			message = faultMessage(st.status)
		}
		return true, &apiError{status: st.status, typ: st.errType, code: st.code, message: message, retryAfter: st.retryAfter}
	}
	return false, nil
}

func faultMessage(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "Rate limit reached. Please try again later."
	case status == 529:
		return "Overloaded"
	case status >= 500:
		return "The server had an error while processing your request. Sorry about that!"
	}
	return "The request was refused."
}

// sleep waits, but it stops when the client or the server leaves.
func (x *exchange) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.r.Context().Done():
	case <-x.s.stopped:
	}
}

// setHeaders writes the headers of every successful response.
func (x *exchange) setHeaders(contentType, requestID string) http.Header {
	h := x.w.Header()
	h["Content-Type"] = []string{contentType}
	if x.anthropic {
		h["Request-Id"] = []string{"req_" + requestID}
		h["Anthropic-Organization-Id"] = []string{"mock-organization"}
		return h
	}
	h["X-Request-Id"] = []string{"req_" + requestID}
	h["Openai-Version"] = []string{"2020-10-01"}
	h["Openai-Organization"] = []string{"mock-organization"}
	h["Openai-Processing-Ms"] = []string{"1"}
	return h
}

// plain closes the row and sends 200 with a complete body, with the faults that apply to one.
func (x *exchange) plain(id string, body []byte, u Usage) {
	st := &x.st
	h := x.setHeaders("application/json", id)
	fault := ""
	if st.huge > len(body) {
		body = append(bytes.Repeat([]byte{' '}, st.huge-len(body)), body...)
	}
	if st.garbage != never {
		body, fault = append(body[:min(len(body), max(1, st.garbage))], "\x00}{ not json"...), "garbage"
	}
	if st.gzip {
		h.Set("Content-Encoding", "gzip")
		var z bytes.Buffer
		zw := gzip.NewWriter(&z)
		_, _ = zw.Write(body)
		_ = zw.Close()
		body = z.Bytes()
	}
	length := len(body)
	if st.wrongLength {
		length, fault = length+64, "wrong-length"
	}
	h["Content-Length"] = []string{strconv.Itoa(length)}
	end := len(body)
	cut := max(st.cutAfter, st.cutMid)
	if cut != never {
		end, fault = min(end, cut), "cut"
	}
	if st.silent != never {
		end, fault = min(end, st.silent), "silence"
	}
	x.row.close(http.StatusOK, u, x.gone(), fault)
	x.w.WriteHeader(http.StatusOK)
	x.write(body[:end])
	switch {
	case cut != never:
		x.flush()
		panic(http.ErrAbortHandler)
	case st.silent != never:
		x.flush()
		x.sleep(st.silenceFor)
		panic(http.ErrAbortHandler)
	case st.wrongLength:
		x.flush()
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) write(b []byte) { _, _ = x.w.Write(b) }

func (x *exchange) flush() {
	if f, ok := x.w.(http.Flusher); ok {
		f.Flush()
	}
}
