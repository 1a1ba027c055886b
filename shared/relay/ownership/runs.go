package ownership

import (
	"bytes"
	"strings"

	"gateway/shared/relay/response"
	"gateway/shared/wire"
)

// runs reports whether a POST to a path makes the provider run a thread or an evaluation.
func runs(path string) bool {
	i := strings.Index(strings.ToLower(path), "/runs")
	if i < 0 {
		return false
	}
	run, do, _ := strings.Cut(strings.TrimPrefix(path[i+len("/runs"):], "/"), "/")
	return run == "" || do != "" && do != "cancel"
}

var (
	runKeys   = wire.NewKeySet("object", "id")
	runObject = []byte("thread.run")
)

// RunIn returns data if it is a run.
func RunIn(data []byte) []byte {
	var w wire.Walk
	if !bytes.Contains(data, runObject) || runKeys.Walk(data, &w) != nil || !w.Spans[0].Present(data) {
		return nil
	}
	if object, err := wire.ScanString(w.Spans[0].Of(data), "object"); err != nil || object != "thread.run" {
		return nil
	}
	return data
}

// RunID returns the id of a run; "" if it has none that can be recorded.
func RunID(run []byte) string {
	var w wire.Walk
	if len(run) == 0 || runKeys.Walk(run, &w) != nil || !w.Spans[1].Present(run) {
		return ""
	}
	id, err := wire.ScanString(w.Spans[1].Of(run), "id")
	if err != nil || len(id) > MaxID {
		return ""
	}
	return id
}

var (
	backgroundName = []byte(`"background"`)
	backgroundKeys = wire.NewKeySet("object", "background")
)

// Background reports whether the body is a background response.
func Background(answer []byte) bool {
	var w wire.Walk
	if !bytes.Contains(answer, backgroundName) || backgroundKeys.Walk(answer, &w) != nil ||
		!w.Spans[0].Present(answer) || string(w.Spans[1].Of(answer)) != "true" {
		return false
	}
	object, err := wire.ScanString(w.Spans[0].Of(answer), "object")
	return err == nil && object == "response"
}

// BackgroundIn returns the complete response in an event of a stream if it states whether it is
// a background response; nil if there is none.
func BackgroundIn(event []byte) []byte {
	var w wire.Walk
	if !bytes.Contains(event, backgroundName) || madeKeys.Walk(event, &w) != nil || !w.Spans[0].Present(event) {
		return nil
	}
	return w.Spans[0].Of(event)
}

var (
	stateKeys      = wire.NewKeySet("object", "status", "output")
	responseObject = []byte(`"response"`)
)

// IsEmptyInProgress reports whether the body is a response in progress without any output.
func IsEmptyInProgress(answer []byte) bool {
	var w wire.Walk
	if !bytes.Contains(answer, responseObject) || stateKeys.Walk(answer, &w) != nil || !making(answer, &w) {
		return false
	}
	if !w.Spans[2].Present(answer) {
		return true
	}
	d := wire.NewDecoder(w.Spans[2].Of(answer))
	for range d.Array {
		return false
	}
	return d.Err() == nil
}

// making reports whether a response is in progress.
func making(answer []byte, w *wire.Walk) bool {
	if !w.Spans[0].Present(answer) || !w.Spans[1].Present(answer) {
		return false
	}
	object, err := wire.ScanString(w.Spans[0].Of(answer), "object")
	if err != nil || object != "response" {
		return false
	}
	status, err := wire.ScanString(w.Spans[1].Of(answer), "status")
	return err == nil && (status == "queued" || status == "in_progress")
}

var endedKeys = wire.NewKeySet("status", "usage")

// EndedUnused reports whether a response has ended and states no usage.
func EndedUnused(answer []byte) bool {
	var w wire.Walk
	if endedKeys.Walk(answer, &w) != nil || !w.Spans[0].Present(answer) || w.Spans[1].Present(answer) && !wire.IsNull(w.Spans[1].Of(answer)) {
		return false
	}
	switch status, err := wire.ScanString(w.Spans[0].Of(answer), "status"); status {
	case "completed", "failed", "cancelled", "incomplete":
		return err == nil
	}
	return false
}

// LastResponse returns a copy of the complete response in the last event of a stream; nil if the
// stream does not end with a finished one.
func LastResponse(stream []byte) (last []byte) {
	response.EachEvent(stream, func(data []byte) {
		if wire.KindOf(data) != wire.KindObject {
			return // [DONE]
		}
		var w wire.Walk
		if last = nil; madeKeys.Walk(data, &w) != nil || !w.Spans[0].Present(data) || wire.KindOf(w.Spans[0].Of(data)) != wire.KindObject {
			return
		}
		whole := w.Spans[0].Of(data)
		if stateKeys.Walk(whole, &w) == nil && !making(whole, &w) {
			last = bytes.Clone(whole)
		}
	})
	return last
}
