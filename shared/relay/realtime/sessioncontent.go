package realtime

import (
	"bytes"
	"encoding/json"
	"reflect"

	wires "gateway/shared/dialect/live"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/content"
)

// words judges the content of a session: client text before it is forwarded, and client audio
// and model output once they are complete. Held messages are sent all at once.
type words struct {
	transcript, called, voice bytes.Buffer // since the last judgement; used only by the provider's reader
	pending                   []clientMessage
	size                      int
	lease                     egress.Lease
}

// clientMessage is a message for the client.
type clientMessage struct {
	binary bool
	body   []byte
}

// maxWords limits the text that is judged at a time, in bytes.
const maxWords = 1 << 20

// opens rejects a session with content that guardrails must judge and cannot read.
func (w *words) opens(s *LiveSession, asks *wires.Demands) error {
	now := s.Guardrails()
	switch {
	case now.BuffersResponses() && asks.Unheld:
		return fault.New(fault.InvalidRequest, "x-gateway-config", unheld)
	case now.JudgesResponses() && asks.NoOutputTranscript:
		return fault.New(fault.InvalidRequest, "setup.outputAudioTranscription", "Guardrails check the content of this session: request outputAudioTranscription, or text")
	}
	return nil
}

const unheld = "Guardrails check responses before they are sent, which a Live session does not support: set them to check afterwards, or open a realtime session"

// sounds rejects audio that cannot be judged.
func (w *words) sounds(s *LiveSession) error {
	if s.FirstMessage.Demands.NoInputTranscript && s.Guardrails().JudgesInput() {
		return fault.New(fault.InvalidRequest, "setup.inputAudioTranscription", "Guardrails check the content of this session: request inputAudioTranscription before sending audio")
	}
	return nil
}

