// Package bidi reads the Live sessions of Gemini: turns, each with the usage that is reported
// for it. The usage of a turn that calls tools may arrive in several parts, because the model
// reads the conversation again for each.
//
// Usage with the same prompt as the last turn restates that turn: it replaces the earlier
// report. Otherwise every turn is charged, because each reads the complete conversation before
// it. Usage arrives beside other content or alone, and also after its turn is over.
package bidi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gateway/shared/dialect/live"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Session is one session. It is made by New.
type Session struct {
	first            []byte
	model            wire.Span
	client, provider wire.Walk
	within           wire.Walk // of the provider's content

	mu        sync.Mutex
	most      int64 // tokens that a turn may make; 0 means no limit is stated
	turns     int
	open      bool // a turn is open
	over      bool // the turn has ended, and its usage is still to come
	used      pricing.Usage
	prompt    int64 // tokens that the turn has read
	made      int64 // bytes of the model's response
	sound     bool  // the response is audio
	history   int64 // tokens that the last turn read and made
	since     int64 // most tokens that the client has added
	booked    pricing.Usage
	read      int64  // prompt of the turn that was booked last
	last      string // its id
	growths   int    // how often its usage has grown since
	requested bool   // the client requested the open turn, and the model has sent nothing yet
}

// New reads a session.
func New() live.Wire { return new(Session) }

// Members of the client's messages. Those of protocol buffers may also be spelled by their
// own names.
var (
	clientKeys  = wire.NewKeySet("setup", "clientContent", "client_content", "realtimeInput", "realtime_input", "toolResponse", "tool_response")
	setupKeys   = wire.NewKeySet("model", "generationConfig", "generation_config", "inputAudioTranscription", "input_audio_transcription", "outputAudioTranscription", "output_audio_transcription")
	configKeys  = wire.NewKeySet("maxOutputTokens", "max_output_tokens", "responseModalities", "response_modalities")
	inputKeys   = wire.NewKeySet("text", "audio", "video", "mediaChunks", "media_chunks")
	contentKeys = wire.NewKeySet("turnComplete", "turn_complete")
	serverKeys  = wire.NewKeySet("serverContent", "toolCall", "usageMetadata", "sessionResumptionUpdate")
	resumeKeys  = wire.NewKeySet("newHandle")
	turnKeys    = wire.NewKeySet("modelTurn", "turnComplete", "interrupted", "inputTranscription", "outputTranscription")
)

// either is the value of a field that has two spellings; nil when it is absent.
func either(body []byte, w *wire.Walk, set *wire.KeySet, names ...string) []byte {
	for _, name := range names {
		if s := w.Spans[set.Index(name)]; s.Present(body) {
			return s.Of(body)
		}
	}
	return nil
}

// Opens implements live.Wire.
func (s *Session) Opens(first []byte) (o live.FirstMessage, err error) {
	if err := clientKeys.Walk(first, &s.client); err != nil {
		return o, err
	}
	setup := s.client.Spans[0]
	if !setup.Present(first) {
		return o, fault.Invalid("setup", "is required: the first message configures the session")
	}
	raw := setup.Of(first)
	var in wire.Walk
	if err := setupKeys.Walk(raw, &in); err != nil {
		return o, inside("setup", err)
	}
	at := in.Spans[0]
	if !at.Present(raw) {
		return o, fault.Invalid("setup.model", "is required: the model of the session")
	}
	name, err := wire.ScanString(at.Of(raw), "setup.model")
	if err != nil {
		return o, err
	}
	s.first = slices.Clone(first)
	s.model = wire.Span{Start: setup.Start + at.Start, End: setup.Start + at.End}
	if o.Model = strings.TrimPrefix(name, "models/"); o.Model == "" || len(o.Model) > 4096 {
		return o, fault.Invalid("setup.model", "must name a model, with or without models/ before it")
	}
	o.Demands, err = s.config(raw, &in)
	return o, err
}

func inside(field string, err error) error {
	f := fault.From(err)
	if f.Field != "" && f.Field != "body" {
		field += "." + f.Field
	}
	f.Field = field
	return f
}

