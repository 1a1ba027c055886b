package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

type meter = chat.Meter

var images, speech, transcription, ranked, pages = MeterImages, MeterSpeech, MeterTranscription, MeterRerank, MeterOCR

func TestOperationBodiesAreWithinTheirBounds(t *testing.T) {
	for _, c := range []struct {
		check       func([]byte) error
		good        string
		bad, params []string
	}{
		{CheckModeration, `{"input":"x"}`, []string{`{}`, `{"input":null}`, `{"input":{}}`, `{"input":[ ]}`, `{"input":"x","model":7}`, `{"input":"x","input":"y"}`, `{"input":["x",1]}`}, []string{"input", "input", "input", "input", "model", "input", "input[1]"}},
		{CheckModeration, `{"input":[{"type":"text","text":"x"}],"model":null}`, nil, nil},
		{CheckImage, `{"prompt":"x","n":10,"size":"auto","partial_images":3}`, []string{`{"prompt":7}`, `{"prompt":"x","n":1.5}`, `{"prompt":"x","output_compression":"much"}`}, []string{"prompt", "n", "output_compression"}},
		{CheckSpeech, `{"input":"` + strings.Repeat("é", 4096) + `","voice":{"id":"v"},"speed":0.25}`, []string{`{"input":"","voice":"a"}`, `{"input":"x","voice":""}`, `{"input":"x","voice":"a","stream_format":7}`}, []string{"input", "voice", "stream_format"}},
		{CheckBatch, `{"input_file_id":"f","endpoint":"/v1/x","completion_window":"24h","metadata":{"k":"v"}}`, []string{`{"input_file_id":"f","endpoint":"/x","completion_window":"24h","metadata":{"k":1}}`, `{"input_file_id":1}`}, []string{"metadata.k", "input_file_id"}},
		{CheckFineTune, `{"training_file":"f","hyperparameters":{"n_epochs":"auto"},"suffix":"s"}`, []string{`{"training_file":"f","suffix":7}`, `{"training_file":"f","integrations":{}}`}, []string{"suffix", "integrations"}},
		{CheckRerank, `{"query":"q","documents":["a",{"text":"b"}],"top_n":1}`, []string{`{"query":"q","documents":[1]}`, `{"query":"","documents":["a"]}`, `{"query":"q","documents":"a"}`, `{"query":"q","documents":["a",{"text":5}]}`}, []string{"documents[0]", "query", "documents", "documents[1].text"}},
		{CheckOCR, `{"document":{"type":"document_url","document_url":"https://a.example/b.pdf"}}`, []string{`{"document":"x"}`, `{"document":{"type":1}}`, `{"document":{"type":"document_url"}}`, `{"document":{"type":"image_url","image_url":5}}`}, []string{"document", "document.type", "document.document_url", "document.image_url"}},
		{CheckOCR, `{"document":{"type":"file","file_id":"f"}}`, nil, nil},
		// What no specification bounds is the provider's to reject.
		{CheckImage, `{"prompt":"x","n":11,"response_format":"webp","partial_images":4,"output_compression":101}`, nil, nil},
		{CheckSpeech, `{"input":"` + strings.Repeat("é", 5000) + `","voice":"v","speed":5,"stream_format":"other"}`, nil, nil},
		{CheckFineTune, `{"training_file":"f","suffix":"` + strings.Repeat("s", 65) + `","hyperparameters":{"n_epochs":60},"integrations":[{},{},{},{},{},{}],"seed":-1}`, nil, nil},
	} {
		if err := c.check([]byte(c.good)); err != nil {
			t.Errorf("%s: %v", c.good, err)
		}
		for i, body := range c.bad {
			err := c.check([]byte(body))
			if f := fault.From(err); err == nil || f.Status() != 400 || f.Field != c.params[i] {
				t.Errorf("%.120s: %+v, want 400 naming %s", body, err, c.params[i])
			}
		}
	}
}

