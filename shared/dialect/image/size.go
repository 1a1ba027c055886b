package image

import (
	"fmt"
	"math"

	"gateway/shared/chat"
)

// shape is a form of images that a model makes.
type shape struct{ width, height int64 }

func (s shape) ratio() string { return fmt.Sprintf("%d:%d", s.width, s.height) }

// off is how much two shapes differ: 0 for the same proportions.
func (s shape) off(width, height int64) float64 {
	return math.Abs(math.Log(float64(width) / float64(height) * float64(s.height) / float64(s.width)))
}

// nearest returns the shape of list with the nearest proportions; list is not empty.
func nearest(list []shape, width, height int64) shape {
	best := list[0]
	for _, s := range list[1:] {
		if s.off(width, height) < best.off(width, height)-1e-9 {
			best = s
		}
	}
	return best
}

// within returns the width and height with the nearest proportions and sides from low to
// high in steps of step.
func (r *request) within(low, high, step int64, loss *chat.Loss) (width, height int64) {
	w, h := float64(r.width), float64(r.height)
	if m := max(w, h); m > float64(high) {
		w, h = w*float64(high)/m, h*float64(high)/m
	}
	if m := min(w, h); m < float64(low) {
		w, h = w*float64(low)/m, h*float64(low)/m
	}
	round := func(v float64) int64 {
		return min(max(int64(math.Round(v/float64(step)))*step, low), high)
	}
	width, height = round(w), round(h)
	r.made(width, height, loss)
	return width, height
}

// made reports a size other than the requested one.
func (r *request) made(width, height int64, loss *chat.Loss) {
	if width != r.width || height != r.height {
		loss.Add(r.sized, fmt.Sprintf("made as %dx%d", width, height))
	}
}

// proportions is the aspect ratio to ask for: the client's own, or the nearest of list to
// the size; "" leaves it to the model. Only 1024x1024 needs no report, because it is what
// the models make of 1:1.
func (r *request) proportions(list []shape, loss *chat.Loss) string {
	switch {
	case r.ratio != "":
		if r.sized != "" {
			loss.Add(r.sized, "the aspect ratio is set beside it")
		}
		return r.ratio
	case r.sized == "":
		return ""
	}
	best := nearest(list, r.width, r.height)
	if r.width != 1024 || r.height != 1024 {
		loss.Add(r.sized, "made as "+best.ratio()+", in the provider's own size")
	}
	return best.ratio()
}
