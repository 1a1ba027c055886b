package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/routes"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/wire"
)

// desk is a gateway with a scripted model and servers.
type desk struct {
	t     *testing.T
	turns []func(w http.ResponseWriter) // the responses of the model, one after the other; the last one is repeated
	tools string                        // what servers list
	call  func(name, args string) string

	mu     sync.Mutex
	bodies []map[string]any // requests to the model
	called []string
	header http.Header
	status int
	body   string
	events []map[string]any
	hangs  bool          // calls of tools end with their time
	sign   chan struct{} // written to at each keep-alive; nil: there are none
	first  string        // the first bytes sent
	ended  bool
	fault  *fault.Fault

	approvals *approval.Requests // nil: of this run only
}

func newApprovals(t *testing.T) *approval.Requests {
	t.Helper()
	tables, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tables.Close() })
	return &approval.Requests{Table: tables.Table(store.Usage), Now: time.Now, Scope: store.Scope{Org: "o", Workspace: "w"}}
}

func (d *desk) run(of *routes.ToolRun, body string) error {
	d.header = http.Header{}
	if d.approvals == nil {
		d.approvals = newApprovals(d.t)
	}
	return of.Serve(&routes.ToolLoop{
		Approvals: d.approvals,
		Context:   context.Background(), Body: []byte(body), ID: "RUN", Now: time.Now,
		SendTurn: func(_ context.Context, w http.ResponseWriter, body []byte) bool {
			var of map[string]any
			if err := json.Unmarshal(body, &of); err != nil {
				d.t.Errorf("a turn is asked with %v: %s", err, body)
			}
			d.bodies = append(d.bodies, of)
			d.turns[min(len(d.bodies), len(d.turns))-1](w)
			return false
		},
		Call:   d.serve,
		Header: func() http.Header { return d.header },
		Send: func(status int, _ string, body []byte, f *fault.Fault) {
			d.status, d.body, d.fault, d.ended = status, string(body), f, true
		},
		Sign: d.signs(),
		Event: func(event []byte, last bool, f *fault.Fault) {
			if d.first == "" {
				d.first = string(event)
			}
			if string(event) == aSign {
				d.sign <- struct{}{}
				return
			}
			var p wire.SSEParser
			if err := p.Feed(event, func(name string, data []byte) error {
				var e map[string]any
				if err := json.Unmarshal(data, &e); err != nil || e["type"] != name {
					d.t.Errorf("event %s: %v %s", name, err, data)
				}
				d.events = append(d.events, e)
				return nil
			}); err != nil {
				d.t.Error(err)
			}
			if d.ended {
				d.t.Error("an event came behind the last")
			}
			d.ended, d.fault = last, f
		},
		StreamError: func(f *fault.Fault, _ int64, _ string) []byte {
			return wire.AppendSSE(nil, "error", encoded(map[string]any{"type": "error", "message": f.Message}))
		},
	})
}

const aSign = ": here\n\n"

func (d *desk) signs() []byte {
	if d.sign == nil {
		return nil
	}
	return []byte(aSign)
}

// serve is a server at the MCP proxy.
func (d *desk) serve(ctx context.Context, w http.ResponseWriter, slug string, h http.Header, body []byte) bool {
	var m struct {
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &m); err != nil || h.Get("Mcp-Method") != m.Method {
		d.t.Errorf("%v: %s", err, body)
	}
	w.Header().Set("Content-Type", "application/json")
	if m.Method == "tools/list" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":%s}}`, d.tools)
		return false
	}
	d.mu.Lock()
	d.called = append(d.called, slug+" "+m.Params.Name+" "+string(m.Params.Arguments))
	d.mu.Unlock()
	if d.hangs {
		<-ctx.Done()
		return true
	}
	_, _ = io.WriteString(w, d.call(m.Params.Name, string(m.Params.Arguments)))
	return false
}

const twoTools = `[{"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}}}},{"name":"look.up","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`

// result is a message with a tool's text.
func result(text string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":` + string(quoted(text)) + `}]}}`
}

// plain responses with a body, events with a stream.
func plain(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func stream(data ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range data {
			_, _ = io.WriteString(w, "data: "+d+"\n\n")
		}
	}
}

// at reads a value within a value.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func readJSON(t *testing.T, s string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return v
}

