package kept

import (
	"bytes"
	"strings"

	"gateway/shared/wire"
)

// runs tells whether a POST of a path has the provider run a thread or an
// evaluation.
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

// RunIn gives data if it is a run.
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

// RunID is the id of a run; "" when it has none that can be known again.
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

// Background tells whether an answer is a response that is made in the background.
func Background(answer []byte) bool {
	var w wire.Walk
	if !bytes.Contains(answer, backgroundName) || backgroundKeys.Walk(answer, &w) != nil ||
		!w.Spans[0].Present(answer) || string(w.Spans[1].Of(answer)) != "true" {
		return false
	}
	object, err := wire.ScanString(w.Spans[0].Of(answer), "object")
	return err == nil && object == "response"
}

// BackgroundIn gives the whole response that an event of a stream holds, where it
// says whether that is made in the background; nil when there is none.
func BackgroundIn(event []byte) []byte {
	var w wire.Walk
	if !bytes.Contains(event, backgroundName) || madeKeys.Walk(event, &w) != nil || !w.Spans[0].Present(event) {
		return nil
	}
	return w.Spans[0].Of(event)
}