// config reads what the setup states about answers.
func (s *Session) config(setup []byte, in *wire.Walk) (a live.Demands, err error) {
	a.NoInputTranscript = either(setup, in, setupKeys, "inputAudioTranscription", "input_audio_transcription") == nil
	written := either(setup, in, setupKeys, "outputAudioTranscription", "output_audio_transcription") != nil
	raw := either(setup, in, setupKeys, "generationConfig", "generation_config")
	voice := true // models that speak do so if the setup does not say otherwise
	if raw != nil {
		var w wire.Walk
		if err := configKeys.Walk(raw, &w); err != nil {
			return a, inside("setup.generationConfig", err)
		}
		if n := either(raw, &w, configKeys, "maxOutputTokens", "max_output_tokens"); n != nil {
			if json.Unmarshal(n, &s.most) != nil || s.most < 0 || s.most > 1<<24 {
				return a, fault.Invalid("setup.generationConfig.maxOutputTokens", "must be a whole number from 0 to %d", 1<<24)
			}
		}
		if m := either(raw, &w, configKeys, "responseModalities", "response_modalities"); m != nil {
			var kinds []string
			if json.Unmarshal(m, &kinds) != nil {
				return a, fault.Invalid("setup.generationConfig.responseModalities", "must be a list of texts")
			}
			voice = !slices.Equal(kinds, []string{"TEXT"})
		}
	}
	a.NoOutputTranscript = voice && !written
	return a, nil
}

// FirstMessage implements live.Wire.
func (s *Session) FirstMessage(model string) []byte {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return slices.Concat(s.first[:s.model.Start], wire.AppendJSONString(nil, model), s.first[s.model.End:])
}

// At least how many bytes of input make a token.
const (
	bytesOfText  = 1
	bytesOfSound = 256 // of sound and pictures, in Base64
)

// Client implements live.Wire.
func (s *Session) Client(message []byte) (h live.Content, err error) {
	w := &s.client
	if err := clientKeys.Walk(message, w); err != nil {
		return h, err
	}
	if w.Spans[0].Present(message) {
		return h, fault.Invalid("setup", "opens a session, and this session is already open")
	}
	if input := either(message, w, clientKeys, "realtimeInput", "realtime_input"); input != nil {
		if h.Audio, err = s.realtime(input); err != nil || alone(message, w) {
			return h, err
		}
	}
	s.countInput(len(message), false)
	if raw := either(message, w, clientKeys, "clientContent", "client_content"); raw != nil {
		var in wire.Walk
		if err := contentKeys.Walk(raw, &in); err != nil {
			return h, inside("clientContent", err)
		}
		if done := either(raw, &in, contentKeys, "turnComplete", "turn_complete"); string(done) == "true" {
			h.Steps = s.beginRequestedTurn()
		}
	}
	return h, nil
}

// realtime counts what a client sends as it goes, and reports whether it includes sound.
func (s *Session) realtime(input []byte) (sound bool, err error) {
	var in wire.Walk
	if err := inputKeys.Walk(input, &in); err != nil {
		return false, inside("realtimeInput", err)
	}
	words := either(input, &in, inputKeys, "text")
	if words != nil {
		s.countInput(len(words), false)
		if either(input, &in, inputKeys, "audio", "video", "mediaChunks", "media_chunks") == nil {
			return false, nil
		}
	}
	s.countInput(len(input)-len(words), true)
	return true, nil
}

// alone reports whether a message has exactly one field.
func alone(message []byte, w *wire.Walk) bool {
	n := 0
	for i := range w.Spans {
		if w.Spans[i].Present(message) {
			n++
		}
	}
	return n == 1
}

// countInput counts the client's additions to the conversation.
func (s *Session) countInput(n int, sound bool) {
	per := bytesOfText
	if sound {
		per = bytesOfSound
	}
	s.mu.Lock()
	s.since += int64(n/per) + 1
	s.mu.Unlock()
}

// beginRequestedTurn begins the turn that the client requests, unless one is open.
func (s *Session) beginRequestedTurn() []live.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return nil
	}
	step := s.begin()
	s.requested = true
	return []live.Step{step}
}

func (s *Session) id() string { return "turn " + strconv.Itoa(s.turns) }

// begin begins a turn. The lock is held.
func (s *Session) begin() live.Step {
	s.turns++
	s.requested = false
	s.open, s.over, s.used, s.prompt, s.made, s.sound = true, false, pricing.Usage{}, 0, 0, false
	return live.Step{Do: live.Begins, ID: s.id(), Input: s.history + s.since, Output: s.most}
}

// Busy implements live.Wire.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// EndMessage implements live.Wire. No message is needed to leave.
func (s *Session) EndMessage() []byte { return nil }

// Error implements live.Wire. Closing the socket is the only way to report it.
func (s *Session) Error(*fault.Fault, string, string) []byte { return nil }
