package upstream_test

import (
	"encoding/json"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/ai21"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/bytez"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/oci"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/palm"
	"gateway/shared/dialect/reka"
	"gateway/shared/dialect/triton"
	"gateway/shared/dialect/upstream"
	"gateway/shared/dialect/workersai"
	"gateway/shared/testkit/golden"
	"gateway/shared/wire"
)

// wires are the dialects that only providers speak.
var wires = []chat.Provider{
	cohere.Generate{}, ai21.Complete{}, bytez.Chat{}, oci.Chat{}, palm.Chat{}, palm.Text{}, reka.Chat{}, triton.Generate{}, workersai.Run{}, bedrock.Invoke{},
}

// FuzzWireRequest sends chats and text completions to every wire: rejections below
// 500, JSON, and no field of the request vanishes unreported.
func FuzzWireRequest(f *testing.F) {
	golden.Seeds(f, "openai-*", "request.json")
	golden.Seeds(f, "completions-*", "request.json")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, client := range []chat.Client{openai.Chat{}, openai.Completions{}} {
			if !golden.Admitted(t, client, body) {
				continue
			}
			r, err := client.DecodeRequest(body)
			if golden.NotFault(t, err) {
				continue
			}
			for _, w := range wires {
				for _, model := range []string{r.Model, "cohere.command-r"} {
					r.Model = model
					var loss chat.Loss
					up, err := w.EncodeRequest(nil, r, &chat.Traits{}, &loss)
					if golden.NotFault(t, err) {
						continue
					}
					if !json.Valid(up) {
						t.Fatalf("%s: not JSON: %q", w.Name(), up)
					}
					requireForwarded(t, w, r, up, &loss)
				}
			}
		}
	})
}

// requireForwarded requires that everything in the client's request besides texts is in the body or in
// the report. A wire writes each of these fields under its own name, so it is enough that
// a body without loss is longer with the field.
func requireForwarded(t *testing.T, w chat.Provider, r *chat.Request, up []byte, loss *chat.Loss) {
	t.Helper()
	lost := map[string]bool{}
	for _, e := range loss.Entries {
		lost[e.Path] = true
	}
	for name, set := range map[string]bool{"seed": r.Seed.Set, "top_k": r.TopK.Set, "temperature": r.Temperature.Set, "frequency_penalty": r.FrequencyPenalty.Set} {
		if !set || lost[name] || loss.More > 0 {
			continue
		}
		without := *r
		switch name {
		case "seed":
			without.Seed.Set = false
		case "top_k":
			without.TopK.Set = false
		case "temperature":
			without.Temperature.Set = false
		case "frequency_penalty":
			without.FrequencyPenalty.Set = false
		}
		again, err := w.EncodeRequest(nil, &without, &chat.Traits{}, &chat.Loss{})
		if err == nil && len(again) >= len(up) {
			t.Fatalf("%s: %s vanished: %s", w.Name(), name, up)
		}
	}
}

// FuzzWireAnswer returns any bytes to every wire as a response, as an error and as a
// stream: what comes out for a client is well formed.
func FuzzWireAnswer(f *testing.F) {
	for _, w := range []string{"generate", "ai21", "bytez", "oci", "palm", "palmtext", "reka", "triton", "workersai", "invoke"} {
		golden.Seeds(f, "*-"+w, "upstream_response.*")
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o := &chat.Options{ID: "i", Model: "m"}
		for _, w := range wires {
			pass := upstream.Passer(w)
			if r := golden.ReadAnswer(t, w, body, &chat.Traits{}); r != nil && !json.Valid(openai.Chat{}.EncodeResponse(nil, r, o)) {
				t.Fatalf("%s: not JSON", w.Name())
			}
			dec := w.NewStreamDecoder(&chat.Traits{})
			var parser chat.EventParser = new(wire.SSEParser)
			if framed, ok := dec.(chat.Framed); ok {
				parser = framed.Parser()
			}
			out, _ := golden.Reencode(dec, openai.Chat{}, o, parser, body)
			golden.WellFormed(t, openai.Chat{}, out)
			filter := pass.NewStreamFilter(&chat.FilterOptions{})
			if _, err := filter.Feed(append([]byte(nil), body...)); err == nil {
				filter.End()
			}
		}
	})
}
