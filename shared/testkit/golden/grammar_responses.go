package golden

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

type responsesItem struct {
	ID        string
	Type      string
	Status    string
	CallID    string `json:"call_id"`
	Name      string
	Arguments string
	Input     string
	Content   []struct{ Type, Text, Refusal string }
	Summary   []struct{ Type, Text string }
}

// text returns all the text of an item.
func (it *responsesItem) text() string {
	s := it.Arguments + it.Input
	for _, p := range it.Content {
		s += p.Text + p.Refusal
	}
	for _, p := range it.Summary {
		s += p.Text
	}
	return s
}

type responsesEvent struct {
	Type           string
	SequenceNumber *int   `json:"sequence_number"`
	ItemID         string `json:"item_id"`
	OutputIndex    *int   `json:"output_index"`
	ContentIndex   int    `json:"content_index"`
	Delta          string
	Text           *string
	Refusal        *string
	Arguments      *string
	Input          *string
	Item           *responsesItem
	Response       *struct {
		ID, Object, Status, Model string
		Output                    []json.RawMessage
		Usage, Error              any
		IncompleteDetails         any `json:"incomplete_details"`
		ParallelToolCalls         *bool
	}
	Message, Code string
}

// responsesOpen is an item that has begun.
type responsesOpen struct {
	item  responsesItem
	text  string // of the deltas so far
	part  string // of the open part
	parts int
	open  bool
	done  bool
	whole json.RawMessage
}

// CheckResponses: created and in_progress first; each item is added once with the next
// index, its pieces are between its beginning and its end and add up to the content of
// its end; the last event contains all items unchanged. Sequence numbers count from 0. An
// error event may be followed by response.failed only.
func CheckResponses(t *testing.T, stream []byte) {
	t.Helper()
	state, id := "before", ""
	var items []*responsesOpen
	seq := 0
	for _, e := range Events(t, stream) {
		var ev responsesEvent
		if err := json.Unmarshal([]byte(e.Data), &ev); err != nil {
			t.Fatalf("%v: %s", err, e.Data)
		}
		if ev.Type != e.Name {
			t.Errorf("event %q has type %q", e.Name, ev.Type)
		}
		if ev.SequenceNumber == nil && ev.Type != "error" || ev.SequenceNumber != nil && *ev.SequenceNumber != seq {
			t.Errorf("sequence number %d expected: %s", seq, e.Data)
		}
		seq++
		if ev.Response != nil {
			if r := ev.Response; r.Object != "response" || r.ID == "" || r.Model == "" || id != "" && r.ID != id {
				t.Errorf("another response: %s", e.Data)
			}
			id = ev.Response.ID
		}
		switch ev.Type {
		case "response.created":
			if state != "before" || ev.Response == nil || ev.Response.Status != "in_progress" {
				t.Fatalf("while %s: %s", state, e.Data)
			}
			state = "created"
			continue
		case "response.in_progress":
			if state != "created" {
				t.Fatalf("while %s: %s", state, e.Data)
			}
			state = "running"
			continue
		case "error":
			if state == "ended" || ev.Message == "" && !strings.Contains(e.Data, `"message"`) {
				t.Errorf("a bad error event: %s", e.Data)
			}
			state = "failed"
			continue
		case "response.failed":
			if state == "ended" || ev.Response.Error == nil {
				t.Errorf("while %s: %s", state, e.Data)
			}
			state = "ended"
			continue
		}
		if state != "running" {
			t.Fatalf("%s while %s: %s", ev.Type, state, e.Data)
		}
		switch ev.Type {
		case "response.completed", "response.incomplete":
			state = "ended"
			checkResponsesEnd(t, &ev, items, e.Data)
		case "response.output_item.added":
			if ev.OutputIndex == nil || *ev.OutputIndex != len(items) || ev.Item == nil || ev.Item.ID == "" || ev.Item.text() != "" {
				t.Fatalf("item %d expected: %s", len(items), e.Data)
			}
			for _, it := range items {
				if it.item.ID == ev.Item.ID || it.item.CallID != "" && it.item.CallID == ev.Item.CallID {
					t.Errorf("an id stands twice: %s", e.Data)
				}
			}
			items = append(items, &responsesOpen{item: *ev.Item})
		default:
			if ev.OutputIndex == nil || *ev.OutputIndex >= len(items) {
				t.Fatalf("no such item: %s", e.Data)
			}
			it := items[*ev.OutputIndex]
			if it.done || ev.ItemID != "" && ev.ItemID != it.item.ID {
				t.Fatalf("an event of another or an ended item: %s", e.Data)
			}
			it.event(t, &ev, e.Data)
		}
	}
	if state != "ended" && state != "failed" {
		t.Errorf("the stream ends %s", state)
	}
}

