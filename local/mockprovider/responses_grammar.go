package mockprovider

import (
	"fmt"
	"slices"
	"strings"
)

// ReadResponsesStream adds up a stream of a response and checks its grammar: sequence
// numbers count from 0; created and in_progress come first; each item is added with the
// next index and done once; its pieces in between add up to what the events at its end say;
// the last event contains all items. An error event or a failed response ends the stream
// with an error that holds its message.
func ReadResponsesStream(body []byte) (*StreamResult, error) {
	r := responsesReader{StreamResult: StreamResult{Prompt: -1, Completion: -1}}
	events := readEvents(string(body))
	for i, e := range events {
		v, err := parseJSON(e.data)
		if err == nil && (v.get("type").s != e.name || r.ended) {
			err = fmt.Errorf("%s with type %q, ended=%t", e.name, v.get("type").s, r.ended)
		}
		if err == nil {
			err = r.event(v, i)
		}
		if err != nil {
			return &r.StreamResult, fmt.Errorf("event %d: %w", i, err)
		}
		r.Events++
	}
	if !r.ended {
		return &r.StreamResult, fmt.Errorf("the stream ends without its last event after %d events", len(events))
	}
	r.Choices = 1
	return &r.StreamResult, nil
}

type responsesReader struct {
	StreamResult
	ended bool
	items []*readItem
}

// readItem is an item of the stream.
type readItem struct {
	typ, id, content string
	part             string // type of the open part
	open, done       bool
}

func (r *responsesReader) event(v value, at int) error {
	typ := v.get("type").s
	if n, ok := v.get("sequence_number").integer(); typ != "error" && (!ok || n != int64(at)) {
		return fmt.Errorf("%s has sequence number %s, want %d", typ, v.get("sequence_number").s, at)
	}
	resp := v.get("response")
	switch typ {
	case "error":
		return fmt.Errorf("error event %s: %s", v.get("code").s, v.get("message").s)
	case "response.failed":
		return fmt.Errorf("error event %s: %s", resp.get("error").get("code").s, resp.get("error").get("message").s)
	case "response.created", "response.in_progress":
		if want := map[string]int{"response.created": 0, "response.in_progress": 1}[typ]; at != want || resp.get("status").s != "in_progress" || len(resp.get("output").arr) > 0 {
			return fmt.Errorf("bad %s", typ)
		}
		r.ID, r.Model = resp.get("id").s, resp.get("model").s
		if r.ID == "" || r.Model == "" || resp.get("object").s != "response" {
			return fmt.Errorf("bad response object")
		}
		return nil
	case "response.completed", "response.incomplete":
		return r.end(resp, strings.TrimPrefix(typ, "response."))
	}
	if at < 2 {
		return fmt.Errorf("%s comes too early", typ)
	}
	index, ok := v.get("output_index").integer()
	if !ok {
		return fmt.Errorf("%s has no output_index", typ)
	}
	if typ == "response.output_item.added" {
		it := v.get("item")
		if index != int64(len(r.items)) || it.get("id").s == "" || slices.ContainsFunc(r.items, func(o *readItem) bool { return o.id == it.get("id").s }) {
			return fmt.Errorf("item %d is added after %d items", index, len(r.items))
		}
		r.items = append(r.items, &readItem{typ: it.get("type").s, id: it.get("id").s})
		if it.get("type").s == "function_call" || it.get("type").s == "custom_tool_call" {
			r.Calls = append(r.Calls, StreamCall{ID: it.get("call_id").s, Name: it.get("name").s})
		}
		return nil
	}
	if index < 0 || index >= int64(len(r.items)) || r.items[index].done {
		return fmt.Errorf("%s for item %d, which is not open", typ, index)
	}
	return r.item(r.items[index], v, strings.TrimPrefix(typ, "response."))
}

// itemEvents are the events that items of a type may have between their start and their
// end.
var itemEvents = map[string][]string{
	"message": {"content_part", "output_text", "refusal"}, "reasoning": {"reasoning_summary_part", "reasoning_summary_text"},
	"function_call": {"function_call_arguments"}, "custom_tool_call": {"custom_tool_call_input"},
}

func (r *responsesReader) item(it *readItem, v value, typ string) error {
	what, how, _ := strings.Cut(typ, ".")
	if what == "output_item" {
		return r.itemDone(it, v.get("item"))
	}
	if !slices.Contains(itemEvents[it.typ], what) || v.get("item_id").s != it.id {
		return fmt.Errorf("%s within %s %s", typ, it.typ, it.id)
	}
	part := strings.HasSuffix(what, "_part")
	switch how {
	case "added":
		if it.open {
			return fmt.Errorf("a part is added within a part")
		}
		it.open, it.part = true, ""
	case "annotation.added":
		if !it.open || !v.get("annotation").get("type").given() {
			return fmt.Errorf("an annotation outside of a part, or of no type")
		}
	case "delta":
		d := v.get("delta")
		if d.kind != text || !it.open && itemEvents[it.typ][0] != what {
			return fmt.Errorf("a piece outside of a part")
		}
		it.content += d.s
		it.part += d.s
		switch what {
		case "output_text", "refusal":
			r.Text += d.s
		case "reasoning_summary_text":
			r.Thinking += d.s
		}
	case "done":
		if part {
			it.open = false
			return nil
		}
		for _, name := range []string{"text", "refusal", "arguments", "input"} {
			if f := v.get(name); f.given() && f.s != it.part {
				return fmt.Errorf("%s says %q, its pieces %q", typ, f.s, it.part)
			}
		}
	default:
		return fmt.Errorf("unknown event %s", typ)
	}
	return nil
}

func (r *responsesReader) itemDone(it *readItem, item value) error {
	content := item.get("arguments").s + item.get("input").s
	for _, list := range []string{"content", "summary"} {
		for _, p := range item.get(list).arr {
			content += p.get("text").s + p.get("refusal").s
		}
	}
	it.done = true
	if it.open || item.get("id").s != it.id || content != it.content {
		return fmt.Errorf("item %s is done with %q, its pieces are %q", it.id, content, it.content)
	}
	if enc := item.get("encrypted_content"); enc.given() {
		r.Signature = enc.s
	}
	for i := range r.Calls {
		if c := &r.Calls[i]; c.ID == item.get("call_id").s {
			c.Arguments = content
			if _, err := parseJSON(content); err != nil && it.typ == "function_call" && item.get("status").s == "completed" {
				return fmt.Errorf("the arguments of %s: %w", c.ID, err)
			}
		}
	}
	return nil
}

func (r *responsesReader) end(resp value, status string) error {
	r.ended, r.Finish = true, status
	if reason := resp.get("incomplete_details").get("reason").s; reason != "" {
		r.Finish = reason
	}
	out := resp.get("output").arr
	if resp.get("id").s != r.ID || resp.get("status").s != status || len(out) != len(r.items) {
		return fmt.Errorf("the end is of %s with %d items of %d", resp.get("id").s, len(out), len(r.items))
	}
	for i, it := range r.items {
		if !it.done || out[i].get("id").s != it.id {
			return fmt.Errorf("item %s is not done, or stands as %s", it.id, out[i].get("id").s)
		}
	}
	if u := resp.get("usage"); u.given() {
		r.Prompt, _ = u.get("input_tokens").integer()
		r.Completion, _ = u.get("output_tokens").integer()
		if total, ok := u.get("total_tokens").integer(); !ok || total != r.Prompt+r.Completion {
			return fmt.Errorf("the total is not the sum")
		}
	}
	return nil
}
