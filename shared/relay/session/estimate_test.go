package session

import (
	"strings"
	"testing"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// booked is a turn that records its charge.
type booked struct{ usage pricing.Usage }

func (b *booked) End(d *realtime.Done, _ []byte) { b.usage = d.Usage }
func (b *booked) Drop(*fault.Fault)              {}

// Unreported usage of a response is estimated with its text, audio and images in separate
// classes, input and output: for a lost connection, an aborted session, and a response.done
// without usage.
func TestEstimatesKeepMediaApart(t *testing.T) {
	t.Parallel()
	audio := strings.Repeat("A", 32_000) // ten audio tokens
	events := []string{
		`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + strings.Repeat("x", 400) + `"}]}}`,
		`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"` + audio + `"},{"type":"input_image","image_url":"data:image/png;base64,` + audio + `"}]}}`,
		`{"type":"input_audio_buffer.append","audio":"` + audio + `"}`,
	}
	read := func(t *testing.T, text string) *realtime.Event {
		e, err := new(realtime.Reader).Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &e
	}
	for name, ends := range map[string]func(*turns){
		"the connection is lost": func(of *turns) { of.leave() },
		"done without usage": func(of *turns) {
			d := realtime.Done{ID: "r2", Status: "completed"}
			turn, _ := of.done(&d)
			turn.End(&d, nil)
		},
		"cut off, without usage": func(of *turns) {
			d := realtime.Done{ID: "r2", Status: "cancelled"}
			turn, _ := of.done(&d)
			turn.End(&d, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var of turns
			var before pricing.Usage // the history: 30 text, 50 audio
			before.Set(pricing.Input, 10)
			before.Set(pricing.CacheRead, 5)
			before.Set(pricing.Output, 15)
			before.Set(pricing.AudioIn, 20)
			before.Set(pricing.AudioOut, 30)
			of.open("r1", new(booked))
			of.done(&realtime.Done{ID: "r1", Status: "completed", Usage: before})
			for _, text := range events {
				of.countInput(read(t, text).Added())
			}
			turn := new(booked)
			of.open("r2", turn)
			for _, text := range []string{
				`{"type":"response.output_audio.delta","response_id":"r2","delta":"` + strings.Repeat("A", 64_000-2) + `"}`,
				`{"type":"response.output_audio_transcript.delta","response_id":"r2","delta":"` + strings.Repeat("x", 38) + `"}`,
			} {
				e := read(t, text)
				of.made(e.Response, e.Delta, e.Audio())
			}
			ends(&of)
			u := turn.usage
			in, out := u.N(pricing.Input), u.N(pricing.Output)
			if audioIn := u.N(pricing.AudioIn); !u.Estimated || in < 130 || in > 230 || audioIn < 70 || audioIn > 72 || u.N(pricing.ImageIn) != usualImage || u.N(pricing.AudioOut) != 20 || out != 10 {
				t.Errorf("text %d in, %d out; audio %d in, %d out; images %d", in, out, audioIn, u.N(pricing.AudioOut), u.N(pricing.ImageIn))
			}
			if bound := of.input(); name == "the connection is lost" && bound < 80+400+80+4000 {
				t.Errorf("the next response may read %d tokens", bound)
			}
		})
	}
}