// kinds are the values of a field of each of a list.
func kinds(list any, member string) (out []string) {
	all, _ := list.([]any)
	for _, one := range all {
		out = append(out, fmt.Sprint(at(one, member)))
	}
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestRequestsThatAreNotForUs continue as they would: without the header, or without such a
// tool.
func TestRequestsThatAreNotForUs(t *testing.T) {
	t.Parallel()
	ours := `{"tools":[{"type":"mcp","server_label":"@gateway-mcp/x"}]}`
	for _, c := range []struct {
		header, body string
		want         bool
	}{
		{Beta, ours, true}, {"other, " + Beta, ours, true}, {"", ours, false}, {"server-side-mcp-2026-06-02", ours, false},
		{Beta, `{"tools":[{"type":"mcp","server_label":"gateway-mcp"}]}`, false}, {Beta, `{"tools":[{"type":"function","server_label":"@gateway-mcp/x"}]}`, false},
		{Beta, `{"tools":{"type":"mcp","server_label":"@gateway-mcp/x"}}`, false}, {Beta, `{"tools":[7,{"type":"mcp","server_label":"@gateway-mcp/x"}]}`, true}, {Beta, `{"tools":[{"type":"mcp","server_label":7}]}`, false},
		{Beta, ours[:20], false},
	} {
		if got := wants(http.Header{"X-Gateway-Beta": {c.header}}, []byte(c.body)); got != c.want {
			t.Errorf("%q %s: %v", c.header, c.body, got)
		}
	}
}

// TestWrongServersAreRefused: each with its field, all in one error.
func TestWrongServersAreRefused(t *testing.T) {
	t.Parallel()
	for more, field := range map[string]string{
		`"server_url":"https://x"`: "tools[0].server_url", `"headers":{"a":"b"}`: "tools[0].headers", `"authorization":"x"`: "tools[0].authorization",
		`"connector_id":"c"`: "tools[0].connector_id", `"allowed_tools":"x"`: "tools[0].allowed_tools", `"allowed_tools":[1]`: "tools[0].allowed_tools",
		`"allowed_tools":{"tool_names":1}`: "tools[0].allowed_tools.tool_names", `"allowed_tools":{"read_only":"x"}`: "tools[0].allowed_tools.read_only",
		`"allowed_tools":{"names":[]}`: "tools[0].allowed_tools.names", `"require_approval":"sometimes"`: "tools[0].require_approval",
		`"require_approval":{"always":["x"]}`: "tools[0].require_approval.always", `"require_approval":{"now":{}}`: "tools[0].require_approval.now", `"surprise":1`: "tools[0].surprise",
	} {
		_, err := readServers([]json.RawMessage{json.RawMessage(`{"type":"mcp","server_label":"@gateway-mcp/x",` + more + `}`)}, true)
		f := fault.From(err)
		if err == nil || f.Status() != 400 || !strings.Contains(f.Field+fmt.Sprint(f.Details), field) {
			t.Errorf("%s: %v", more, err)
		}
	}
	for _, label := range []string{"@gateway-mcp/", "@gateway-mcp/a/b", "@gateway-mcp/a?b", "@gateway-mcp/" + strings.Repeat("x", 200)} {
		if _, err := readServers([]json.RawMessage{encoded(map[string]string{"type": "mcp", "server_label": label})}, true); err == nil {
			t.Errorf("%s is a label", label)
		}
	}
	twice := json.RawMessage(`{"type":"mcp","server_label":"@gateway-mcp/x"}`)
	if _, err := readServers([]json.RawMessage{twice, twice}, true); err == nil {
		t.Error("a server is listed twice")
	}
	if _, err := readServers([]json.RawMessage{json.RawMessage(`{"type":"mcp","server_label":"@gateway-mcp/x","require_approval":"always"}`)}, false); err == nil {
		t.Error("messages ask for approval")
	}
}

// TestNamesAreUnique: between servers, with the client's functions, and when cut.
func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	n := newNames([]string{"add", "b_add"})
	long := strings.Repeat("x", 80)
	var all []*tool
	for _, slug := range []string{"a", "b", "c"} {
		s := &server{slug: slug, label: labelPrefix + slug}
		for _, name := range []string{"add", "look.up", "look_up", long, long + "y", "größe"} {
			one := &tool{of: s, name: name, as: n.free(s, name)}
			all, n.tools[one.as] = append(all, one), one
		}
	}
	seen := map[string]bool{"add": true, "b_add": true}
	for _, t1 := range all {
		if seen[t1.as] || len(t1.as) > maxFunction || t1.as != spelled(t1.as) {
			t.Errorf("%s of %s is %q", t1.name, t1.of.slug, t1.as)
		}
		seen[t1.as] = true
		if n.of(t1.of.label, t1.name) != t1 || n.tools[t1.as] != t1 {
			t.Errorf("%s of %s is not found", t1.name, t1.of.slug)
		}
	}
	if all[0].as != "a_add" || all[6].as != "b_add_2" || all[1].as != "look_up" {
		t.Errorf("%s %s %s", all[0].as, all[6].as, all[1].as)
	}
}

