package mockprovider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"
)

func spoken(a *answer) string { return quoted(strings.Join(a.text, "")) }

func ai21Complete(x *exchange) *apiError {
	v, e := strictBody(x, "prompt! maxTokens numResults temperature topP stopSequences presencePenalty frequencyPenalty countPenalty minTokens topKReturn logitBias epoch")
	if e != nil {
		return e
	}
	a, u, done, e := says(x, v.get("prompt").s, v.get("prompt").s, v.get("maxTokens"))
	if done {
		return e
	}
	tokens := func(n int64) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", int(n)), ",") + "]" }
	x.plain("mock", []byte(`{"id":"1","prompt":{"tokens":`+tokens(u.Input)+`},"completions":[{"data":{"text":`+spoken(&a)+`,"tokens":`+tokens(u.Output)+`},"finishReason":{"reason":"endoftext"}}]}`), u)
	return nil
}

func rekaChat(x *exchange) *apiError {
	v, e := strictBody(x, "model_name! conversation_history! request_output_len temperature runtime_top_p runtime_top_k frequency_penalty presence_penalty random_seed stop_words length_penalty retrieval_dataset use_search_engine stream")
	if e != nil {
		return e
	}
	x.model = v.get("model_name").s
	history := v.get("conversation_history")
	last := ""
	for i, m := range history.arr {
		want := [...]string{"human", "model"}[i%2]
		if m.get("type").s != want || m.get("text").kind != text {
			return wireBad("conversation_history[%d] must be a turn of the %s", i, want)
		}
		last = m.get("text").s
	}
	a, u, done, e := says(x, last, history.s, v.get("request_output_len"))
	if done {
		return e
	}
	x.plain("mock", fmt.Appendf(nil, `{"type":"model","text":%s,"finish_reason":"stop","metadata":{"input_tokens":%d,"generated_tokens":%d}}`, spoken(&a), u.Input, u.Output), u)
	return nil
}

func palmChat(x *exchange) *apiError {
	v, e := strictBody(x, "prompt! temperature candidateCount topP topK")
	if e != nil {
		return e
	}
	list := v.get("prompt").get("messages").arr
	if len(list) == 0 {
		return wireBad("prompt.messages must not be empty")
	}
	a, u, done, e := says(x, list[len(list)-1].get("content").s, v.get("prompt").s, value{})
	if done {
		return e
	}
	x.plain("mock", []byte(`{"candidates":[{"author":"1","content":`+spoken(&a)+`}]}`), u)
	return nil
}

const tritonFields = "text_input! max_tokens temperature top_p top_k frequency_penalty presence_penalty random_seed stop_words bad_words stream repetition_penalty min_length parameters"

func tritonGenerate(x *exchange) *apiError {
	v, e := strictBody(x, tritonFields)
	if e != nil {
		return e
	}
	a, u, done, e := says(x, v.get("text_input").s, v.get("text_input").s, v.get("max_tokens"))
	if done {
		return e
	}
	x.plain("mock", []byte(`{"model_name":"ensemble","model_version":"1","text_output":`+spoken(&a)+`}`), u)
	return nil
}

func tritonStream(x *exchange) *apiError {
	v, e := strictBody(x, tritonFields)
	if e != nil {
		return e
	}
	a, u, done, e := says(x, v.get("text_input").s, v.get("text_input").s, v.get("max_tokens"))
	if done {
		return e
	}
	s := x.startStream("mock", u)
	for _, p := range a.text {
		s.spend(1, 0)
		s.event("", []byte(`{"model_name":"ensemble","model_version":"1","text_output":`+quoted(p)+`}`))
	}
	s.finish()
	s.end()
	return nil
}

func workersRun(x *exchange) *apiError {
	v, e := strictBody(x, "prompt! stream raw lora max_tokens temperature top_p top_k frequency_penalty presence_penalty repetition_penalty seed")
	if e != nil {
		return e
	}
	a, u, done, e := says(x, v.get("prompt").s, v.get("prompt").s, v.get("max_tokens"))
	if done {
		return e
	}
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, u.Input, u.Output)
	if !v.get("stream").yes {
		x.plain("mock", []byte(`{"result":{"response":`+spoken(&a)+`,`+usage+`},"success":true,"errors":[],"messages":[]}`), u)
		return nil
	}
	s := x.startStream("mock", u)
	for _, p := range a.text {
		s.spend(1, 0)
		s.event("", []byte(`{"response":`+quoted(p)+`,"p":"abcdef"}`))
	}
	s.event("", []byte(`{"response":"",`+usage+`}`))
	s.finish()
	s.last("", []byte("[DONE]"))
	return nil
}

func bytezChat(x *exchange) *apiError {
	v, e := strictBody(x, "messages! params stream")
	if e != nil {
		return e
	}
	last := ""
	for i, m := range v.get("messages").arr {
		if m.get("role").kind != text || m.get("content").kind != text {
			return wireBad("messages[%d] must have role and content", i)
		}
		last = m.get("content").s
	}
	a, u, done, e := says(x, last, v.get("messages").s, v.get("params").get("max_new_tokens"))
	if done {
		return e
	}
	x.plain("mock", []byte(`{"error":null,"output":{"role":"assistant","content":`+spoken(&a)+`}}`), u)
	return nil
}

// Received is a request as it arrived. Path and Query are exactly what the request line
// had, neither cleaned nor decoded.
type Received struct {
	Seq     int64
	Method  string
	Path    string
	Query   string
	Host    string
	Headers http.Header
	Body    []byte
	Length  int64 // Content-Length; -1 if there was none
}

// MarshalJSON writes the body as text, or as base64 if it is not UTF-8.
func (r Received) MarshalJSON() ([]byte, error) {
	out := struct {
		Seq     int64       `json:"seq"`
		Method  string      `json:"method"`
		Path    string      `json:"raw_path"`
		Query   string      `json:"raw_query"`
		Host    string      `json:"host"`
		Headers http.Header `json:"headers"`
		Length  int64       `json:"content_length"`
		Body    *string     `json:"body,omitempty"`
		Base64  string      `json:"body_base64,omitempty"`
	}{r.Seq, r.Method, r.Path, r.Query, r.Host, r.Headers, r.Length, nil, ""}
	if utf8.Valid(r.Body) {
		s := string(r.Body)
		out.Body = &s
	} else {
		out.Base64 = base64.StdEncoding.EncodeToString(r.Body)
	}
	return json.Marshal(out)
}

// history stores the last requests, up to a number and a total of bytes.
type history struct {
	mu       sync.Mutex
	keep     int
	maxBytes int
	seq      int64
	bytes    int
	all      []Received
}

func (h *history) add(r Received) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	r.Seq = h.seq
	h.all = append(h.all, r)
	h.bytes += len(r.Body)
	drop := 0
	for len(h.all)-drop > 1 && (len(h.all)-drop > h.keep || h.bytes > h.maxBytes) {
		h.bytes -= len(h.all[drop].Body)
		h.all[drop] = Received{}
		drop++
	}
	h.all = h.all[drop:]
}

// last returns at most n requests, oldest first.
func (h *history) last(n int) []Received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Received{}, h.all[max(0, len(h.all)-n):]...)
}

func (h *history) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all, h.bytes = nil, 0
}
