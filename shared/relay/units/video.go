package units

import (
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Film is what the answer to an order of a film says of it, in OpenAI's form.
type Film struct {
	Model, Size string
	Usage       pricing.Usage
}

var filmKeys = wire.NewKeySet("object", "model", "size", "seconds")

// ReadFilm reads the film of an answer; ok is false if it has none, or one that failed.
func ReadFilm(answer []byte) (film Film, ok bool) {
	var w wire.Walk
	if filmKeys.Walk(answer, &w) != nil {
		return film, false
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
		return film, false
	}
	film.Model, film.Size = text(1), text(2)
	film.Usage.Set(pricing.Seconds, seconds)
	return film, true
}