func TestUsageIsSummed(t *testing.T) {
	t.Parallel()
	got := sum(json.RawMessage(`{"input_tokens":3,"details":{"cached":1},"tier":"a","x":null}`), json.RawMessage(`{"input_tokens":4,"details":{"cached":2,"more":5},"tier":"b"}`))
	if string(got) != `{"details":{"cached":3,"more":5},"input_tokens":7,"tier":"b","x":null}` {
		t.Errorf("%s", got)
	}
	for _, c := range [][3]string{{"", "7", "7"}, {"7", "null", "7"}, {"null", "7", "7"}, {"7", `"x"`, `"x"`}, {"1.5", "2", "2"}, {"9223372036854775807", "1", "1"}} {
		if got := sum(json.RawMessage(c[0]), json.RawMessage(c[1])); string(got) != c[2] {
			t.Errorf("%v: %s", c, got)
		}
	}
}

// TestResultsOfTools: every kind of content, and invalid content.
func TestResultsOfTools(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]outcome{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                                                     {text: "a\nb"},
		`{"content":[{"type":"text","text":"bad"}],"isError":true}`:                                                               {text: "bad", failed: true},
		`{"content":[],"structuredContent":{"a":1}}`:                                                                              {text: `{"a":1}`},
		`{"content":[{"type":"resource","resource":{"uri":"u","text":"t"}},{"type":"resource_link","uri":"v"},{"type":"audio"}]}`: {text: "t\nv\n[audio ]"},
		`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`:                                                     {images: []image{{"image/png", "AAAA"}}},
	} {
		var of object
		_ = json.Unmarshal([]byte(in), &of)
		if got := readResult(of); got.text != want.text || got.failed != want.failed || len(got.images) != len(want.images) {
			t.Errorf("%s: %+v", in, got)
		}
	}
	for _, in := range []string{`{"content":7}`, `{"resultType":"input_required"}`} {
		var of object
		_ = json.Unmarshal([]byte(in), &of)
		if got := readResult(of); !got.failed || got.code == 0 {
			t.Errorf("%s: %+v", in, got)
		}
	}
}

// TestWrongAnswersOfServers are rejections and no results.
func TestWrongAnswersOfServers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{", "[]", `{"jsonrpc":"2.0","id":1}`, `{"result":7}`, `{"error":{"code":-1,"message":"no"}}`} {
		w := &partResponse{header: http.Header{}, limit: 100}
		_, _ = io.WriteString(w, body)
		if of, refused := readResponse(w); refused == nil {
			t.Errorf("%s: %v", body, of)
		}
	}
	w := &partResponse{header: http.Header{"Content-Type": {"text/event-stream"}}, limit: 1000}
	_, _ = io.WriteString(w, "data: {\"method\":\"notifications/progress\"}\n\ndata: {\"id\":1,\"result\":{\"a\":1}}\n\n")
	if of, refused := readResponse(w); refused != nil || string(of["a"]) != "1" {
		t.Errorf("%v %v", of, refused)
	}
	if _, err := (&partResponse{limit: 3}).Write([]byte("four")); err == nil {
		t.Error("an answer has no bound")
	}
}

// The descriptions of tools are limited for a complete run, and so is a message with a result.
func TestWhatServersSayIsBounded(t *testing.T) {
	t.Parallel()
	d := adder()
	d.t, d.turns = t, append(d.turns, plain(200, thenThree))
	d.tools = `[{"name":"add","description":"` + strings.Repeat("a", 3<<20) + `","inputSchema":{"type":"object"}}]`
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool, "")); err != nil {
		t.Errorf("one server: %v", err)
	}
	other := strings.Replace(mathTool, "/math", "/other", 1)
	f := fault.From(d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool+","+other, "")))
	if f == nil {
		t.Fatal("two servers may say more than one")
	}
	if f.Status() != 400 || f.Field != "tools[1].allowed_tools" || !strings.Contains(f.Message, "other") || len(d.bodies) != 1 {
		t.Errorf("two servers: %v at %q, %d turns", f, f.Field, len(d.bodies))
	}
	d = adder()
	d.t, d.turns = t, append(d.turns, plain(200, useAdd), plain(200, thenThree))
	d.call = func(string, string) string { return result(strings.Repeat("a", timesResult*DefaultLimits.Result+8192)) }
	if err := d.run(Messages(nil), fmt.Sprintf(messagesOf, mathTool, "")); err != nil || !strings.Contains(d.body, "was truncated") {
		t.Errorf("a long result: %v %.300s", err, d.body)
	}
}
