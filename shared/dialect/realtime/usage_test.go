package realtime

import (
	"testing"

	"gateway/shared/pricing"
)

// What a response of a session reports is charged as its provider bills it.
func TestUsageOfResponsesInMoney(t *testing.T) {
	t.Parallel()
	// gpt-realtime, in nano-dollars a token.
	const textIn, textCached, textOut, audioIn, audioCached, audioOut, imageIn = 4000, 400, 16_000, 32_000, 400, 64_000, 5000
	price, ok := pricing.Default().Price("openai", "gpt-realtime", pricing.Options{})
	if !ok {
		t.Fatal("gpt-realtime has no price")
	}
	for usage, want := range map[string]int64{
		`{"input_tokens":10,"output_tokens":5,"total_tokens":15}`: 10*textIn + 5*textOut,
		`{"input_tokens":100,"output_tokens":10,"total_tokens":110,"input_token_details":{"text_tokens":20,"audio_tokens":80,"cached_tokens":40,"cached_tokens_details":{"text_tokens":10,"audio_tokens":30}},"output_token_details":{"text_tokens":4,"audio_tokens":6}}`: 10*textIn + 10*textCached + 50*audioIn + 30*audioCached + 4*textOut + 6*audioOut,
		`{"input_tokens":100,"output_tokens":10,"input_token_details":{"text_tokens":20,"audio_tokens":80,"cached_tokens":15},"output_token_details":{"text_tokens":4,"audio_tokens":6}}`:                                                                                 5*textIn + 15*textCached + 80*audioIn + 4*textOut + 6*audioOut,
		`{"input_tokens":50,"output_tokens":2,"input_token_details":{"text_tokens":10,"image_tokens":40}}`:                                                                                                                                                                10*textIn + 40*imageIn + 2*textOut,
		`{"input_tokens":10,"output_tokens":5,"input_token_details":null,"output_token_details":{}}`:                                                                                                                                                                      10*textIn + 5*textOut,
		`{"input_tokens":"100","output_tokens":"10","input_token_details":{"text_tokens":"20","audio_tokens":"80"},"output_token_details":{"text_tokens":"4","audio_tokens":6.0}}`:                                                                                        20*textIn + 80*audioIn + 4*textOut + 6*audioOut,
		`{"input_tokens":10,"output_tokens":null}`: 10 * textIn,
		`{"input_tokens":10}`:                      10 * textIn,
	} {
		d, err := ReadResponse([]byte(`{"type":"response.done","response":{"id":"r","status":"completed","usage":` + usage + `}}`))
		if got := int64(price.Cost(d.Usage)); err != nil || got != want || !price.Covers(d.Usage) {
			t.Errorf("%s: %d %v, want %d: %+v", usage, got, err, want, d.Usage)
		}
	}
	for _, usage := range []string{`null`, `{}`, `{"total_tokens":5}`, `{"input_tokens":"x","output_tokens":5}`, `{"input_tokens":1e300,"output_tokens":5}`, `[]`, `7`} {
		d, err := ReadResponse([]byte(`{"type":"response.done","response":{"id":"r","status":"completed","usage":` + usage + `}}`))
		if err != nil || d.Usage.IsReported() {
			t.Errorf("%s: %+v %v", usage, d.Usage, err)
		}
	}
}
