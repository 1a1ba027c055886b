package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/imagesize"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// operationUsage is what responses of operations report, in all spellings.
type operationUsage struct {
	Type    string  `json:"type"`
	Input   *int64  `json:"input_tokens"`
	Output  *int64  `json:"output_tokens"`
	Prompt  *int64  `json:"prompt_tokens"`
	Total   *int64  `json:"total_tokens"`
	Seconds *number `json:"seconds"`
	Units   *int64  `json:"search_units"`
	Details struct {
		Text   int64 `json:"text_tokens"`
		Image  int64 `json:"image_tokens"`
		Audio  int64 `json:"audio_tokens"`
		Cached int64 `json:"cached_tokens"`
	} `json:"input_token_details"`
	OtherDetails struct {
		Text  int64 `json:"text_tokens"`
		Image int64 `json:"image_tokens"`
	} `json:"input_tokens_details"`
}

// number is a number, or one that is written as text.
type number float64

// UnmarshalJSON implements json.Unmarshaler. Anything but a number counts as absent.
func (n *number) UnmarshalJSON(raw []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil {
		v = math.NaN()
	}
	*n = number(v)
	return nil
}

// ceil is the number of units, with a started unit counting as one.
func (n *number) ceil() (int64, bool) {
	if n == nil || !(*n >= 0 && *n < 1e12) {
		return 0, false
	}
	return int64(math.Ceil(float64(*n))), true
}

// imageData is the size of an image in base64.
type imageData struct {
	pixels int64
	known  bool
}

// UnmarshalJSON implements json.Unmarshaler. It reads the header of the image alone.
func (i *imageData) UnmarshalJSON(raw []byte) error {
	if len(raw) > 2 && raw[0] == '"' {
		i.pixels, i.known = imagesize.PixelsOfBase64(string(bytes.ReplaceAll(raw[1:min(len(raw)-1, maxImageHeader)], []byte(`\/`), []byte("/"))))
	}
	return nil
}

// maxImageHeader bounds how much of an image in base64 is read.
const maxImageHeader = 160 << 10

// measure adds the sizes of the images with readable headers.
func (a *operationResponse) measure(m *chat.Meter) {
	add := func(i imageData) {
		if i.known {
			m.Sized, m.Pixels = m.Sized+1, m.Pixels+i.pixels
		}
	}
	add(a.Image)
	for _, raw := range a.Data {
		var one struct {
			Image imageData `json:"b64_json"`
		}
		if json.Unmarshal(raw, &one) == nil {
			add(one.Image)
		}
	}
}

// operationResponse is what accounting need of a response, or of one event.
type operationResponse struct {
	Type     string            `json:"type"`
	Model    string            `json:"model"`
	Data     []json.RawMessage `json:"data"`
	Image    imageData         `json:"b64_json"` // of an event
	Duration *number           `json:"duration"`
	Usage    *operationUsage   `json:"usage"`
	SVG      *struct {
		operationUsage
		Model string `json:"model"`
	} `json:"svg_usage"`
	Pages *struct {
		Processed *int64 `json:"pages_processed"`
	} `json:"usage_info"`
	Meta *struct {
		Billed struct {
			Units *number `json:"search_units"`
		} `json:"billed_units"`
	} `json:"meta"`
}

// readOperation reads a response. A response that is not a JSON object is an error of the
// provider. An empty response is no error: it was forwarded unread.
func readOperation(body []byte) (a operationResponse, m chat.Meter) {
	m.Complete, m.Started = true, true
	if len(body) == 0 {
		return a, m
	}
	var mistyped *json.UnmarshalTypeError // a field of another type reports nothing
	if err := json.Unmarshal(body, &a); err != nil && !errors.As(err, &mistyped) || wire.KindOf(body[min(skipSpace(body, 0), len(body)-1):]) != wire.KindObject {
		m.Err = fault.New(fault.InvalidProviderResponse, "", "The answer is not a JSON object")
	}
	m.Model = a.Model
	return a, m
}

// MeterModeration reads a response of /moderations, which reports no usage.
func MeterModeration(body []byte) chat.Meter {
	_, m := readOperation(body)
	return m
}

// MeterImages reads a response of the image operations, or an event of their stream. It
// counts images, and tokens where they are reported.
func MeterImages(body []byte) chat.Meter {
	a, m := readOperation(body)
	if n := len(a.Data); n > 0 {
		m.Usage.Set(pricing.Images, int64(n))
	} else if a.Usage != nil && a.Type != "" {
		m.Usage.Set(pricing.Images, 1) // the event of one complete image
	}
	a.measure(&m)
	if u := a.Usage; u != nil && u.Input != nil {
		image := max(u.OtherDetails.Image, u.Details.Image)
		m.Usage.Set(pricing.Input, max(*u.Input-image, 0))
		m.Usage.Set(pricing.ImageIn, image)
		if u.Output != nil {
			m.Usage.Set(pricing.ImageOut, *u.Output)
		}
	}
	if v := a.SVG; v != nil && v.Model != "" && v.Input != nil && v.Output != nil {
		line := chat.Line{Model: v.Model}
		line.Usage.Set(pricing.Input, *v.Input)
		line.Usage.Set(pricing.Output, *v.Output)
		m.Extra = append(m.Extra, line)
	}
	return m
}

// MeterSpeech reads an event of a stream of speech.
func MeterSpeech(body []byte) chat.Meter {
	a, m := readOperation(body)
	if u := a.Usage; u != nil && u.Input != nil && u.Output != nil {
		m.Usage.Set(pricing.Input, *u.Input)
		m.Usage.Set(pricing.AudioOut, *u.Output)
	}
	return m
}

// MeterTranscription reads a response of transcriptions and translations, or an
// event of their stream: tokens, or the length of the sound in seconds.
func MeterTranscription(body []byte) chat.Meter {
	a, m := readOperation(body)
	if seconds, ok := a.Duration.ceil(); ok {
		m.Usage.Set(pricing.Seconds, seconds)
	}
	u := a.Usage
	if u == nil {
		return m
	}
	if seconds, ok := u.Seconds.ceil(); ok {
		m.Usage.Set(pricing.Seconds, seconds)
	}
	if u.Input != nil && u.Output != nil {
		audio := min(u.Details.Audio, *u.Input)
		m.Usage.Set(pricing.Input, *u.Input-audio)
		m.Usage.Set(pricing.AudioIn, audio)
		m.Usage.Set(pricing.Output, *u.Output)
	}
	return m
}

// MeterRerank reads a response of /rerank: search units or tokens.
func MeterRerank(body []byte) chat.Meter {
	a, m := readOperation(body)
	if a.Meta != nil {
		if n, ok := a.Meta.Billed.Units.ceil(); ok {
			m.Usage.Set(pricing.Pages, n)
		}
	}
	if u := a.Usage; u != nil {
		if u.Units != nil {
			m.Usage.Set(pricing.Pages, *u.Units)
		}
		for _, n := range []*int64{u.Total, u.Prompt, u.Input} {
			if n != nil {
				m.Usage.Set(pricing.Input, *n)
				break
			}
		}
	}
	return m
}

// MeterOCR reads a response of /ocr: pages.
func MeterOCR(body []byte) chat.Meter {
	a, m := readOperation(body)
	if a.Pages != nil && a.Pages.Processed != nil {
		m.Usage.Set(pricing.Pages, *a.Pages.Processed)
	}
	return m
}
