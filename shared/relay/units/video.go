package units

import (
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Video is what the answer to an order of a video says of it, in OpenAI's form.
type Video struct {
	Model, Size string
	Usage       pricing.Usage
}

var videoKeys = wire.NewKeySet("object", "model", "size", "seconds")

// ReadVideo reads the video of an answer; ok is false if it has none, or one that failed.
func ReadVideo(answer []byte) (video Video, ok bool) {
	var w wire.Walk
	if videoKeys.Walk(answer, &w) != nil {
		return video, false
	}
	text := func(i int) string {
		raw := w.Spans[i].Of(answer)
		if s, err := wire.ScanString(raw, ""); err == nil {
			return s
		}
		return string(raw)
	}
	seconds := number(text(3))
	if text(0) != "video" || seconds == 0 {
		return video, false
	}
	video.Model, video.Size = text(1), text(2)
	video.Usage.Set(pricing.Seconds, seconds)
	return video, true
}
