package admission

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/routes"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape    routes.SecretFormat
		body     string
		want     SecretRequest
		settings string // of the event that opens the session
	}{
		"nothing":           {routes.ClientSecret, "", SecretRequest{TTL: 10 * time.Minute}, ""},
		"a model":           {routes.ClientSecret, `{"session":{"type":"realtime","model":"@s/m"},"expires_after":{"anchor":"created_at","seconds":7200}}`, SecretRequest{Model: "@s/m", TTL: 2 * time.Hour}, ""},
		"settings":          {routes.ClientSecret, `{"session":{"model":"m","instructions":"Be brief."},"expires_after":null}`, SecretRequest{Model: "m", TTL: 10 * time.Minute}, `{"type":"session.update","session":{"instructions":"Be brief.","type":"realtime"}}`},
		"transcription":     {routes.ClientSecret, `{"session":{"type":"transcription","audio":{"input":{"transcription":{"model":"w"}}}}}`, SecretRequest{Transcribes: true, Transcription: "w", TTL: 10 * time.Minute}, `{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"w"}}},"type":"transcription"}}`},
		"of the beta":       {routes.SessionSecret, `{"model":"m","voice":"alloy"}`, SecretRequest{Model: "m", TTL: time.Minute}, `{"type":"session.update","session":{"voice":"alloy"}}`},
		"its transcription": {routes.TranscriptionSecret, `{"input_audio_transcription":{"model":"w"}}`, SecretRequest{Transcribes: true, Transcription: "w", TTL: time.Minute}, `{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"w"}}}`},
	} {
		w, err := ReadSecretRequest(c.shape, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w.Model != c.want.Model || w.TTL != c.want.TTL || w.Transcribes != c.want.Transcribes || w.Transcription != c.want.Transcription {
			t.Errorf("%s: %+v", name, w)
		}
		s, err := w.Secret()
		if err != nil || string(s.FirstEvent()) != c.settings {
			t.Errorf("%s: %v %s", name, err, s.FirstEvent())
		}
		told, err := w.Response("ek_x", "sess_1", time.Unix(7, 0))
		if err != nil || !json.Valid(told) || strings.Count(string(told), "ek_x") != 1 || !strings.Contains(string(told), `"expires_at":7`) || !strings.Contains(string(told), `"id":"sess_1"`) {
			t.Errorf("%s: %v %s", name, err, told)
		}
	}
}

