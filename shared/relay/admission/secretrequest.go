package admission

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// Limits of a secret's lifetime, in seconds, and the defaults: the beta routes have no parameter
// for it.
const (
	minTTL      = 10
	maxTTL      = 7200
	usualTTL    = 600
	usualTTLOld = 60
)

// MaxSecretRequest limits the body of such a request, in bytes: it is stored.
const MaxSecretRequest = 128 << 10

// SecretRequest is a request for a secret.
type SecretRequest struct {
	Format        routes.SecretFormat
	Model         string // as requested, with @slug/; "" if the config determines it
	Transcribes   bool
	Transcription string // the model that transcribes audio; "" for none
	TTL           time.Duration

	settings map[string]json.RawMessage // of the session
}

// ReadSecretRequest reads the body of a request for a secret. The error names all invalid fields.
func ReadSecretRequest(shape routes.SecretFormat, body []byte) (*SecretRequest, error) {
	w := &SecretRequest{Format: shape, TTL: usualTTL * time.Second, Transcribes: shape == routes.TranscriptionSecret}
	if shape != routes.ClientSecret {
		w.TTL = usualTTLOld * time.Second
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := wire.CheckStrict(body, wire.MaxDepth); err != nil {
		return nil, err
	}
	top := map[string]json.RawMessage{}
	if json.Unmarshal(body, &top) != nil {
		return nil, fault.Invalid("body", "must be an object")
	}
	var bad faults
	at, settings := "", top
	if shape == routes.ClientSecret {
		at = "session."
		for name := range top {
			if name != "session" && name != "expires_after" {
				bad.add(name, "is not known; allowed are session and expires_after")
			}
		}
		settings = bad.object(top, "", "session")
		w.TTL = bad.ttl(top["expires_after"], w.TTL)
	} else if top["expires_after"] != nil || top["client_secret"] != nil {
		w.TTL = bad.ttl(top["expires_after"], w.TTL)
		delete(top, "expires_after")
		delete(top, "client_secret")
	}
	w.settings = settings
	switch kind := bad.text(settings, at, "type"); {
	case shape != routes.ClientSecret || kind == "" || kind == "realtime":
	case kind == "transcription":
		w.Transcribes = true
	default:
		bad.add(at+"type", "must be realtime or transcription")
	}
	w.Model = bad.text(settings, at, "model")
	if w.Transcribes && w.Model != "" {
		bad.add(at+"model", "must be omitted in a transcription session: its model is in the settings of transcription")
	}
	w.Transcription = bad.transcription(settings, at)
	if w.Transcribes && w.Transcription == "" && len(bad) == 0 {
		bad.add(at+transcriptionAt(shape), "is required: the model that transcribes")
	}
	if f := fault.Invalids(bad); f != nil {
		return nil, f
	}
	return w, nil
}

func transcriptionAt(shape routes.SecretFormat) string {
	if shape == routes.ClientSecret {
		return "audio.input.transcription.model"
	}
	return "input_audio_transcription.model"
}

// faults are the faults of a body.
type faults []fault.Detail

func (f *faults) add(field, message string) {
	*f = append(*f, fault.Detail{Field: field, Message: message})
}

// object returns a field that is an object; empty if it is absent or null.
func (f *faults) object(of map[string]json.RawMessage, at, name string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if raw := of[name]; raw != nil && json.Unmarshal(raw, &out) != nil {
		f.add(at+name, "must be an object")
	}
	if out == nil {
		out = map[string]json.RawMessage{} // null
	}
	return out
}

// text returns a field that is a string; "" if it is absent or null.
func (f *faults) text(of map[string]json.RawMessage, at, name string) (s string) {
	if raw := of[name]; raw != nil && json.Unmarshal(raw, &s) != nil {
		f.add(at+name, "must be a string")
	}
	return s
}

// transcription returns the model that transcribes, in the current format and in that of the
// beta.
func (f *faults) transcription(settings map[string]json.RawMessage, at string) string {
	audio := f.object(settings, at, "audio")
	input := f.object(audio, at+"audio.", "input")
	if model := f.text(f.object(input, at+"audio.input.", "transcription"), at+"audio.input.transcription.", "model"); model != "" {
		return model
	}
	return f.text(f.object(settings, at, "input_audio_transcription"), at+"input_audio_transcription.", "model")
}

// ttl reads the lifetime of a secret.
func (f *faults) ttl(raw json.RawMessage, usual time.Duration) time.Duration {
	if raw == nil || string(raw) == "null" {
		return usual
	}
	var after struct {
		Anchor  *string      `json:"anchor"`
		Seconds *json.Number `json:"seconds"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&after) != nil {
		f.add("expires_after", "must be an object of anchor and seconds")
		return usual
	}
	if after.Anchor != nil && *after.Anchor != "created_at" {
		f.add("expires_after.anchor", "must be created_at")
	}
	if after.Seconds == nil {
		return usual
	}
	n, err := strconv.Atoi(after.Seconds.String())
	if err != nil || n < minTTL || n > maxTTL {
		f.add("expires_after.seconds", "must be a whole number of 10 to 7200")
		return usual
	}
	return time.Duration(n) * time.Second
}

// ClientSecretToken returns the content to store.
func (w *SecretRequest) Secret() (*ClientSecretToken, error) {
	own := make(map[string]json.RawMessage, len(w.settings))
	for name, value := range w.settings {
		if name != "model" {
			own[name] = value
		}
	}
	beta := w.Format != routes.ClientSecret
	if !beta && own["type"] == nil {
		own["type"] = json.RawMessage(`"` + w.kind() + `"`)
	}
	if len(own) == 0 || len(own) == 1 && own["type"] != nil {
		own = nil // no settings
	}
	var settings json.RawMessage
	if own != nil {
		var err error
		if settings, err = json.Marshal(own); err != nil {
			return nil, fault.Internal(err)
		}
	}
	return &ClientSecretToken{Model: w.Model, Transcribes: w.Transcribes, Beta: beta, Settings: settings}, nil
}

func (w *SecretRequest) kind() string {
	if w.Transcribes {
		return "transcription"
	}
	return "realtime"
}

// Response returns the response for a created secret; id is that of the session.
func (w *SecretRequest) Response(raw, id string, until time.Time) ([]byte, error) {
	session := map[string]any{}
	for name, value := range w.settings {
		session[name] = value
	}
	session["id"], session["object"] = id, "realtime.session"
	if w.Transcribes {
		session["object"] = "realtime.transcription_session"
	}
	var out any = session
	switch w.Format {
	case routes.ClientSecret:
		session["type"] = w.kind()
		out = map[string]any{"value": raw, "expires_at": until.Unix(), "session": session}
	default:
		session["client_secret"] = map[string]any{"value": raw, "expires_at": until.Unix()}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fault.Internal(err)
	}
	return body, nil
}
