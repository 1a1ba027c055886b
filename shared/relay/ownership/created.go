package ownership

import (
	"bytes"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/wire"
)

// linked are the response fields that name further objects created together with the requested
// one.
var linked = wire.NewKeySet("id", "object", "output_file_id", "error_file_id", "result_files", "thread_id", "file", "name", "fine_tuned_model", "results_file_id",
	"invocationArn", "job_id", "continuation_token", "batch", "dataset", "connector", "finetuned_model")

// CreatedIDs returns the ids of the objects in a response. made: the request was one that creates an
// object.
func CreatedIDs(answer []byte, made bool) (ids []string) {
	var w wire.Walk
	if linked.Walk(answer, &w) != nil {
		return nil
	}
	add := func(raw []byte) {
		if s, err := wire.ScanString(raw, ""); err == nil && s != "" {
			ids = append(ids, s)
		}
	}
	for i, key := range linked.Keys() {
		if !w.Spans[i].Present(answer) {
			continue
		}
		raw := w.Spans[i].Of(answer)
		switch key {
		case "object":
		case "id":
			if made {
				add(raw)
			}
		case "name": // files/abc, cachedContents/abc; elsewhere a name given by the caller
			if made && w.Spans[0].Absent() && w.Spans[1].Absent() {
				if s, err := wire.ScanString(raw, ""); err == nil && strings.Contains(s, "/") {
					ids = append(ids, s[strings.LastIndexByte(s, '/')+1:], s)
				}
			}
		case "result_files":
			if wire.KindOf(raw) == wire.KindArray {
				d := wire.NewDecoder(raw)
				for range d.Array {
					if v := d.Raw(); wire.KindOf(v) == wire.KindString {
						add(v)
					}
				}
			}
		case "invocationArn", "job_id":
			if made {
				add(raw)
			}
		case "continuation_token":
			if token, err := wire.ScanString(raw, ""); err == nil && token != "" {
				ids = append(ids, reference.Hash(token))
			}
		case "batch", "dataset", "connector", "finetuned_model": // Cohere's
			if made && wire.KindOf(raw) == wire.KindObject {
				ids = append(ids, CreatedIDs(raw, true)...)
			}
		case "file":
			if wire.KindOf(raw) == wire.KindObject {
				ids = append(ids, CreatedIDs(raw, true)...)
			}
		default:
			add(raw)
		}
	}
	return ids
}

// Watcher collects ids of created objects from a stream of events.
type Watcher struct {
	note   func(ids ...string) error
	sought IDKinds
	parser wire.SSEParser
	seen   int
	noted  []string // the last recorded ones; all events of a chat repeat its id
}

// maxWatched limits the inspected bytes of a stream: created objects are reported at its
// beginning.
const maxWatched = 256 << 10

// IDKinds selects the ids that a Watcher collects.
type IDKinds struct {
	Created bool // created objects, from the beginning of the response
	Audio   bool // audio of a chat, up to the end
	Items   bool // items of a response, up to the end
}

// Watch returns a watcher that calls note with the ids that it finds.
func Watch(sought IDKinds, note func(ids ...string) error) *Watcher {
	return &Watcher{note: note, sought: sought}
}

var madeKeys = wire.NewKeySet("response", "interaction")

// Feed consumes the next bytes of the stream. A nil Watcher ignores them.
func (w *Watcher) Feed(p []byte) error {
	if w == nil || w.seen > maxWatched && !w.sought.Audio && !w.sought.Items {
		return nil
	}
	early := w.seen <= maxWatched
	w.seen += len(p)
	return w.parser.Feed(p, func(_ string, data []byte) error {
		var ids []string
		if w.sought.Created && early {
			ids = madeIn(data)
		}
		if w.sought.Audio {
			ids = append(ids, AudioIDs(data)...)
		}
		if w.sought.Items {
			ids = append(ids, reference.CreatedItems(data)...)
		}
		if len(ids) == 0 {
			return nil
		}
		if slices.Equal(ids, w.noted) {
			return nil
		}
		w.noted = ids
		return w.note(ids...)
	})
}

// madeIn returns the ids of the objects that an event reports as created.
func madeIn(data []byte) []string {
	ids := CreatedIDs(data, true)
	var inner wire.Walk
	if madeKeys.Walk(data, &inner) == nil {
		for i := range madeKeys.Keys() {
			if whole := inner.Spans[i]; whole.Present(data) && wire.KindOf(whole.Of(data)) == wire.KindObject {
				ids = append(ids, CreatedIDs(whole.Of(data), true)...)
			}
		}
	}
	return ids
}

var (
	storeKey  = []byte(`"store"`)
	chatStore = wire.NewKeySet("store")
)

// StoresChat reports whether the body has the provider store a chat completion.
func StoresChat(body []byte) bool { return stores(body, false) }

// stores returns the value of store in a body, or otherwise if it has none that can be read.
func stores(body []byte, otherwise bool) bool {
	if !bytes.Contains(body, storeKey) {
		return otherwise
	}
	var w wire.Walk
	if chatStore.Walk(body, &w) != nil || !w.Spans[0].Present(body) {
		return otherwise
	}
	yes, err := wire.ScanBool(w.Spans[0].Of(body), "store")
	if err != nil {
		return otherwise
	}
	return yes
}

// StoresItems reports whether the provider stores the items of the response to a Responses body.
func StoresItems(body []byte) bool { return stores(body, true) }

var audioWord = []byte(`"audio"`)

// MayReturnAudio reports whether a chat may get a response with audio, which the provider stores for
// a while under an id: a later assistant message may name it instead of its text.
func MayReturnAudio(body []byte) bool { return bytes.Contains(body, audioWord) }

// AudioIDs returns the ids of the audio in a chat response, or in one event of it.
func AudioIDs(answer []byte) (ids []string) {
	if !bytes.Contains(answer, audioWord) {
		return nil
	}
	d := wire.NewDecoder(answer)
	if d.Kind() != wire.KindObject {
		return nil
	}
	for key := range d.Object {
		if string(key) != "choices" || d.Kind() != wire.KindArray {
			d.Skip()
			continue
		}
		for range d.Array {
			ids = soundOf(d, ids, "message", "delta")
		}
	}
	return ids
}

// soundOf reads the audio id in one of the fields of a choice: {"audio":{"id":"..."}}.
func soundOf(d *wire.Decoder, ids []string, members ...string) []string {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ids
	}
	for key := range d.Object {
		name := string(key)
		switch {
		case len(members) > 0 && (name == members[0] || name == members[1]):
			ids = soundOf(d, ids)
		case len(members) == 0 && name == "audio" && d.Kind() == wire.KindObject:
			for key := range d.Object {
				if string(key) != "id" || d.Kind() != wire.KindString {
					d.Skip()
				} else if id := d.Str(); id != "" {
					ids = append(ids, id)
				}
			}
		default:
			d.Skip()
		}
	}
	return ids
}

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

// WatchAudio returns a watcher that calls note with the audio ids of a chat's stream.
func WatchAudio(note func(ids ...string) error) *IDWatcher {
	return &IDWatcher{find: AudioIDs, note: note}
}

// WatchItems returns a watcher that calls note with the items of a Responses stream.
func WatchItems(note func(ids ...string) error) *IDWatcher {
	return &IDWatcher{find: reference.CreatedItems, note: note}
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
