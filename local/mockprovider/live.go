package mockprovider

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// liveMinute is the price of a minute of a Live session, in nano-dollars.
const liveMinute = 50_000_000

// liveRate is how many bytes a second of sound has in a Live session.
const liveRate = 48_000

// liveSession serves GET /live/sessions: sessions that are charged by the second. Words in
// session.instructions.append steer it: "delegate" (the session makes a response); "begin" (a
// response without a reported end); "decide" (a decision); "twice" (each is reported twice);
// "say=my_words" (the session says them); "heard=my_words" (the transcript of the client's
// speech); "lasts=60" (the session counts as so many seconds longer); "silent" (usage is not
// reported again until the end); "drop" (the connection breaks).
func liveSession(x *exchange) *apiError {
	switch {
	case x.query != "":
		return &apiError{status: http.StatusBadRequest, code: "invalid_query", message: "Connect to Live without query parameters."}
	case !websocket.IsWebSocketUpgrade(x.r):
		return &apiError{status: http.StatusBadRequest, message: "This endpoint takes WebSockets."}
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(x.w, x.r, nil)
	if err != nil {
		return nil // Upgrade has answered
	}
	s := &liveTalk{talk: talk{x: x, ws: ws}}
	s.serve(s.take, s.lost)
	return nil
}

// talk is a session over a WebSocket.
type talk struct {
	x       *exchange
	ws      *websocket.Conn
	sending sync.Mutex
	n       int
}

// serve handles messages until one side leaves, or take says to stop.
func (t *talk) serve(take func([]byte) bool, lost func()) {
	defer t.ws.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with the session, or with the server
		select {
		case <-t.x.s.stopped:
			_ = t.ws.Close()
		case <-stop:
		}
	}()
	defer lost()
	for {
		_, body, err := t.ws.ReadMessage()
		if err != nil {
			return
		}
		t.x.s.history.add(Received{Method: "EVENT", Path: t.x.path, Headers: t.x.r.Header.Clone(), Body: slices.Clone(body), Length: int64(len(body))})
		if !take(body) {
			return
		}
	}
}

// send sends an event of OpenAI's sessions.
func (t *talk) send(kind string, more jsonObject) {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.n++
	e := jsonObject{"type": kind, "event_id": "event_mock" + strconv.Itoa(t.n)}
	for k, v := range more {
		e[k] = v
	}
	t.write(e)
}

// write sends a message.
func (t *talk) write(m jsonObject) {
	body, _ := json.Marshal(m)
	_ = t.ws.WriteMessage(websocket.TextMessage, body) // when the client has gone, the reader notices it
}

func (t *talk) end(code int, reason string) {
	_ = t.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
}

// liveTalk is one Live session.
type liveTalk struct {
	talk
	id, model string
	bytes     int64 // of sound
	quiet     bool
	over      bool
	row       entry
}

func (s *liveTalk) session() jsonObject {
	return jsonObject{"id": s.id, "model": s.model, "status": "active", "expires_at": 1}
}

func (s *liveTalk) seconds() float64 { return float64(s.bytes) / liveRate }

// billed records the time; a started second counts fully.
func (s *liveTalk) billed() {
	n := (s.bytes + liveRate - 1) / liveRate
	s.row.closeAt(http.StatusOK, (n*liveMinute+30)/60)
	s.over = true
}

// lost handles a connection that ended without a close.
func (s *liveTalk) lost() {
	if s.id != "" && !s.over {
		s.billed()
	}
}

// fail reports an error; some errors end the session.
func (s *liveTalk) fail(code, message string) bool {
	s.send("error", jsonObject{"error": jsonObject{"type": "invalid_request_error", "code": code, "message": message}})
	return s.id != ""
}

