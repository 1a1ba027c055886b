package ownership

import (
	"bytes"
	"slices"

	"gateway/shared/dialect/reference"
	"gateway/shared/wire"
)

var (
	containerWord = []byte(`"container"`)
	containerKeys = wire.NewKeySet("container", "message", "delta")
	containerID   = wire.NewKeySet("id")
)

// Containers returns the ids of the containers in a Messages response, or in one event of it:
// the provider creates one for a conversation that runs code.
func Containers(answer []byte) (ids []string) { return containers(answer, true) }

// containers also searches the fields of an event if it is outermost.
func containers(answer []byte, outermost bool) (ids []string) {
	var w, of wire.Walk
	if !bytes.Contains(answer, containerWord) || containerKeys.Walk(answer, &w) != nil {
		return nil
	}
	for i, span := range w.Spans {
		if !span.Present(answer) || wire.KindOf(span.Of(answer)) != wire.KindObject {
			continue
		}
		inner := span.Of(answer)
		if i > 0 {
			if outermost {
				ids = append(ids, containers(inner, false)...)
			}
			continue
		}
		if containerID.Walk(inner, &of) != nil || !of.Spans[0].Present(inner) {
			continue
		}
		if id, err := wire.ScanString(of.Spans[0].Of(inner), ""); err == nil && id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// IDWatcher collects ids of objects from the events of a conversation's stream, up to its end.
type IDWatcher struct {
	find   func(event []byte) []string
	note   func(ids ...string) error
	parser wire.SSEParser
	noted  []string
}

// WatchContainers returns a watcher that calls note with the containers of a Messages stream.
func WatchContainers(note func(ids ...string) error) *IDWatcher {
	return &IDWatcher{find: Containers, note: note}
}

// WatchSounds returns a watcher that calls note with the audio ids of a chat's stream.
func WatchSounds(note func(ids ...string) error) *IDWatcher {
	return &IDWatcher{find: Sounds, note: note}
}

// WatchItems returns a watcher that calls note with the items of a Responses stream.
func WatchItems(note func(ids ...string) error) *IDWatcher {
	return &IDWatcher{find: reference.ItemsMade, note: note}
}

// Feed consumes the next bytes of the stream. A nil watcher ignores them.
func (w *IDWatcher) Feed(p []byte) error {
	if w == nil {
		return nil
	}
	return w.parser.Feed(p, func(_ string, data []byte) error {
		ids := w.find(data)
		if len(ids) == 0 || slices.Equal(ids, w.noted) {
			return nil
		}
		w.noted = ids
		return w.note(ids...)
	})
}

// resumableKeys are fields of Messages with which a later request may name the response: to
// continue its thread, or to compare the two.
var resumableKeys = wire.NewKeySet("thread", "diagnostics")

// Resumable reports whether later requests may name the response to a body of Messages.
func Resumable(body []byte) bool {
	var w wire.Walk
	return resumableKeys.Walk(body, &w) == nil && (w.Spans[0].Present(body) || w.Spans[1].Present(body))
}
