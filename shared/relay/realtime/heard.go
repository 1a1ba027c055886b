package realtime

import (
	"encoding/json"
	"strings"

	"gateway/shared/dialect/realtime"
)

// heard judges client audio by its transcript. The provider already has the audio: if it is
// denied, it is removed from the conversation, and any response to it is ended.
func (g *Guard) heard(e *realtime.Event, by Guardrails) verdict {
	t, err := realtime.ReadTranscript(e.Body)
	if err != nil {
		return verdict{} // it cannot be judged
	}
	part, err := json.Marshal(map[string]any{"type": "message", "role": "user", "content": []any{map[string]string{"type": "input_text", "text": t.Text}}})
	if err != nil {
		return verdict{}
	}
	body, err := json.Marshal(clientTurn{Model: g.of.Model, Input: []json.RawMessage{part}})
	if err != nil {
		return verdict{}
	}
	w := by.JudgeInput(g.ctx, body)
	now := transcriptOf(w.Body)
	switch {
	case w.Denied, w.Body != nil && now == nil:
		gone := retold(e.Body, "")
		g.items.forget(t.Item)
		v := verdict{told: [][]byte{g.refuse(&w)}, body: gone}
		for id := range g.runs {
			v.back = append(v.back, realtime.Cancel(id))
		}
		if g.of.Model != "" && t.Item != "" { // a session that only transcribes has no conversation
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

// retold returns a transcript event with another text, and without fields that could reveal the
// original, such as the probabilities of its tokens.
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

// Events about the transcript of the client's audio start with this. Only the complete
// transcript is judged. An event that reports a failure reveals nothing.
const (
	transcribing = "conversation.item.input_audio_transcription."
	unwritten    = transcribing + "failed"
)

// unheard holds back the transcript of client audio until it is judged: partial transcripts,
// which cannot be judged, and transcripts inside items. The complete transcript arrives once.
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

// transcriptOf reads a transcript as guardrails changed it.
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