func TestOperationAnswersAreMetered(t *testing.T) {
	for _, c := range []struct {
		meter  func([]byte) meter
		answer string
		want   map[pricing.Class]int64
	}{
		{images, `{"created":1,"data":[{"url":"a"},{"url":"b"}]}`, map[pricing.Class]int64{pricing.Images: 2}},
		{images, `{"data":[{}],"usage":{"input_tokens":60,"output_tokens":1000,"input_tokens_details":{"text_tokens":10,"image_tokens":50}}}`, map[pricing.Class]int64{pricing.Images: 1, pricing.Input: 10, pricing.ImageIn: 50, pricing.ImageOut: 1000}},
		{images, `{"type":"image_generation.partial_image","b64_json":"x"}`, nil},
		{images, `{"type":"image_generation.completed","usage":{"input_tokens":8,"output_tokens":100}}`, map[pricing.Class]int64{pricing.Images: 1, pricing.Input: 8, pricing.ImageIn: 0, pricing.ImageOut: 100}},
		{speech, `{"type":"speech.audio.done","usage":{"input_tokens":3,"output_tokens":9}}`, map[pricing.Class]int64{pricing.Input: 3, pricing.AudioOut: 9}},
		{speech, ``, nil},
		{transcription, `{"text":"x","usage":{"type":"duration","seconds":3.2}}`, map[pricing.Class]int64{pricing.Seconds: 4}},
		{transcription, `{"text":"x","duration":"12.5"}`, map[pricing.Class]int64{pricing.Seconds: 13}},
		{transcription, `{"text":"x","duration":"long"}`, nil},
		{transcription, `{"text":"x","duration":-1}`, nil},
		{transcription, `{"text":"x","duration":12.04}`, map[pricing.Class]int64{pricing.Seconds: 13}},
		{transcription, `{"text":"x","usage":{"type":"tokens","input_tokens":20,"input_token_details":{"audio_tokens":15,"text_tokens":5},"output_tokens":7}}`, map[pricing.Class]int64{pricing.Input: 5, pricing.AudioIn: 15, pricing.Output: 7}},
		{ranked, `{"results":[],"usage":{"search_units":2}}`, map[pricing.Class]int64{pricing.Pages: 2}},
		{ranked, `{"results":[],"meta":{"billed_units":{"search_units":1.0}}}`, map[pricing.Class]int64{pricing.Pages: 1}},
		{ranked, `{"results":[],"usage":{"total_tokens":30}}`, map[pricing.Class]int64{pricing.Input: 30}},
		{pages, `{"pages":[],"model":"m","usage_info":{"pages_processed":3}}`, map[pricing.Class]int64{pricing.Pages: 3}},
	} {
		got := c.meter([]byte(c.answer))
		if got.Err != nil {
			t.Errorf("%s: %v", c.answer, got.Err)
		}
		for class := range pricing.NumClasses {
			n, ok := got.Usage.Get(class)
			if want, wanted := c.want[class]; ok != wanted || n != want {
				t.Errorf("%s: %s is %d (%v), want %d (%v)", c.answer, class, n, ok, want, wanted)
			}
		}
	}
	for _, broken := range []string{`[]`, `"x"`, `not JSON`, ` `} {
		if MeterImages([]byte(broken)).Err == nil {
			t.Errorf("%q is taken for an answer", broken)
		}
	}
}

// FuzzOperations: neither checks nor meters fall over, and what is metered is
// never negative.
func FuzzOperations(f *testing.F) {
	for _, s := range []string{`{"input":"x"}`, `{"data":[{}],"usage":{"input_tokens":-5,"input_token_details":{"audio_tokens":9}}}`, `{"duration":1e300}`, `{"documents":[{}],"query":"q"}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, check := range []func([]byte) error{CheckModeration, CheckImage, CheckSpeech, CheckBatch, CheckFineTune, CheckRerank, CheckOCR} {
			if err := check(body); err == nil && !json.Valid(body) {
				t.Errorf("%q is taken", body)
			} else if err != nil && fault.From(err).Status() != 400 {
				t.Errorf("%q: %v", body, err)
			}
		}
		for _, meter := range []func([]byte) meter{images, speech, transcription, ranked, pages} {
			meter(body)
		}
	})
}
