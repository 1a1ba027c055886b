package realtime

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/pricing"
)

// ConnectionLost is the reason of a response that was cut by the end of its session.
const ConnectionLost = "connection_lost"

// Done is how a response ended.
type Done struct {
	ID     string
	Status string // completed, cancelled, failed, incomplete
	Reason string // why it is not complete; ConnectionLost: its session ended
	Usage  pricing.Usage

	Model  string // the model that made it; "": the session's
	Served chat.PriceFacts
}

// count is a number of tokens, which hosts also write as a string.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil || math.Abs(n) > pricing.MaxUnits {
		return errors.New("realtime: no number of tokens")
	}
	*c = count(n)
	return nil
}

type byKind struct {
	Text  *count `json:"text_tokens"`
	Audio count  `json:"audio_tokens"`
	Image count  `json:"image_tokens"`
}

// ReadResponse reads the response of an event: its id from response.created, its end from
// response.done.
func ReadResponse(body []byte) (d Done, err error) {
	var e struct {
		Response struct {
			ID      string `json:"id"`
			Status  string `json:"status"`
			Details struct {
				Reason string `json:"reason"`
			} `json:"status_details"`
			Usage json.RawMessage `json:"usage"`
		} `json:"response"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return d, unreadable("response", err)
	}
	r := &e.Response
	if len(r.ID) > maxName {
		r.ID = r.ID[:maxName]
	}
	return Done{ID: r.ID, Status: r.Status, Reason: r.Details.Reason, Usage: usageOf(r.Usage)}, nil
}

// usageOf reads the usage of a response. In any other shape it is unknown.
func usageOf(raw json.RawMessage) (u pricing.Usage) {
	var in struct {
		Input   *count `json:"input_tokens"`
		Output  *count `json:"output_tokens"`
		OfInput struct {
			byKind
			Cached count   `json:"cached_tokens"`
			Kinds  *byKind `json:"cached_tokens_details"`
		} `json:"input_token_details"`
		OfOutput byKind `json:"output_token_details"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil || in.Input == nil && in.Output == nil {
		return u
	}
	cached := byKind{}
	if in.OfInput.Kinds != nil {
		cached = *in.OfInput.Kinds
	}
	text := cached.text(in.OfInput.Cached)
	set(&u, pricing.CacheRead, text)
	set(&u, pricing.AudioCacheRead, cached.Audio)
	set(&u, pricing.ImageCacheRead, cached.Image)
	audio, image := in.OfInput.Audio, in.OfInput.Image
	set(&u, pricing.AudioIn, audio-cached.Audio)
	set(&u, pricing.ImageIn, image-cached.Image)
	u.Set(pricing.Input, int64(max(value(in.Input)-audio-image-text, 0)))
	set(&u, pricing.AudioOut, in.OfOutput.Audio)
	u.Set(pricing.Output, int64(max(value(in.Output)-in.OfOutput.Audio, 0)))
	return u.Bounded()
}

// text is the number of text tokens among so many: the rest, if it is not given.
func (k *byKind) text(total count) count {
	if k.Text != nil {
		return *k.Text
	}
	return total - k.Audio - k.Image
}

func set(u *pricing.Usage, c pricing.Class, n count) {
	if n > 0 {
		u.Set(c, int64(n))
	}
}

func value(n *count) count {
	if n == nil {
		return 0
	}
	return *n
}

// Transcript is the transcribed input, and what transcribing it used.
type Transcript struct {
	Item  string
	Text  string
	Usage pricing.Usage
}

// ReadTranscript reads a Transcribed event.
func ReadTranscript(body []byte) (t Transcript, err error) {
	var e struct {
		Item  string          `json:"item_id"`
		Text  string          `json:"transcript"`
		Usage json.RawMessage `json:"usage"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return t, unreadable("transcript", err)
	}
	if len(e.Item) > maxName {
		e.Item = e.Item[:maxName]
	}
	t = Transcript{Item: e.Item, Text: e.Text}
	var decoded struct {
		Type    string  `json:"type"`
		Seconds float64 `json:"seconds"`
	}
	if len(e.Usage) == 0 || json.Unmarshal(e.Usage, &decoded) != nil {
		return t, nil
	}
	if decoded.Type == "duration" {
		if s := math.Ceil(decoded.Seconds); s >= 0 && s <= pricing.MaxUnits {
			t.Usage.Set(pricing.Seconds, int64(s))
		}
		return t, nil
	}
	t.Usage = usageOf(e.Usage)
	return t, nil
}
