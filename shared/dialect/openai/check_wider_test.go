package openai

import (
	"strconv"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// list is a JSON list of n elements.
func list(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// TestBoundsThatSomeHostWidens: a value beyond a limit gets the usual 400 if the target
// does not allow more; if it does, the target judges the value.
func TestBoundsThatSomeHostWidens(t *testing.T) {
	t.Parallel()
	const talk = `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		dialect     chat.RequestReader
		body, field string
		kind        chat.ExcessKind
		amount      float64
		room, less  chat.ExtendedLimits // that takes it, and that is too small
	}{
		{Chat{}, `{"model":"m",` + talk + `,"stop":` + list(5, `"s"`) + `}`, "stop", chat.ManyStops, 5, chat.ExtendedLimits{Stops: 5}, chat.ExtendedLimits{Tools: 9}},
		{Chat{}, `{"model":"m",` + talk + `,"stop":` + list(17, `"s"`) + `}`, "stop", chat.ManyStops, 17, chat.ExtendedLimits{Stops: 17}, chat.ExtendedLimits{Stops: 16}},
		{Chat{}, `{"model":"m",` + talk + `,"tools":` + list(129, `{}`) + `}`, "tools", chat.ManyTools, 129, chat.ExtendedLimits{Tools: 512}, chat.ExtendedLimits{Tools: 128}},
		{Chat{}, `{"model":"m",` + talk + `,"functions":` + list(129, `{}`) + `}`, "functions", chat.ManyTools, 129, chat.ExtendedLimits{Tools: 512}, chat.ExtendedLimits{}},
		{Chat{}, `{"model":"m",` + talk + `,"temperature":2.5}`, "temperature", chat.HighTemperature, 2.5, chat.Unbounded, chat.ExtendedLimits{Temperature: 2.4}},
		{Chat{}, `{"model":"m",` + talk + `,"logprobs":true,"top_logprobs":21}`, "top_logprobs", chat.ManyLogprobs, 21, chat.Unbounded, chat.ExtendedLimits{CountedLogprobs: 30}},
		{Chat{}, `{"model":"m",` + talk + `,"logprobs":1}`, "logprobs", chat.CountedLogprobs, 1, chat.ExtendedLimits{CountedLogprobs: 20}, chat.ExtendedLimits{Logprobs: 9}},
		{Chat{}, `{"model":"m",` + talk + `,"max_tokens":-1}`, "max_tokens", chat.NoEnd, 1, chat.ExtendedLimits{NoEnd: true}, chat.ExtendedLimits{}},
		{Chat{}, `{"model":"m",` + talk + `,"max_completion_tokens":-1}`, "max_completion_tokens", chat.NoEnd, 1, chat.Unbounded, chat.ExtendedLimits{}},
		{Completions{}, `{"model":"m","prompt":"x","stop":` + list(5, `"s"`) + `}`, "stop", chat.ManyStops, 5, chat.ExtendedLimits{Stops: 16}, chat.ExtendedLimits{}},
		{Completions{}, `{"model":"m","prompt":"x","temperature":3}`, "temperature", chat.HighTemperature, 3, chat.Unbounded, chat.ExtendedLimits{}},
		{Completions{}, `{"model":"m","prompt":"x","logprobs":6}`, "logprobs", chat.ManyLogprobs, 6, chat.Unbounded, chat.ExtendedLimits{}},
		{Completions{}, `{"model":"m","prompt":"x","max_tokens":-1}`, "max_tokens", chat.NoEnd, 1, chat.Unbounded, chat.ExtendedLimits{}},
	} {
		strict := chat.Checked{}
		err := c.dialect.Check([]byte(c.body), &strict)
		if f := fault.From(err); err == nil || f.Status() != 400 || f.Field != c.field || len(strict.Excess) != 0 {
			t.Errorf("%.80s: %v, want a 400 on %s", c.body, err, c.field)
		}
		byTarget := chat.Checked{ByTarget: true}
		if got := c.dialect.Check([]byte(c.body), &byTarget); got != nil || len(byTarget.Excess) != 1 || byTarget.Excess[0].Kind != c.kind || byTarget.Excess[0].Amount != c.amount {
			t.Fatalf("%.80s: %v %+v", c.body, got, byTarget.Excess)
		}
		if got := c.room.Check(byTarget.Excess); got != nil {
			t.Errorf("%.80s: refused with room: %v", c.body, got)
		}
		for _, room := range []chat.ExtendedLimits{c.less, {}} {
			if got := room.Check(byTarget.Excess); got == nil || got.Error() != err.Error() {
				t.Errorf("%.80s: %v, want the same as ever: %v", c.body, got, err)
			}
		}
		if _, err := c.dialect.DecodeRequest([]byte(c.body)); err != nil && !strings.Contains(c.body, "{},{}") {
			t.Errorf("%.80s cannot be read: %v", c.body, err)
		}
		// The memory of a check is used again.
		if byTarget.Keys = nil; c.dialect.Check([]byte(`{"model":"m","prompt":"x",`+talk+`}`), &byTarget) != nil || len(byTarget.Excess) != 0 {
			t.Errorf("%+v is left over", byTarget.Excess)
		}
	}
}

// TestBoundsThatNoHostWidens: what nobody takes is rejected before a target is known.
func TestBoundsThatNoHostWidens(t *testing.T) {
	t.Parallel()
	for member, field := range map[string]string{
		`"temperature":-1`: "temperature", `"temperature":"hot"`: "temperature", `"stop":["a","b","c","d",5]`: "stop[4]", `"stop":5`: "stop", `"max_tokens":-2`: "max_tokens",
		`"max_tokens":1.5`: "max_tokens", `"tool_choice":7`: "tool_choice", `"logprobs":-1`: "logprobs", `"logprobs":"yes"`: "logprobs", `"top_logprobs":-1`: "top_logprobs",
		`"n":129`: "n", `"top_p":2`: "top_p", `"tools":` + list(129, "7"): "tools[0]", `"functions":[]`: "functions", `"presence_penalty":3`: "presence_penalty", `"thinking":7`: "thinking",
	} {
		c := chat.Checked{ByTarget: true}
		err := Chat{}.Check([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],`+member+`}`), &c)
		if f := fault.From(err); err == nil || f.Status() != 400 || f.Field != field {
			t.Errorf("%.60s: %v, want a 400 on %s", member, err, field)
		}
	}
}

// TestStopsGoWhereThereIsRoom: a client of another dialect is cut at what the
// target takes.
func TestStopsGoWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	r := &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Kind: chat.Text, Text: "x"}}, IsString: true}}}
	for i := range 20 {
		r.Stop = append(r.Stop, "s"+strconv.Itoa(i))
	}
	for most, room := range map[int]chat.ExtendedLimits{4: {}, 16: {Stops: 16}, 20: chat.Unbounded} {
		var loss chat.Loss
		out, err := Chat{}.EncodeRequest(nil, r, &chat.Traits{Extended: room}, &loss)
		if got := strings.Count(string(out), `"s`) - strings.Count(string(out), `"stop"`); err != nil || got != most || loss.Empty() != (most == 20) {
			t.Errorf("%d of 20 with %+v: %v %s", got, room, err, out)
		}
	}
}
