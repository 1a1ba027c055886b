package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// message is a request of a client without sessions, which each case changes.
type message struct {
	name    string // of the tool
	more    string // members of params, with a comma before
	version string
	headers map[string]string
	key     string
}

// post sends a call of a tool; old: in the session that it names.
func (g *gateway) post(slug, session string, m message) (header http.Header, status int, text string) {
	g.t.Helper()
	name, _ := json.Marshal(m.name)
	if m.version == "" {
		m.version = withoutSessions
	}
	meta, version := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+m.version+`","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`, m.version
	headers := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Gateway-Api-Key": workspaceKey,
		"Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": m.name,
	}
	if session != "" {
		meta = ""
		headers["Mcp-Protocol-Version"], headers["Mcp-Session-Id"] = withSessions, session
	}
	if m.key != "" {
		headers["X-Gateway-Api-Key"] = m.key
	}
	for name, v := range m.headers {
		headers[name] = v
	}
	req, err := http.NewRequest(http.MethodPost, g.base+"/mcp/"+slug+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":"r1","method":"tools/call","params":{"name":`+string(name)+m.more+meta+`}}`))
	if err != nil {
		g.t.Fatal(err)
	}
	for name, v := range headers {
		if v != "" {
			req.Header.Set(name, v)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res.Header, res.StatusCode, string(raw)
}

// mark writes a name as headers carry it.
func mark(name string) string {
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
}

// begin begins a session and gives its id.
func (g *gateway) begin(slug string) string {
	c := g.client("of-"+slug, slug, http.DefaultClient)
	if err := c.Begin(); err != nil {
		g.t.Fatal(err)
	}
	return c.ID
}

// TestServersThatMisbehave: whatever a server answers, the client gets the protocol's error
// for its own request, with a trace id and nothing of what the server said; the next call
// is served.
func TestServersThatMisbehave(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway, which -short leaves out")
	}
	// A silent server is aborted after three seconds.
	g, up := startGateway(t, "MCP_REQUEST_TIMEOUT_MS=3000"), newRogue(t)
	g.register("modern", up.URL+"/modern", "none", "{}")
	g.register("old", up.URL+"/old", "none", "{}")
	session := g.begin("old")
	for slug, session := range map[string]string{"modern": "", "old": session} {
		for _, tool := range []string{
			"half", "a page", "nothing", "another id", "twice", "deep", "a list", "a text", "null", "no text", "failed", "refused", "large", "inwards",
			"broken off", "ended", "odd events", "gone", "silent", "silent stream",
		} {
			_, status, text := g.post(slug, session, message{name: tool})
			if status != http.StatusOK || !strings.Contains(text, `"code":-32603`) || !strings.Contains(text, `"trace_id"`) || !strings.Contains(text, `"id":"r1"`) {
				t.Errorf("%s, %s: %d %.300s", slug, tool, status, text)
			}
			for _, leaked := range []string{"inner secret", "169.254", "latest", up.URL, "127.0.0.1"} {
				if strings.Contains(text, leaked) {
					t.Errorf("%s, %s tells %q: %.300s", slug, tool, leaked, text)
				}
			}
			if _, status, text = g.post(slug, session, message{name: "good"}); status != http.StatusOK || !strings.Contains(text, "fine") {
				t.Errorf("%s, after %s: %d %.300s", slug, tool, status, text)
			}
		}
	}
}

// TestClientsThatMisbehave: a wrong call gets the protocol's own error and reaches no
// server.
func TestClientsThatMisbehave(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway, which -short leaves out")
	}
	g, up := startGateway(t), newRogue(t)
	g.register("modern", up.URL+"/modern", "none", "{}")
	g.register("old", up.URL+"/old", "none", "{}")
	session := g.begin("old")
	long := strings.Repeat("n", 9000)
	for name, c := range map[string]struct {
		message
		session      string
		status, code int
	}{
		"another name above":        {message{name: "good", headers: map[string]string{"Mcp-Name": "asks"}}, "", 400, -32020},
		"no name above":             {message{name: "good", headers: map[string]string{"Mcp-Name": ""}}, "", 400, -32020},
		"another case above":        {message{name: "good", headers: map[string]string{"Mcp-Name": "Good"}}, "", 400, -32020},
		"another method above":      {message{name: "good", headers: map[string]string{"Mcp-Method": "tools/list"}}, "", 400, -32020},
		"another version above":     {message{name: "good", headers: map[string]string{"Mcp-Protocol-Version": withSessions}}, "", 400, -32020},
		"a version to come":         {message{name: "good", version: "2031-01-01"}, "", 400, -32022},
		"no version":                {message{name: "good", version: "newest"}, "", 400, -32022},
		"an old version":            {message{name: "good", headers: map[string]string{"Mcp-Protocol-Version": "1999-01-01"}}, session, 400, -32600},
		"a session of another":      {message{name: "good", key: g.userKey("eve@example.com")}, session, 404, 404},
		"a forged session":          {message{name: "good"}, session[:len(session)-6] + "AAAAAA", 404, 404},
		"the session of the server": {message{name: "good"}, "of-the-rogue", 404, 404},
		"a long name":               {message{name: long, headers: map[string]string{"Mcp-Name": "x"}}, "", 400, -32602},
		"a long name in a session":  {message{name: long, headers: map[string]string{"Mcp-Name": ""}}, session, 400, -32602},
		"a name twice":              {message{name: "good", more: `,"name":"asks"`}, "", 400, -32700},
		"a name in capitals":        {message{name: "good", more: `,"NAME":"asks"`}, "", 400, -32602},
		"no name":                   {message{headers: map[string]string{"Mcp-Name": "good"}}, "", 400, -32020},
		"too large":                 {message{name: "good", more: `,"arguments":{"text":"` + strings.Repeat("x", 13<<20) + `"}`}, "", 413, 413},
		"too deep":                  {message{name: "good", more: `,"arguments":` + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500)}, "", 400, -32700},
	} {
		slug, before := "modern", up.called.Load()
		if c.session != "" {
			slug = "old"
		}
		_, status, text := g.post(slug, c.session, c.message)
		if status != c.status || !strings.Contains(text, fmt.Sprintf(`"code":%d`, c.code)) || !strings.Contains(text, `"jsonrpc":"2.0"`) {
			t.Errorf("%s: %d %.300s", name, status, text)
		}
		if up.called.Load() != before {
			t.Errorf("%s: it reached the server", name)
		}
	}
	// Names are the server's business as long as they are bounded: they go as they came.
	for _, name := range []string{strings.Repeat("n", 300), "a/b c", "é\"\\\t", "=?base64?eA==?="} {
		above := map[string]string{"Mcp-Name": mark(name)}
		if _, status, text := g.post("modern", "", message{name: name, headers: above}); status != http.StatusOK || !strings.Contains(text, "-32602") || up.last.Load() != name {
			t.Errorf("%.20q: %d %.200s, came as %.20q", name, status, text, up.last.Load())
		}
	}
}