func (s *liveTalk) take(body []byte) bool {
	var e struct {
		Type    string `json:"type"`
		Audio   string `json:"audio"`
		Content string `json:"content"`
		Session struct {
			Model string `json:"model"`
		} `json:"session"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return s.fail("invalid_json", "Invalid JSON: "+err.Error())
	}
	switch {
	case s.id == "" && e.Type != "session.start":
		return s.fail("invalid_event", "The first message must be session.start.")
	case s.id != "" && e.Type == "session.start":
		return s.fail("invalid_event", "The session has been started.")
	}
	switch e.Type {
	case "session.start":
		if e.Session.Model != "gpt-live-1" {
			return s.fail("model_not_found", "The model '"+e.Session.Model+"' does not exist or you do not have access to it.")
		}
		s.model, s.id = e.Session.Model, s.x.newID("live_", seedOf(e.Session.Model))
		s.row = s.x.s.bill.begin("/v1/live/sessions", s.model, s.id, true)
		s.send("session.started", jsonObject{"session": s.session()})
	case "session.input_audio.append":
		raw, err := base64.StdEncoding.DecodeString(e.Audio)
		if err != nil {
			return s.fail("invalid_audio", "Invalid 'audio': not Base64.")
		}
		if s.bytes += int64(len(raw)); !s.quiet {
			s.send("session.usage.updated", jsonObject{"usage": jsonObject{"seconds": s.seconds()}})
		}
	case "session.instructions.append":
		return s.steer(e.Content)
	case "session.update":
		s.send("session.updated", jsonObject{"session": s.session()})
	case "session.close":
		s.billed()
		s.send("session.closed", jsonObject{"reason": "close_requested", "session": s.session(), "usage": jsonObject{"seconds": s.seconds()}})
		s.end(websocket.CloseNormalClosure, "")
		return false
	default:
		return s.fail("invalid_event", "Supported client events: session.start, session.update, session.input_audio.append, session.instructions.append, session.close.")
	}
	return true
}

// steer does what the words say.
func (s *liveTalk) steer(words string) bool {
	s.send("session.instructions.appended", jsonObject{"content": words, "delegation_id": nil})
	times := 1
	for _, w := range strings.Fields(words) {
		name, value, _ := strings.Cut(w, "=")
		value = strings.ReplaceAll(value, "_", " ")
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		switch name {
		case "twice":
			times = 2
		case "delegate":
			s.delegate(times)
		case "begin":
			s.delegate(0)
		case "decide":
			s.decide(times)
		case "say":
			s.send("session.output_transcript.delta", jsonObject{"delta": value})
		case "heard":
			s.send("session.input_transcript.delta", jsonObject{"delta": value})
		case "silent":
			s.quiet = true
		case "lasts": // so many seconds more
			n, _ := strconv.Atoi(value) // if it is not a number, the time does not grow
			s.bytes += int64(n) * liveRate
			s.send("session.usage.updated", jsonObject{"usage": jsonObject{"seconds": s.seconds()}})
		case "drop":
			_ = s.ws.NetConn().Close()
			return false
		}
	}
	return true
}

// delegate makes a response within the session.
func (s *liveTalk) delegate(times int) {
	const model, in, out = "gpt-4o-mini", 1000, 100
	id := s.x.newID("resp_", seedOf(model))
	row := s.x.s.bill.begin("/v1/live/sessions", model, id, true)
	event := func(kind string, more jsonObject) {
		more["type"] = kind
		s.send("response.event", jsonObject{"delegation_id": "del_1", "event": more})
	}
	response := jsonObject{"id": id, "object": "response", "model": model, "status": "in_progress", "output": []any{}}
	event("response.created", jsonObject{"response": response})
	event("response.output_text.delta", jsonObject{"item_id": "msg_1", "delta": "words"})
	done := jsonObject{"id": id, "object": "response", "model": model, "status": "completed", "output": []any{}, "usage": jsonObject{
		"input_tokens": in, "output_tokens": out, "total_tokens": in + out, "input_tokens_details": jsonObject{"cached_tokens": 0}, "output_tokens_details": jsonObject{"reasoning_tokens": 0}}}
	row.close(http.StatusOK, Usage{Input: in, Output: out}, false, "")
	for range times {
		event("response.completed", jsonObject{"response": done})
	}
}

// decide makes a decision within the session. When it is reported again, it has the same
// id.
func (s *liveTalk) decide(times int) {
	const model, in = "gpt-4o-mini", 500
	row := s.x.s.bill.begin("/v1/live/sessions", model, "", true)
	row.close(http.StatusOK, Usage{Input: in}, false, "")
	for i := range times {
		if i > 0 {
			s.n--
		}
		s.send("decision.event", jsonObject{"delegation_id": nil, "trigger_id": "trig_1", "event": jsonObject{"type": "decision.completed", "decision": jsonObject{
			"model": model, "answers": []any{}, "usage": jsonObject{"input_tokens": in, "output_tokens": 0, "total_tokens": in, "input_tokens_details": jsonObject{"cached_tokens": 0}}}}})
	}
}
