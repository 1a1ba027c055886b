package realtime

import (
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/pricing"
)

func read(t *testing.T, body string) Event {
	t.Helper()
	e, err := new(Reader).Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What another reader could read otherwise is no event.
func TestEventsThatAreNone(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		``: "", `[]`: "", `{"type":"a"`: "", `{"type":"a","type":"response.create"}`: "type", `{"Type":"response.create","type":"a"}`: "",
		`{"typ\u0065":"response.create"}`: "", `{"type":7}`: "type", `{}`: "type", `{"type":""}`: "type", "{\"type\":\"\xff\"}": "event",
		`{"type":"a","event_id":[]}`: "event_id", `{"type":"` + strings.Repeat("x", maxName) + `"}`: "type",
		strings.Repeat(`{"a":`, 100_000): "",
	} {
		_, err := new(Reader).Read([]byte(body))
		if f := fault.From(err); err == nil || f.Status() != 400 || field != "" && !strings.Contains(f.Field+f.Message, field) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

func TestSessionsAreRead(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Session{
		`{"type":"session.update","session":{"model":"m","instructions":"i","max_output_tokens":7,"audio":{"input":{"transcription":{"model":"w"}}}}}`: {Model: "m", Transcription: "w", MaxOutput: 7, Instructions: "i"},
		`{"type":"session.update","session":{"max_response_output_tokens":"inf","input_audio_transcription":{"model":"w"}}}`:                           {Transcription: "w"},
		`{"type":"session.update","session":{"prompt":{"id":"pmpt_1","variables":{"a":"b"}}}}`:                                                         {UnboundedField: "session.prompt.id"},
		`{"type":"session.update","session":{"input_audio_transcription":{"model":"a"},"audio":{"input":{"transcription":{"model":"b"}}}}}`:            {Transcription: "b", DuplicateField: "session.input_audio_transcription"},
		`{"type":"session.update","session":{"max_output_tokens":1,"max_response_output_tokens":"inf"}}`:                                               {MaxOutput: 1, DuplicateField: "session.max_response_output_tokens"},
		`{"type":"session.update","session":{"prompt":null}}`:                                                                                          {},
		`{"type":"session.update","session":{"audio":{"input":{"transcription":null}},"max_output_tokens":null}}`:                                      {},
		`{"type":"session.update"}`: {},
	} {
		e := read(t, body)
		if got, err := e.Session(); err != nil || got != want {
			t.Errorf("%s: %+v %v", body, got, err)
		}
	}
	for _, body := range []string{
		`{"type":"x","session":7}`, `{"type":"x","session":{"model":"a","model":"b"}}`, `{"type":"x","session":{"Model":"a"}}`,
		`{"type":"x","session":{"audio":[]}}`, `{"type":"x","session":{"max_output_tokens":1.5}}`, `{"type":"x","session":{"max_output_tokens":-1}}`,
		`{"type":"x","session":{"audio":{"input":{"transcription":{"model":7}}}}}`,
		`{"type":"x","session":{"prompt":{"id":7}}}`, `{"type":"x","session":{"prompt":{"id":"a","id":"b"}}}`,
	} {
		e := read(t, body)
		if _, err := e.Session(); err == nil || !strings.HasPrefix(fault.From(err).Field, "session") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestUsageIsReadByKind(t *testing.T) {
	t.Parallel()
	d, err := ReadResponse([]byte(`{"response":{"id":"r","status":"completed","usage":{"input_tokens":100,"output_tokens":30,
		"input_token_details":{"text_tokens":40,"audio_tokens":50,"image_tokens":10,"cached_tokens":25,"cached_tokens_details":{"text_tokens":15,"audio_tokens":8,"image_tokens":2}},
		"output_token_details":{"text_tokens":10,"audio_tokens":20}}}}`))
	if err != nil || d.ID != "r" || d.Status != "completed" {
		t.Fatal(d, err)
	}
	for c, n := range map[pricing.Class]int64{
		pricing.Input: 25, pricing.CacheRead: 15, pricing.AudioIn: 42, pricing.AudioCacheRead: 8, pricing.ImageIn: 8, pricing.ImageCacheRead: 2, pricing.Output: 10, pricing.AudioOut: 20,
	} {
		if d.Usage.N(c) != n {
			t.Errorf("%s: %d, want %d", c, d.Usage.N(c), n)
		}
	}
	if d.Usage.InputTokens() != 100 || d.Usage.OutputTokens() != 30 {
		t.Errorf("%+v", d.Usage)
	}
	for _, none := range []string{`{"response":{"usage":null}}`, `{"response":{"usage":{}}}`, `{"response":{"usage":{"input_tokens":"x"}}}`, `{"response":{"usage":[]}}`} {
		if d, err := ReadResponse([]byte(none)); err != nil || d.Usage.IsReported() {
			t.Errorf("%s: %+v %v", none, d, err)
		}
	}
	tr, err := ReadTranscript([]byte(`{"item_id":"i","transcript":"words","usage":{"type":"duration","seconds":2.1}}`))
	if err != nil || tr.Item != "i" || tr.Text != "words" || tr.Usage.N(pricing.Seconds) != 3 {
		t.Errorf("%+v %v", tr, err)
	}
	tr, err = ReadTranscript([]byte(`{"item_id":"i","usage":{"type":"tokens","input_tokens":12,"output_tokens":3,"input_token_details":{"audio_tokens":12}}}`))
	if err != nil || tr.Usage.N(pricing.AudioIn) != 12 || tr.Usage.N(pricing.Output) != 3 {
		t.Errorf("%+v %v", tr, err)
	}
}

// No bytes make a reader fail, and no usage is below nothing.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"type":"response.done","response":{"id":"r","usage":{"input_tokens":-5,"input_token_details":{"audio_tokens":9}}}}`))
	f.Add([]byte(`{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"w"}}}}}`))
	f.Add([]byte(`{"type":"x","usage":{"type":"duration","seconds":1e300}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := new(Reader).Read(body)
		if err == nil {
			_, _ = e.Session()
			_, _ = e.ResponseRequest()
		}
		d, _ := ReadResponse(body)
		tr, _ := ReadTranscript(body)
		_, _ = ErrorOf(body)
		for _, u := range []pricing.Usage{d.Usage, tr.Usage} {
			for c := range pricing.NumClasses {
				if n := u.N(c); n < 0 || n > pricing.MaxUnits {
					t.Errorf("%s: %d", c, n)
				}
			}
		}
	})
}