func TestBadRequestsForSecrets(t *testing.T) {
	t.Parallel()
	for body, fields := range map[string]string{
		`[]`: "body", `{"session":7}`: "session", `{"session":{"model":7}}`: "session.model", `{"session":{"type":"x"}}`: "session.type", `{"model":"m"}`: "model",
		`{"expires_after":7}`: "expires_after", `{"expires_after":{"seconds":9}}`: "expires_after.seconds", `{"expires_after":{"seconds":7201}}`: "expires_after.seconds", `{"expires_after":{"seconds":10.5}}`: "expires_after.seconds",
		`{"expires_after":{"anchor":"now","seconds":1}}`:                          "expires_after.anchor expires_after.seconds",
		`{"session":{"type":"transcription"}}`:                                    "session.audio.input.transcription.model",
		`{"session":{"type":"transcription","model":"m"}}`:                        "session.model",
		`{"session":{"audio":{"input":{"transcription":{"model":1}}},"model":2}}`: "session.model session.audio.input.transcription.model",
	} {
		_, err := ReadSecretRequest(routes.ClientSecret, []byte(body))
		f := fault.From(err)
		if f == nil || f.Status() != 400 {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := []string{f.Field}
		if len(f.Details) > 0 {
			got = got[:0]
			for _, d := range f.Details {
				got = append(got, d.Field)
			}
		}
		if strings.Join(got, " ") != fields {
			t.Errorf("%s: %v", body, got)
		}
	}
	for _, body := range []string{`{"session":{"model":"a","model":"b"}}`, "{\"session\":{\"model\":\"\xff\"}}", strings.Repeat("[", 1000), `{"session":`} {
		if _, err := ReadSecretRequest(routes.ClientSecret, []byte(body)); fault.From(err) == nil || fault.From(err).Status() != 400 {
			t.Errorf("%.30q: %v", body, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(uint8(1), []byte(`{"session":{"type":"realtime","model":"m"},"expires_after":{"seconds":60}}`))
	f.Add(uint8(3), []byte(`{"input_audio_transcription":{"model":"w"}}`))
	f.Fuzz(func(t *testing.T, shape uint8, body []byte) {
		w, err := ReadSecretRequest(routes.SecretFormat(shape%3+1), body)
		if err != nil {
			if fault.From(err).Status() != 400 {
				t.Fatalf("%v", err)
			}
			return
		}
		s, err := w.Secret()
		if err != nil || s.FirstEvent() != nil && !json.Valid(s.FirstEvent()) {
			t.Fatalf("%v %s", err, s.FirstEvent())
		}
		if told, err := w.Response("ek_x", "sess", time.Unix(1, 0)); err != nil || !json.Valid(told) {
			t.Fatalf("%v %s", err, told)
		}
	})
}

func newRoom(t *testing.T, now func() time.Time) *ClientSecretScope {
	t.Helper()
	s, err := sqlite.Open(t.TempDir()+"/x.db", sqlite.Options{Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w, err := local.Open(t.TempDir() + "/key")
	if err != nil {
		t.Fatal(err)
	}
	return &ClientSecretScope{Keys: s.Table(store.Keys), Sealer: seal.New(w, now), Now: now}
}

func TestSecretsAreKeptSealed(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	r := newRoom(t, func() time.Time { return at })
	sc := store.Scope{Org: "o", Workspace: "w"}
	in := &ClientSecretToken{Key: "hash", Model: "m", Settings: json.RawMessage(`{"instructions":"private words"}`), Headers: http.Header{"Authorization": {"Bearer of-a-provider"}}, Until: at.Add(time.Minute)}
	raw, err := r.Store(t.Context(), sc, in)
	if err != nil || !IsClientSecret(raw) {
		t.Fatal(raw, err)
	}
	got, err := r.Open(t.Context(), raw)
	if err != nil || got.Key != "hash" || got.Model != "m" || string(got.Settings) != string(in.Settings) || got.Headers.Get("Authorization") != "Bearer of-a-provider" || !got.Until.Equal(in.Until) {
		t.Errorf("%+v %v", got, err)
	}
	for _, other := range []string{raw + "x", "ek_", "ek_" + strings.Repeat("a", 4000)} {
		if _, err := r.Open(t.Context(), other); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%.50s: %v", other, err)
		}
	}
	at = at.Add(time.Minute)
	if _, err := r.Open(t.Context(), raw); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("it outlives itself: %v", err)
	}
}

// The settings of a secret's creator cannot be changed by its holder.
func TestHoldersChangeNothing(t *testing.T) {
	t.Parallel()
	s := &ClientSecretToken{Headers: Bind(http.Header{
		"X-Gateway-Config": {"c"}, "X-Gateway-Api-Key": {"never"}, "Authorization": {"Bearer provider"}, "Cookie": {"a"}, "X-Own": {"b"}, "X-Gateway-Trace-Id": {"t"}, "Openai-Project": {"p"},
	}, []string{"x-own"})}
	names := make([]string, 0, len(s.Headers))
	for name := range s.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "Authorization Openai-Project X-Gateway-Config X-Own" {
		t.Fatal(got)
	}
	h, err := s.Unbind(http.Header{"Authorization": {"Bearer ek_x"}, "X-Gateway-Trace-Id": {"mine"}, "Openai-Beta": {"realtime=v1"}, "X-Own": {"mine"}, "Origin": {"https://x.test"}}, "ek_x")
	if err != nil || h.Get("Authorization") != "Bearer provider" || h.Get("X-Gateway-Api-Key") != "ek_x" || h.Get("X-Own") != "b" || h.Get("X-Gateway-Trace-Id") != "mine" || h.Get("Openai-Beta") != "realtime=v1" || h.Get("X-Gateway-Config") != "c" {
		t.Errorf("%v %v", h, err)
	}
	for _, name := range []string{"X-Gateway-Config", "X-Gateway-Provider", "X-Gateway-Custom-Host", "X-Gateway-Metadata", "Openai-Project"} {
		if _, err := s.Unbind(http.Header{name: {"another"}}, "ek_x"); !fault.Is(err, fault.NotAllowed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatASecretOpens(t *testing.T) {
	t.Parallel()
	one, named, hears := &ClientSecretToken{Model: "m"}, &ClientSecretToken{Model: "@s/m"}, &ClientSecretToken{Transcribes: true}
	for _, c := range []struct {
		s             *ClientSecretToken
		model, intent string
		opens         bool
	}{
		{one, "", "", true}, {one, "m", "", true}, {one, "n", "", false}, {one, "@s/m", "", false}, {one, "", "transcription", false},
		{named, "@s/m", "", true}, {named, "m", "", true}, {named, "@t/m", "", false},
		{hears, "", "", true}, {hears, "", "transcription", true}, {hears, "m", "", false},
	} {
		q := url.Values{"other": {"x"}}
		if c.model != "" {
			q.Set("model", c.model)
		}
		if c.intent != "" {
			q.Set("intent", c.intent)
		}
		got, err := c.s.Query(q.Encode())
		if (err == nil) != c.opens {
			t.Errorf("%q opens %q %q: %v", c.s.Model, c.model, c.intent, err)
			continue
		}
		if is, _ := url.ParseQuery(got); err == nil && (is.Get("model") != c.s.Model || is.Has("intent") != c.s.Transcribes || is.Get("other") != "x") {
			t.Errorf("%q opens %q %q as %s", c.s.Model, c.model, c.intent, got)
		}
	}
	for _, raw := range []string{"model=a&model=b", "%zz"} {
		if got, err := one.Query(raw); err != nil || got != raw {
			t.Errorf("%s: %s %v", raw, got, err)
		}
	}
}