// item is a message in the Responses format.
type item struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []text `json:"content"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type asked struct {
	Model string `json:"model,omitempty"`
	Input []item `json:"input"`
}

// judgeTranscript judges the transcript of the client's speech.
func (w *words) judgeTranscript(s *LiveSession, by Guardrails, transcript string) *fault.Fault {
	body, err := json.Marshal(asked{s.Model, []item{{"message", "user", []text{{"input_text", transcript}}}}})
	if err != nil {
		return fault.Internal(err)
	}
	if word := by.JudgeInput(s.context, body); word.Denied {
		return word.Denial()
	}
	return nil
}

func denied() *fault.Fault { return fault.New(fault.GuardrailDenied, "", chain.Denial(nil)) }

// written judges a client's message as a whole, and returns the message to forward.
func (w *words) written(s *LiveSession, p []byte) ([]byte, error) {
	by := s.Guardrails()
	if !by.JudgesInput() || content.Empty(kind, p) {
		return p, nil
	}
	word := by.JudgeInput(s.context, p)
	switch {
	case word.Denied:
		return nil, word.Denial()
	case word.Body != nil:
		return word.Body, nil
	}
	return p, nil
}

// judgeOutput processes the content of a provider's message. It returns the messages for the client,
// and the reason for ending the session, if it ends.
func (w *words) judgeOutput(s *LiveSession, h *wires.Content, binary bool, p []byte) (now []clientMessage, ends *fault.Fault) {
	by := s.Guardrails()
	if by.JudgesInput() {
		w.voice.WriteString(h.Voice)
	}
	if by.JudgesResponses() {
		w.transcript.WriteString(h.Text)
		w.called.WriteString(h.Called)
	}
	holds := by.BuffersResponses()
	switch {
	case holds && s.FirstMessage.Demands.Unheld:
		return nil, fault.New(fault.NotAllowed, "x-gateway-config", unheld)
	case holds:
		if f := w.hold(s, binary, p); f != nil {
			return nil, f
		}
	default:
		now = append(w.pending, clientMessage{binary, p}) // of guardrails that no longer hold responses
		w.pending = nil
	}
	if !h.Complete && w.transcript.Len()+w.called.Len()+w.voice.Len() < maxWords && (!holds || s.Wire.Busy()) {
		return now, nil
	}
	f := w.whole(s, by)
	if f == nil && holds {
		now, w.pending = w.pending, nil
	}
	w.free()
	return now, f
}

// hold holds a message back.
func (w *words) hold(s *LiveSession, binary bool, p []byte) *fault.Fault {
	if w.size == 0 {
		w.lease.Of(s.Memory, s.Tenant)
	}
	if w.size += len(p); w.size > MaxBuffered {
		return fault.Newf(fault.NotAllowed, "", "One response has more than the %d bytes that can be buffered", MaxBuffered)
	}
	if err := w.lease.Reserve(s.context, int64(len(p))); err != nil {
		return fault.From(err)
	}
	w.pending = append(w.pending, clientMessage{binary, bytes.Clone(p)})
	return nil
}

func (w *words) free() {
	if w.size > 0 {
		w.size = 0
		w.lease.Free()
	}
}

func (w *words) whole(s *LiveSession, by Guardrails) *fault.Fault {
	defer w.transcript.Reset()
	defer w.voice.Reset()
	defer w.called.Reset()
	if w.voice.Len() > 0 && by.JudgesInput() {
		if f := w.judgeTranscript(s, by, w.voice.String()); f != nil {
			return f
		}
	}
	if w.transcript.Len()+w.called.Len() == 0 {
		return nil
	}
	about, _ := json.Marshal(asked{Model: s.Model, Input: []item{}}) // texts only
	output := []any{item{"message", "assistant", []text{{"output_text", w.transcript.String()}}}}
	if w.called.Len() > 0 {
		output = append(output, map[string]string{"type": "function_call", "call_id": "", "name": "", "arguments": w.called.String()})
	}
	answer, err := json.Marshal(map[string]any{"output": output})
	if err != nil {
		return fault.Internal(err)
	}
	if by.BuffersResponses() {
		if word := by.JudgeBuffered(s.context, about, answer); word.Denied || word.Body != nil {
			return denied() // none of it was sent, and the change cannot be sent
		}
	}
	by.JudgeSent(s.context, about, answer)
	return nil
}

// changed reads the texts of a response as guardrails changed them; nil if the change cannot be
// sent, because audio and tool calls cannot be changed.
func (r *response) changed(body []byte) []string {
	var in shownResponse
	var m shownMessage
	if json.Unmarshal(body, &in) != nil || len(in.Output) != len(r.calls)+1 || json.Unmarshal(in.Output[0], &m) != nil || len(m.Content) != len(r.parts) {
		return nil
	}
	for i, call := range r.calls {
		if !same(call, in.Output[i+1]) {
			return nil
		}
	}
	out := make([]string, len(r.parts))
	for i, p := range r.parts {
		if out[i] = m.Content[i].Text; p.sound && out[i] != p.text.String() {
			return nil
		}
	}
	return out
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// rewritten returns the events of a response with other texts. The first delta of a text carries
// all of the new text, and each occurrence of the complete old text is replaced.
func (r *response) rewritten(now []string, done []byte) (events [][]byte, end []byte) {
	whole := map[string]string{}
	for i, p := range r.parts {
		if old := p.text.String(); old != now[i] {
			whole[old] = now[i]
		}
	}
	sent := make([]bool, len(r.parts))
	for _, raw := range r.held {
		var e struct {
			Type string `json:"type"`
			piece
		}
		if json.Unmarshal(raw, &e) != nil {
			continue // it cannot be judged
		}
		if _, text := kinds[e.Type]; !text {
			events = append(events, replaced(raw, whole))
			continue
		}
		for i, p := range r.parts {
			if p.item != e.ItemID || p.index != e.Index || p.kind != "" {
				continue
			}
			if p.text.String() == now[i] {
				events = append(events, raw)
			} else if !sent[i] {
				sent[i] = true
				events = append(events, change(raw, map[string]any{"delta": now[i]}))
			}
		}
	}
	return events, replaced(done, whole)
}

// replaced returns an event with texts replaced.
func replaced(raw []byte, whole map[string]string) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return []byte("{}")
	}
	out, err := json.Marshal(swap(v, whole))
	if err != nil {
		return []byte("{}")
	}
	return out
}

func swap(v any, whole map[string]string) any {
	switch v := v.(type) {
	case string:
		if now, ok := whole[v]; ok {
			return now
		}
	case []any:
		for i := range v {
			v[i] = swap(v[i], whole)
		}
	case map[string]any:
		for k := range v {
			v[k] = swap(v[k], whole)
		}
	}
	return v
}
