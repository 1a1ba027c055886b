package spoken

import (
	"encoding/json"
	"strings"

	"gateway/shared/dialect/realtime"
)

// heard judges what a client has said by voice. The provider has heard it: what is denied
// is taken out of the conversation, and no response to it goes on.
func (g *Guard) heard(e *realtime.Event, by Judges) verdict {
	t, err := realtime.ReadTranscript(e.Body)
	if err != nil {
		return verdict{} // nobody can judge it
	}
	part, err := json.Marshal(map[string]any{"type": "message", "role": "user", "content": []any{map[string]string{"type": "input_text", "text": t.Text}}})
	if err != nil {
		return verdict{}
	}
	body, err := json.Marshal(asked{Model: g.of.Model, Input: []json.RawMessage{part}})
	if err != nil {
		return verdict{}
	}
	w := by.Said(g.ctx, body)
	now := transcriptOf(w.Body)
	switch {
	case w.Denied, w.Body != nil && now == nil:
		gone := retold(e.Body, "")
		g.items.forget(t.Item)
		v := verdict{told: [][]byte{g.refuse(&w)}, body: gone}
		for id := range g.runs {
			v.back = append(v.back, realtime.Cancel(id))
		}
		if g.of.Model != "" && t.Item != "" { // a session that only writes down has no conversation
			v.back = append(v.back, realtime.Delete(t.Item))
		}
		return v
	case now != nil && *now != t.Text:
		changed := retold(e.Body, *now)
		return verdict{told: [][]byte{changed}, body: changed}
	}
	g.items.approve(t.Item, t.Text)
	return verdict{stays: true}
}

// retold is a transcript's event with another text, and without members that could tell
// the old one, as the probabilities of its tokens do.
func retold(event []byte, text string) []byte {
	var in map[string]json.RawMessage
	if json.Unmarshal(event, &in) != nil {
		return []byte("{}")
	}
	out := map[string]any{"transcript": text}
	for _, name := range [...]string{"type", "event_id", "item_id", "content_index", "usage"} {
		if raw := in[name]; raw != nil {
			out[name] = raw
		}
	}
	return change([]byte("{}"), out)
}

// Events about the transcript of the client's voice begin like this. Only the whole
// transcript is judged. An event that says there is none tells nothing.
const (
	transcribing = "conversation.item.input_audio_transcription."
	unwritten    = transcribing + "failed"
)

// unheard holds back what a client has said by voice until it is judged: pieces of a
// transcript, which nobody can judge, and transcripts inside items. A transcript comes once
// as a whole.
func (g *Guard) unheard(e *realtime.Event) verdict {
	switch {
	case strings.HasPrefix(e.Type, transcribing) && e.Type != unwritten:
		return verdict{}
	case !strings.HasPrefix(e.Type, "conversation.item.") || e.Item() == nil:
		return g.answer(e)
	}
	now, ok := g.items.unwritten(e)
	switch {
	case !ok:
		return verdict{}
	case now == nil:
		return g.answer(e)
	}
	with := *e
	with.Body = now
	v := g.answer(&with)
	if v.stays {
		v = verdict{told: [][]byte{now}, body: now}
	}
	return v
}

// transcriptOf reads what guardrails made of a transcript.
func transcriptOf(body []byte) *string {
	var in struct {
		Input []struct {
			Content []struct{ Text string } `json:"content"`
		} `json:"input"`
	}
	if body == nil || json.Unmarshal(body, &in) != nil || len(in.Input) != 1 || len(in.Input[0].Content) != 1 {
		return nil
	}
	return &in.Input[0].Content[0].Text
}
