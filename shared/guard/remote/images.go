package remote

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/guard/judge"
	"gateway/shared/wire"
)

// maxImages is the number of image addresses in one request.
const maxImages = 100

type imagesData struct {
	Inlined     int           `json:"inlined"`
	Failed      []imageFailed `json:"failed,omitempty"`
	Explanation string        `json:"explanation"`
}

// imageFailed reports an image that stays an address. It does not contain the address, which
// may contain a signature.
type imageFailed struct {
	Image  int    `json:"image"` // from 1, in the order of the request
	Reason string `json:"reason"`
}

// inlineImages replaces image addresses by the images, for providers that do not fetch them. If
// an image cannot be fetched, its address stays and the check has an error.
func inlineImages(p map[string]json.RawMessage) judge.Func {
	providers := judge.Get(p, "providers", []string(nil))
	most := judge.Get(p, "maxSizeBytes", int64(20<<20))
	patience := time.Duration(min(judge.Get(p, "timeoutMs", int64(30_000)), 60_000)) * time.Millisecond
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		d := &imagesData{Explanation: "The request names no images by address"}
		if len(providers) > 0 && !slices.Contains(providers, s.Provider) {
			d.Explanation = "The check is not for this provider"
			return judge.Verdict{Pass: true, Data: d}
		}
		found := imagesIn(s.Request)
		switch {
		case len(found) == 0:
			return judge.Verdict{Pass: true, Data: d}
		case len(found) > maxImages:
			return judge.Failed("Error", "The request names more than 100 images by address")
		case s.Fetch == nil:
			return judge.Failed("Error", "No host can be called")
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		got := fetchAll(ctx, s.Fetch, found, most)
		var edits []wire.Edit
		for i, at := range found {
			g := got[at.address]
			if g.err != nil {
				d.Failed = append(d.Failed, imageFailed{i + 1, g.err.Error()})
				continue
			}
			d.Inlined++
			edits = append(edits, wire.Replace(at.span, at.with(g)))
		}
		d.Explanation = "The images were put into the request"
		v := judge.Verdict{Pass: true, Data: d}
		if len(edits) > 0 {
			v.Body = wire.Splice(nil, s.Request, edits...)
		}
		if len(d.Failed) > 0 {
			d.Explanation = "Some images could not be put into the request"
			v.Pass, v.Err = false, &judge.Failure{Name: "ImageError", Message: d.Explanation}
		}
		return v
	}
}

// fetched is an image or an error.
type fetched struct {
	mime, data string
	err        error
}

func fetchAll(ctx context.Context, fetch judge.Fetch, found []imageAt, most int64) map[string]*fetched {
	got := make(map[string]*fetched, len(found))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for _, at := range found {
		if got[at.address] != nil {
			continue
		}
		g := new(fetched)
		got[at.address] = g
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			g.mime, g.data, g.err = fetch(ctx, at.address, most)
		})
	}
	wait.Wait()
	return got
}

// imageAt is an image address in a body: a string or, in messages, a source object.
type imageAt struct {
	address string
	span    wire.Span
	source  bool
}

// with returns the image in the form of this position.
func (at *imageAt) with(g *fetched) []byte {
	if at.source {
		return append(wire.AppendJSONString(append(wire.AppendJSONString([]byte(`{"type":"base64","media_type":`), g.mime), `,"data":`...), g.data), '}')
	}
	return wire.AppendJSONString(nil, "data:"+g.mime+";base64,"+g.data)
}

// imagesIn finds the images of a conversation that are given by address.
func imagesIn(body []byte) []imageAt {
	w := imageWalk{d: wire.NewDecoder(body), body: body}
	for key := range w.d.Object {
		if k := string(key); k == "messages" || k == "input" {
			w.value()
		}
	}
	if w.d.Err() != nil {
		return nil
	}
	return w.found
}

type imageWalk struct {
	d     *wire.Decoder
	body  []byte
	found []imageAt
}

// value traverses everything that may contain parts. Arguments of tools are not parts.
func (w *imageWalk) value() {
	switch w.d.Kind() {
	case wire.KindArray:
		for range w.d.Array {
			w.value()
		}
	case wire.KindObject:
		for key := range w.d.Object {
			switch string(key) {
			case "content", "output":
				w.value()
			case "image_url":
				w.image()
			case "source":
				w.source()
			}
		}
	}
}

// image reads the address of an image: a string or an object with url.
func (w *imageWalk) image() {
	switch w.d.Kind() {
	case wire.KindString:
		w.add(w.d.Raw())
	case wire.KindObject:
		for key := range w.d.Object {
			if string(key) == "url" && w.d.Kind() == wire.KindString {
				w.add(w.d.Raw())
			}
		}
	}
}

func (w *imageWalk) add(raw []byte) {
	if address := string(wire.AppendUnquoted(nil, raw)); isWeb(address) {
		end := w.d.Offset()
		w.found = append(w.found, imageAt{address: address, span: wire.Span{Start: end - len(raw), End: end}})
	}
}

func (w *imageWalk) source() {
	raw := w.d.Raw()
	var s struct{ Type, URL string }
	if wire.KindOf(raw) == wire.KindObject && json.Unmarshal(raw, &s) == nil && s.Type == "url" && isWeb(s.URL) {
		end := w.d.Offset()
		w.found = append(w.found, imageAt{address: s.URL, span: wire.Span{Start: end - len(raw), End: end}, source: true})
	}
}

func isWeb(s string) bool {
	return len(s) > 8 && (strings.EqualFold(s[:8], "https://") || strings.EqualFold(s[:7], "http://"))
}