// eventsOf are the events that an item of a type may have.
var eventsOf = map[string]string{
	"message":               "content_part output_text refusal",
	"reasoning":             "reasoning_summary_part reasoning_summary_text",
	"image_generation_call": "image_generation_call",
	"function_call":         "function_call_arguments",
	"custom_tool_call":      "custom_tool_call_input",
}

func (it *responsesOpen) event(t *testing.T, ev *responsesEvent, data string) {
	t.Helper()
	kind := strings.TrimPrefix(ev.Type, "response.")
	what, how, _ := strings.Cut(kind, ".")
	if what != "output_item" && !strings.Contains(" "+eventsOf[it.item.Type]+" ", " "+what+" ") {
		t.Errorf("%s of a %s: %s", ev.Type, it.item.Type, data)
	}
	switch {
	case what == "output_item" && how == "done":
		it.done = true
		if it.open || ev.Item == nil || ev.Item.ID != it.item.ID || ev.Item.text() != it.text {
			t.Errorf("the item was %q: %s", it.text, data)
		}
		if c := ev.Item; c.Type == "function_call" && c.Status == "completed" && !json.Valid([]byte(c.Arguments)) {
			t.Errorf("the arguments do not parse: %s", data)
		}
		var whole struct{ Item json.RawMessage }
		_ = json.Unmarshal([]byte(data), &whole)
		it.whole = whole.Item
	case strings.HasSuffix(what, "_part") && how == "added":
		if it.open || ev.ContentIndex != it.parts && what == "content_part" {
			t.Errorf("part %d expected: %s", it.parts, data)
		}
		it.open, it.part = true, ""
	case strings.HasSuffix(what, "_part") && how == "done":
		it.open = false
		it.parts++
	case what == "output_text" && how == "annotation.added":
		var note struct {
			Index      *int `json:"annotation_index"`
			Annotation struct {
				Type       string
				StartIndex int `json:"start_index"`
				EndIndex   int `json:"end_index"`
				URL        string
			}
		}
		a := &note.Annotation
		if json.Unmarshal([]byte(data), &note) != nil || !it.open || note.Index == nil || a.Type != "url_citation" || a.URL == "" || a.StartIndex > a.EndIndex || a.StartIndex == a.EndIndex && it.part != "" || a.EndIndex > utf8.RuneCountInString(it.part) {
			t.Errorf("a bad annotation of %q: %s", it.part, data)
		}
	case what == "image_generation_call" && (how == "in_progress" || how == "completed"):
	case how == "delta":
		if strings.HasPrefix(what, "output_text") && !it.open {
			t.Errorf("a piece outside of a part: %s", data)
		}
		it.text += ev.Delta
		it.part += ev.Delta
	case how == "done":
		for _, whole := range []*string{ev.Text, ev.Refusal, ev.Arguments, ev.Input} {
			if whole != nil && *whole != it.part {
				t.Errorf("the pieces were %q: %s", it.part, data)
			}
		}
	default:
		t.Errorf("unknown event: %s", data)
	}
}

func checkResponsesEnd(t *testing.T, ev *responsesEvent, items []*responsesOpen, data string) {
	t.Helper()
	status := strings.TrimPrefix(ev.Type, "response.")
	if ev.Response == nil || ev.Response.Status != status || len(ev.Response.Output) != len(items) || (status == "incomplete") != (ev.Response.IncompleteDetails != nil) {
		t.Errorf("a bad end: %s", data)
		return
	}
	for i, it := range items {
		var whole, held any
		_ = json.Unmarshal(it.whole, &whole)
		_ = json.Unmarshal(ev.Response.Output[i], &held)
		if !it.done || !reflect.DeepEqual(whole, held) {
			t.Errorf("item %d was given as %s and is held as %s", i, it.whole, ev.Response.Output[i])
		}
	}
}
