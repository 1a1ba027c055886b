package realtime

import (
	"bytes"
	"encoding/json"

	wires "gateway/shared/dialect/live"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/chain"
)

// Guardrails are the guardrails of a session as last loaded.
type Judges = Guardrails

// words judges the content of a session: client text before it is forwarded, and client audio
// and model output once they are complete. Held messages are sent all at once.
type words struct {
	said, voice bytes.Buffer // since the last judgement; used only by the provider's reader
	held        []clientMessage
	size        int
	lease       egress.Lease
}

// clientMessage is a message for the client.
type clientMessage struct {
	binary bool
	body   []byte
}

// maxWords limits the text that is judged at a time, in bytes.
const maxWords = 1 << 20

// opens rejects a session with content that guardrails must judge and cannot read.
func (w *words) opens(s *LiveSession, asks *wires.Asks) error {
	now := s.Judges()
	switch {
	case now.Holds() && asks.Unheld:
		return fault.New(fault.InvalidRequest, "x-gateway-config", unheld)
	case now.Judges() && asks.Unsaid:
		return fault.New(fault.InvalidRequest, "setup.outputAudioTranscription", "Guardrails judge the content of this session: request outputAudioTranscription, or text")
	}
	return nil
}

const unheld = "Guardrails judge responses before they are sent, which a Live session does not support: let them judge responses afterwards, or open a realtime session"

// sounds rejects audio that cannot be judged.
func (w *words) sounds(s *LiveSession) error {
	if s.Opening.Asks.Unheard && s.Judges().Hears() {
		return fault.New(fault.InvalidRequest, "setup.inputAudioTranscription", "Guardrails judge the content of this session: request inputAudioTranscription before sending audio")
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

// judge has client texts judged. now are the replaced texts; nil if they are unchanged.
func (w *words) judge(s *LiveSession, by Judges, texts []string) (now []string, err error) {
	in := asked{s.Model, []item{{Type: "message", Role: "user"}}}
	for _, t := range texts {
		in.Input[0].Content = append(in.Input[0].Content, text{"input_text", t})
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fault.Internal(err)
	}
	word := by.Said(s.context, body)
	if word.Denied {
		return nil, word.Denial()
	}
	if word.Body == nil {
		return nil, nil
	}
	var out asked
	if json.Unmarshal(word.Body, &out) != nil || len(out.Input) != 1 || len(out.Input[0].Content) != len(texts) {
		return nil, word.Denial() // the change cannot be written back
	}
	for _, c := range out.Input[0].Content {
		now = append(now, c.Text)
	}
	return now, nil
}

func denied() *fault.Fault { return fault.New(fault.GuardrailDenied, "", chain.Denial(nil)) }

// written judges the texts of a client's message, and returns the message to forward.
func (w *words) written(s *LiveSession, p []byte) ([]byte, error) {
	by := s.Judges()
	if !by.Hears() {
		return p, nil
	}
	texts := wires.Texts(p, s.Wire.Wordy())
	if len(texts) == 0 {
		return p, nil
	}
	now, err := w.judge(s, by, texts)
	if err != nil || now == nil {
		return p, err
	}
	changed := make(map[string]string, len(now))
	for i, t := range texts {
		changed[t] = now[i]
	}
	if p = wires.Retold(p, s.Wire.Wordy(), changed); p == nil {
		return nil, denied()
	}
	return p, nil
}

// spoken processes the content of a provider's message. It returns the messages for the client,
// and the reason for ending the session, if it ends.
func (w *words) spoken(s *LiveSession, h *wires.Heard, binary bool, p []byte) (now []clientMessage, ends *fault.Fault) {
	by := s.Judges()
	if by.Hears() {
		w.voice.WriteString(h.Voice)
	}
	if by.Judges() {
		w.said.WriteString(h.Said)
	}
	holds := by.Holds()
	switch {
	case holds && s.Opening.Asks.Unheld:
		return nil, fault.New(fault.NotAllowed, "x-gateway-config", unheld)
	case holds:
		if f := w.hold(s, binary, p); f != nil {
			return nil, f
		}
	default:
		now = append(w.held, clientMessage{binary, p}) // of guardrails that no longer hold responses
		w.held = nil
	}
	if !h.Whole && w.said.Len()+w.voice.Len() < maxWords && (!holds || s.Wire.Busy()) {
		return now, nil
	}
	f := w.whole(s, by)
	if f == nil && holds {
		now, w.held = w.held, nil
	}
	w.free()
	return now, f
}

// hold holds a message back.
func (w *words) hold(s *LiveSession, binary bool, p []byte) *fault.Fault {
	if w.size == 0 {
		w.lease.Of(s.Memory, s.Tenant)
	}
	if w.size += len(p); w.size > MaxHeld {
		return fault.Newf(fault.NotAllowed, "", "One response has more than the %d bytes that can be held back", MaxHeld)
	}
	if err := w.lease.Take(s.context, int64(len(p))); err != nil {
		return fault.From(err)
	}
	w.held = append(w.held, clientMessage{binary, bytes.Clone(p)})
	return nil
}

func (w *words) free() {
	if w.size > 0 {
		w.size = 0
		w.lease.Free()
	}
}

func (w *words) whole(s *LiveSession, by Judges) *fault.Fault {
	defer w.said.Reset()
	defer w.voice.Reset()
	if w.voice.Len() > 0 && by.Hears() {
		if _, err := w.judge(s, by, []string{w.voice.String()}); err != nil {
			return fault.From(err)
		}
	}
	if w.said.Len() == 0 {
		return nil
	}
	about, _ := json.Marshal(asked{Model: s.Model, Input: []item{}}) // texts only
	answer, err := json.Marshal(map[string]any{"output": []item{{"message", "assistant", []text{{"output_text", w.said.String()}}}}})
	if err != nil {
		return fault.Internal(err)
	}
	if by.Holds() {
		if word := by.Held(s.context, about, answer); word.Denied || word.Body != nil {
			return denied() // none of it was sent, and the change cannot be sent
		}
	}
	by.Over(s.context, about, answer)
	return nil
}
