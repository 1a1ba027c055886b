package mockprovider

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// realtimePrices hold nano-dollars for a token of text and of sound, each in and out, and
// for a token of text from the cache.
var realtimePrices = map[string]struct{ in, out, audioIn, audioOut, cached int64 }{
	"gpt-realtime":      {4000, 16000, 32000, 64000, 400},
	"gpt-realtime-mini": {600, 2400, 10000, 20000, 60},
}

// whisperSecond is the price of a second of transcription by whisper-1, in nano-dollars.
const whisperSecond = 100_000

// realtime serves GET /realtime: sessions over WebSockets. Words in the client's texts steer
// it: "mock: chunks=20"; "pause" (until cancelled); "twice" (the end is reported twice);
// "no-usage"; "close=4001"; "drop"; "automatic" (in the instructions: each committed buffer
// gets a response); "big=1000" (bytes of each piece); "say=my_words" (the text of the response,
// in pieces, with all events of an item; as audio if the session responds with audio).
func realtime(x *exchange) *apiError {
	q := x.r.URL.Query()
	model, intent := q.Get("model"), q.Get("intent")
	switch {
	case model == "" && intent == "" || model != "" && intent != "":
		return &apiError{status: http.StatusBadRequest, code: "missing_model", message: "You must provide exactly one of model, call_id and intent."}
	case intent != "" && intent != "transcription":
		return &apiError{status: http.StatusBadRequest, code: "invalid_intent", message: "Invalid intent."}
	case model != "" && realtimePrices[model].in == 0:
		return &apiError{status: http.StatusNotFound, code: "model_not_found", message: "The model '" + model + "' does not exist or you do not have access to it."}
	case !websocket.IsWebSocketUpgrade(x.r):
		return &apiError{status: http.StatusBadRequest, message: "This endpoint takes WebSockets."}
	}
	up := websocket.Upgrader{Subprotocols: []string{"realtime"}, CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(x.w, x.r, nil)
	if err != nil {
		return nil // Upgrade has answered
	}
	s := &voice{talk: talk{x: x, ws: ws}, model: model, beta: x.r.Header.Get("OpenAI-Beta") == "realtime=v1"}
	s.send("session.created", jsonObject{"session": s.session()})
	s.serve(s.answer, func() {
		s.stop("")
		s.wg.Wait()
	})
	return nil
}

// voice is one session.
type voice struct {
	talk
	model string
	beta  bool

	mu            sync.Mutex
	texts         []string // texts of the conversation
	sound         int64    // bytes of sound in the buffer
	audioBytes    int64    // bytes of sound in the conversation
	instructions  string
	transcription string
	modalities    string
	tools         []json.RawMessage
	active        string // the response under way
	cancel        chan struct{}
	wg            sync.WaitGroup
}

// jsonObject is an event, or an object in one.
type jsonObject = map[string]any

func (v *voice) session() jsonObject {
	kind := "realtime"
	if v.model == "" {
		kind = "transcription"
	}
	out := jsonObject{"object": "realtime.session", "type": kind, "id": "sess_mock", "model": v.model, "instructions": v.instructions, "max_output_tokens": "inf"}
	if v.beta {
		out["input_audio_transcription"] = nil
	}
	if v.tools != nil {
		out["tools"] = v.tools
	}
	if v.transcription != "" {
		out["audio"] = jsonObject{"input": jsonObject{"transcription": jsonObject{"model": v.transcription}}}
	}
	return out
}

// answer handles an event, and reports its fault.
func (v *voice) answer(body []byte) bool {
	if message := v.take(body); message != "" {
		var id struct {
			EventID string `json:"event_id"`
		}
		_ = json.Unmarshal(body, &id) // if it is not JSON, the error has no id
		v.send("error", jsonObject{"error": jsonObject{"type": "invalid_request_error", "code": "invalid_value", "message": message, "param": nil, "event_id": id.EventID}})
	}
	return true
}

// stop cancels the response under way.
func (v *voice) stop(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.active == "" || id != "" && id != v.active {
		return false
	}
	select {
	case <-v.cancel:
	default:
		close(v.cancel)
	}
	return true
}

// take handles an event; it returns the fault of an invalid one.
func (v *voice) take(body []byte) string {
	var e struct {
		Type       string `json:"type"`
		Audio      string `json:"audio"`
		ResponseID string `json:"response_id"`
		ItemID     string `json:"item_id"`
		Session    struct {
			Instructions *string `json:"instructions"`
			Old          *struct {
				Model string `json:"model"`
			} `json:"input_audio_transcription"`
			Audio struct {
				Input struct {
					Transcription *struct {
						Model string `json:"model"`
					} `json:"transcription"`
				} `json:"input"`
			} `json:"audio"`
			Output []string          `json:"output_modalities"`
			Tools  []json.RawMessage `json:"tools"`
		} `json:"session"`
		Item struct {
			ID, Type, Role string
			Content        []struct{ Type, Text, Audio string }
		} `json:"item"`
		Response struct {
			Instructions string          `json:"instructions"`
			Metadata     json.RawMessage `json:"metadata"`
		} `json:"response"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return "Invalid JSON: " + err.Error()
	}
	switch e.Type {
	case "session.update":
		v.mu.Lock()
		if e.Session.Instructions != nil {
			v.instructions = *e.Session.Instructions
		}
		if t := e.Session.Audio.Input.Transcription; t != nil {
			v.transcription = t.Model
		} else if t := e.Session.Old; t != nil {
			v.transcription = t.Model
		}
		if e.Session.Tools != nil {
			v.tools = e.Session.Tools
		}
		v.modalities = strings.Join(e.Session.Output, ",")
		v.mu.Unlock()
		v.send("session.updated", jsonObject{"session": v.session()})
	case "conversation.item.create":
		if e.Item.Type != "message" || e.Item.Role == "" || len(e.Item.Content) == 0 {
			return "Invalid item: a message with role and content is expected."
		}
		v.mu.Lock()
		v.texts = append(v.texts, e.Item.Content[0].Text)
		v.mu.Unlock()
		added := "conversation.item.added"
		if v.beta {
			added = "conversation.item.created"
		}
		content := []jsonObject{}
		for _, c := range e.Item.Content {
			if c.Audio != "" {
				content = append(content, jsonObject{"type": c.Type, "transcript": nil})
				continue
			}
			content = append(content, jsonObject{"type": c.Type, "text": c.Text})
		}
		v.send(added, jsonObject{"item": jsonObject{
			"id": cmp.Or(e.Item.ID, "item_mock"+strconv.Itoa(v.n)), "object": "realtime.item", "type": "message", "status": "completed", "role": e.Item.Role, "content": content,
		}})
	case "input_audio_buffer.append":
		raw, err := base64.StdEncoding.DecodeString(e.Audio)
		if err != nil {
			return "Invalid 'audio': not Base64."
		}
		v.mu.Lock()
		v.sound += int64(len(raw))
		v.mu.Unlock()
	case "input_audio_buffer.commit":
		return v.commit()
	case "response.create":
		return v.respond(e.Response.Instructions, e.Response.Metadata)
	case "conversation.item.delete":
		v.send("conversation.item.deleted", jsonObject{"item_id": e.ItemID})
	case "response.cancel":
		if !v.stop(e.ResponseID) {
			return "Cancellation failed: no active response found"
		}
	default:
		return "Invalid value: '" + e.Type + "'. Supported values are: 'session.update', 'input_audio_buffer.append', 'conversation.item.create', 'response.create', ..."
	}
	return ""
}

// commit makes the sound in the buffer an item, and transcribes it.
func (v *voice) commit() string {
	v.mu.Lock()
	if v.sound == 0 {
		v.mu.Unlock()
		return "Error committing input audio buffer: buffer too small."
	}
	seconds := (v.sound + 47_999) / 48_000
	v.audioBytes += v.sound
	v.sound = 0
	transcription, automatic := v.transcription, strings.Contains(v.instructions, "automatic")
	v.mu.Unlock()
	item := "item_heard" + strconv.Itoa(v.n)
	v.send("input_audio_buffer.committed", jsonObject{"item_id": item})
	if transcription != "" {
		row := v.x.s.bill.begin("/v1/realtime", transcription, item, true)
		row.closeAt(http.StatusOK, seconds*whisperSecond)
		done := jsonObject{"item_id": item, "content_index": 0, "transcript": "words that were heard", "usage": jsonObject{"type": "duration", "seconds": seconds}, "logprobs": []any{jsonObject{"token": "words that were heard", "logprob": -0.5}}}
		spoken := func(status string) jsonObject {
			return jsonObject{"id": item, "type": "message", "role": "user", "status": status, "content": []any{jsonObject{"type": "input_audio", "transcript": "words that were heard"}}}
		}
		v.send("conversation.item.added", jsonObject{"item": spoken("in_progress")})
		for _, piece := range []string{"words that ", "were heard"} {
			v.send("conversation.item.input_audio_transcription.delta", jsonObject{"item_id": item, "content_index": 0, "delta": piece})
		}
		v.send("conversation.item.input_audio_transcription.segment", jsonObject{"item_id": item, "content_index": 0, "text": "words that were heard"})
		v.send("conversation.item.input_audio_transcription.completed", done)
		v.send("conversation.item.done", jsonObject{"item": spoken("completed")})
		if strings.Contains(v.instructions, "twice") {
			v.send("conversation.item.input_audio_transcription.completed", done)
		}
	}
	if automatic {
		return v.respond("", nil)
	}
	return ""
}

// respond begins a response.
func (v *voice) respond(instructions string, metadata json.RawMessage) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.active != "" {
		return "Conversation already has an active response in progress: " + v.active + "."
	}
	if v.model == "" {
		return "A transcription session makes no responses."
	}
	id := v.x.newID("resp_", seedOf(v.model))
	v.active, v.cancel = id, make(chan struct{})
	text := v.instructions + " " + instructions + " " + strings.Join(v.texts, " ")
	words := int64(len(strings.Fields(text)))
	audioTokens := v.audioBytes / 4800 // ten tokens a second
	row := v.x.s.bill.begin("/v1/realtime", v.model, id, true)
	v.wg.Go(func() { v.make(id, text, metadata, words, audioTokens, row) })
	return ""
}

// make makes a response.
func (v *voice) make(id, text string, metadata json.RawMessage, words, audioTokens int64, row entry) {
	n, big, say := 3, 0, ""
	closeCode := 0
	for _, f := range strings.Fields(text) {
		name, value, _ := strings.Cut(f, "=")
		number, _ := strconv.Atoi(value)
		switch name {
		case "chunks":
			n = number
		case "big":
			big = number
		case "close":
			closeCode = number
		case "say":
			say = strings.ReplaceAll(value, "_", " ")
		}
	}
	has := func(word string) bool { return strings.Contains(text, word) }
	begun := jsonObject{"id": id, "object": "realtime.response", "status": "in_progress"}
	if metadata != nil {
		begun["metadata"] = metadata
	}
	v.send("response.created", jsonObject{"response": begun})
	if has("drop") {
		_ = v.ws.NetConn().Close()
	}
	if closeCode > 0 {
		_ = v.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(closeCode, "as it was asked"))
	}
	delta, kind := strings.Repeat("x", max(big, 4)), "response.output_text.delta"
	audio := v.modalities == "audio"
	if audio {
		delta, kind = base64.StdEncoding.EncodeToString([]byte(delta)), "response.output_audio.delta"
	}
	if v.beta {
		kind = strings.Replace(kind, "output_", "", 1)
	}
	speech := v.saying(id, say, n, audio)
	status, made := "completed", int64(0)
	for i := 0; i < n && status == "completed"; i++ {
		select {
		case <-v.cancel:
			status = "cancelled"
		default:
			speech.piece(i)
			if say == "" || audio {
				v.send(kind, jsonObject{"response_id": id, "item_id": "item_out", "delta": delta})
			}
			made++
		}
	}
	if has("pause") && status == "completed" {
		<-v.cancel
		status = "cancelled"
	}
	cached := min(words/2, 5)
	usage := jsonObject{
		"total_tokens": words + audioTokens + made, "input_tokens": words + audioTokens, "output_tokens": made,
		"input_token_details": jsonObject{"text_tokens": words, "audio_tokens": audioTokens, "cached_tokens": cached, "cached_tokens_details": jsonObject{"text_tokens": cached, "audio_tokens": 0}},
	}
	p := realtimePrices[v.model]
	cost := (words-cached)*p.in + cached*p.cached + audioTokens*p.audioIn
	if audio {
		usage["output_token_details"] = jsonObject{"text_tokens": 0, "audio_tokens": made}
		cost += made * p.audioOut
	} else {
		usage["output_token_details"] = jsonObject{"text_tokens": made, "audio_tokens": 0}
		cost += made * p.out
	}
	done := jsonObject{"id": id, "object": "realtime.response", "status": status, "usage": usage, "output": []any{}}
	if metadata != nil {
		done["metadata"] = metadata
	}
	if has("no-usage") {
		done["usage"] = nil
	}
	if out := speech.end(); out != nil {
		done["output"] = []any{out}
	}
	charged := Usage{Input: words - cached, CacheRead: cached}
	if !audio {
		charged.Output = made
	}
	row.settle(http.StatusOK, charged, false, "", cost)
	v.mu.Lock()
	v.active = ""
	v.texts = append(v.texts, strings.Repeat("y ", int(made)))
	v.mu.Unlock()
	v.send("response.done", jsonObject{"response": done})
	if has("twice") {
		v.send("response.done", jsonObject{"response": done})
	}
}

// monologue is the text that a response says.
type monologue struct {
	v     *voice
	id    string
	item  jsonObject
	text  string
	n     int
	sound bool
}

// saying begins the item of a response that says something; nil: the response says nothing.
func (v *voice) saying(id, text string, n int, sound bool) *monologue {
	if text == "" {
		return nil
	}
	s := &monologue{v: v, id: id, text: text, n: max(n, 1), sound: sound, item: jsonObject{"id": "item_" + id, "type": "message", "role": "assistant", "status": "in_progress", "content": []any{}}}
	v.send("response.output_item.added", jsonObject{"response_id": id, "output_index": 0, "item": s.item})
	v.send("conversation.item.added", jsonObject{"previous_item_id": nil, "item": s.item})
	part := jsonObject{"type": "output_text", "text": ""}
	if sound {
		part = jsonObject{"type": "output_audio", "transcript": ""}
	}
	v.send("response.content_part.added", s.at(jsonObject{"part": part}))
	return s
}

func (s *monologue) name(end string) string {
	name := "response.output_text."
	if s.sound {
		name = "response.output_audio_transcript."
	}
	if s.v.beta {
		name = strings.Replace(name, "output_", "", 1)
	}
	return name + end
}

func (s *monologue) at(more jsonObject) jsonObject {
	e := jsonObject{"response_id": s.id, "item_id": s.item["id"], "output_index": 0, "content_index": 0}
	for k, v := range more {
		e[k] = v
	}
	return e
}

// piece sends one piece.
func (s *monologue) piece(i int) {
	if s != nil {
		s.v.send(s.name("delta"), s.at(jsonObject{"delta": s.text[len(s.text)*i/s.n : len(s.text)*(i+1)/s.n]}))
	}
}

// end repeats the complete text or transcript, in each event that does so.
func (s *monologue) end() jsonObject {
	if s == nil {
		return nil
	}
	member, part := "text", jsonObject{"type": "output_text", "text": s.text}
	if s.sound {
		member, part = "transcript", jsonObject{"type": "output_audio", "transcript": s.text}
	}
	s.item["content"], s.item["status"] = []any{part}, "completed"
	s.v.send(s.name("done"), s.at(jsonObject{member: s.text}))
	s.v.send("response.content_part.done", s.at(jsonObject{"part": part}))
	s.v.send("response.output_item.done", jsonObject{"response_id": s.id, "output_index": 0, "item": s.item})
	s.v.send("conversation.item.done", jsonObject{"previous_item_id": nil, "item": s.item})
	return s.item
}