// TestStatesOfServersAreSealed: a state that a server gives a client to bring back arrives
// unchanged, from that client and for that request only, or not at all.
func TestStatesOfServersAreSealed(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway, which -short leaves out")
	}
	g, up := startGateway(t), newRogue(t)
	g.register("modern", up.URL+"/modern", "none", "{}")
	g.register("other", up.URL+"/other", "none", "{}")
	const args = `,"arguments":{"a":1}`
	_, _, text := g.post("modern", "", message{name: "asks", more: args})
	var question struct {
		Result struct {
			Type  string `json:"resultType"`
			State string `json:"requestState"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &question); err != nil || question.Result.Type != "input_required" || question.Result.State == "" || strings.Contains(text, "the state of the server") {
		t.Fatalf("%v %s", err, text)
	}
	good := question.Result.State
	with := func(state, args string) string {
		return fmt.Sprintf(`%s,"requestState":%q,"inputResponses":{"q":{"action":"accept","content":{}}}`, args, state)
	}
	for name, c := range map[string]struct {
		slug string
		message
	}{
		"the server's own":  {"modern", message{name: "asks", more: with("the state of the server", args)}},
		"cut":               {"modern", message{name: "asks", more: with(good[:len(good)-4], args)}},
		"changed":           {"modern", message{name: "asks", more: with(good[:len(good)-4]+"AAAA", args)}},
		"longer":            {"modern", message{name: "asks", more: with(good+"AAAA", args)}},
		"none":              {"modern", message{name: "asks", more: with("", args)}},
		"of another tool":   {"modern", message{name: "good", more: with(good, args)}},
		"of another call":   {"modern", message{name: "asks", more: with(good, `,"arguments":{"a":2}`)}},
		"of another server": {"other", message{name: "asks", more: with(good, args)}},
		"of another caller": {"modern", message{name: "asks", more: with(good, args), key: g.userKey("eve@example.com")}},
		"no text":           {"modern", message{name: "asks", more: args + `,"requestState":{"a":1}`}},
	} {
		before := up.called.Load()
		_, status, text := g.post(c.slug, "", c.message)
		if status != http.StatusOK || !strings.Contains(text, `"code":-32602`) || up.called.Load() != before {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if _, status, text := g.post("modern", "", message{name: "asks", more: with(good, args)}); status != http.StatusOK || !strings.Contains(text, "went on") {
		t.Errorf("the good one: %d %s", status, text)
	}
}
