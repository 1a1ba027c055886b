package mockprovider

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// UnusualUsage is an answer that reports usage in an unusual way, and what the provider charges for
// it.
type UnusualUsage struct {
	Name string
	// Wire is the format: chat, messages, responses, generate, converse, images,
	// transcription, speech, rerank or embeddings.
	Wire  string
	Model string
	// Usage are the fields beside the response's text: mostly one "usage" and a tier.
	Usage string
	// Output are items of a response that come before its text.
	Output string
	// ResponseModel is the model that a message names, where it is not Model: the provider fell back.
	ResponseModel string
	// Stop is the reason for the end, where it is unusual, with the members beside it.
	Stop string
	// Events is a stream instead of the answer, as data of events; its text is up to the
	// caller.
	Events []string
	// Fields are the request fields that make a provider respond like this.
	Fields string
	// NanoDollars is what the request costs.
	NanoDollars int64
}

// RespondUnusually makes the next request be answered and billed as o says.
func (s *Server) RespondUnusually(o *UnusualUsage) { s.odd.Store(o) }

// oddly answers with the odd answer that was ordered; false when none was.
func (x *exchange) oddly() bool {
	o := x.s.odd.Swap(nil)
	if o == nil {
		return false
	}
	stream := len(o.Events) > 0
	row := x.s.bill.begin(x.path, o.Model, "odd", stream)
	h := x.w.Header()
	switch {
	case stream:
		h["Content-Type"] = []string{"text/event-stream"}
		for _, data := range o.Events {
			_, _ = x.w.Write(oddEvent(o.Wire, data))
		}
	case o.Wire == "speech":
		h["Content-Type"] = []string{"audio/mpeg"}
		_, _ = x.w.Write([]byte("sound"))
	default:
		h["Content-Type"] = []string{"application/json"}
		_, _ = x.w.Write([]byte(o.plain()))
	}
	row.closeAt(http.StatusOK, o.NanoDollars)
	return true
}

// oddEvent is one event, with the name that the wire format gives it.
func oddEvent(wire, data string) []byte {
	if wire == "messages" || wire == "responses" {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(data), &e)
		data = "event: " + e.Type + "\ndata: " + data
	} else {
		data = "data: " + data
	}
	return []byte(data + "\n\n")
}

// plain is the answer in one piece.
func (o *UnusualUsage) plain() string {
	stop := func(usual string) string {
		if o.Stop != "" {
			return o.Stop
		}
		return usual
	}
	usage := ""
	if o.Usage != "" {
		usage = "," + o.Usage
	}
	switch o.Wire {
	case "chat":
		return `{"id":"chatcmpl-odd","object":"chat.completion","created":1,"model":"` + o.Model + `","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]` + usage + `}`
	case "messages":
		return `{"id":"msg_odd","type":"message","role":"assistant","model":"` + cmp.Or(o.ResponseModel, o.Model) + `","content":[{"type":"text","text":"Hi"}],` + stop(`"stop_reason":"end_turn"`) + `,"stop_sequence":null` + usage + `}`
	case "responses":
		return oddResponse(o.Model, o.Output, usage)
	case "generate":
		return `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"` + o.Output + `}],"modelVersion":"` + o.Model + `","responseId":"odd"` + usage + `}`
	case "converse":
		return `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","metrics":{"latencyMs":1}` + usage + `}`
	case "images":
		return `{"created":1,"data":[{"b64_json":"aGk="}]` + usage + `}`
	case "transcription":
		return `{"text":"Hi"` + usage + `}`
	case "rerank":
		return `{"id":"odd","results":[{"index":0,"relevance_score":0.5}]` + usage + `}`
	}
	return `{"object":"list","model":"` + o.Model + `","data":[{"object":"embedding","index":0,"embedding":[0.5]}]` + usage + `}`
}

func oddResponse(model, output, usage string) string {
	if output != "" {
		output += ","
	}
	status := `"completed"`
	if strings.Contains(usage, `"incomplete_details"`) {
		status = `"incomplete"`
	}
	return `{"id":"resp_odd","object":"response","created_at":1,"status":` + status + `,"error":null,"model":"` + model + `","output":[` + output +
		`{"type":"message","id":"msg_odd","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}]` + usage + `}`
}
