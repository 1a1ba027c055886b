package relay_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/testkit/relaytest"
)

// unusualUsage is a response that reports usage in an unusual way, and what it costs.
type unusualUsage struct {
	name   string
	wire   string // chat, messages, responses, generate, images, speech, rerank or embeddings
	model  string
	usage  string   // fields beside the text: mostly one "usage" and a tier
	output string   // items of a response before its text
	named  string   // the model that a message names, if it is not model
	stop   string   // the reason for the end, if it is unusual, with the fields beside it
	events []string // of a stream instead of the response
	fields string   // of the request
	nano   int64
}

// namedEvent returns a server-sent event, named by its type if its data has one.
func namedEvent(data string) string {
	var e struct{ Type string }
	if strings.HasPrefix(data, `{"type":`) && json.Unmarshal([]byte(data), &e) == nil {
		return "event: " + e.Type + "\ndata: " + data + "\n\n"
	}
	return "data: " + data + "\n\n"
}

func (o *unusualUsage) reply() relaytest.Reply {
	out := relaytest.Reply{Status: http.StatusOK}
	switch {
	case len(o.events) > 0:
		for _, data := range o.events {
			out.Body += namedEvent(data)
		}
	case o.wire == "speech":
		out.Header, out.Body = http.Header{"Content-Type": {"audio/mpeg"}}, "sound"
	default:
		out.Body = o.plain()
	}
	return out
}

// plain is the answer in one piece.
func (o *unusualUsage) plain() string {
	stop := func(usual string) string {
		if o.stop != "" {
			return o.stop
		}
		return usual
	}
	usage := ""
	if o.usage != "" {
		usage = "," + o.usage
	}
	switch o.wire {
	case "chat":
		return `{"id":"chatcmpl-odd","object":"chat.completion","created":1,"model":"` + o.model + `","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]` + usage + `}`
	case "messages":
		return `{"id":"msg_odd","type":"message","role":"assistant","model":"` + cmp.Or(o.named, o.model) + `","content":[{"type":"text","text":"Hi"}],` + stop(`"stop_reason":"end_turn"`) + `,"stop_sequence":null` + usage + `}`
	case "responses":
		return oddResponse(o.model, o.output, usage)
	case "generate":
		return `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"` + o.output + `}],"modelVersion":"` + o.model + `","responseId":"odd"` + usage + `}`
	case "converse":
		return `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","metrics":{"latencyMs":1}` + usage + `}`
	case "images":
		return `{"created":1,"data":[{"b64_json":"aGk="}]` + usage + `}`
	case "transcription":
		return `{"text":"Hi"` + usage + `}`
	case "rerank":
		return `{"id":"odd","results":[{"index":0,"relevance_score":0.5}]` + usage + `}`
	}
	return `{"object":"list","model":"` + o.model + `","data":[{"object":"embedding","index":0,"embedding":[0.5]}]` + usage + `}`
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
