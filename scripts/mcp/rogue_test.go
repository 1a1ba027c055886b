package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// rogue is a server whose tools response as no server may, each in the way that its name
// says. It speaks with sessions below /old.
type rogue struct {
	*httptest.Server
	called atomic.Int64 // calls of tools
	last   atomic.Value // the name that was called last
	state  atomic.Value // the requestState that came last
}

// inner is what nobody may hear of.
const inner = "the inner secret of the server"

func newRogue(t *testing.T) *rogue {
	r := new(rogue)
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

func (s *rogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name         string `json:"name"`
			RequestState string `json:"requestState"`
		}
	}
	_ = json.Unmarshal(raw, &m)
	old := strings.HasPrefix(r.URL.Path, "/old")
	answer := func(member, value string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"`+member+`":`+value+`}`)
	}
	switch m.Method {
	case "server/discover":
		if old {
			http.NotFound(w, r)
			return
		}
		answer("result", `{"resultType":"complete","supportedVersions":["`+withoutSessions+`"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "of-the-rogue")
		answer("result", `{"protocolVersion":"`+withSessions+`","capabilities":{"tools":{}},"serverInfo":{"name":"rogue","version":"1"}}`)
	case "tools/list":
		answer("result", `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`)
	case "tools/call":
		s.called.Add(1)
		s.last.Store(m.Params.Name)
		s.state.Store(m.Params.RequestState)
		s.misbehave(w, r, m.Params.Name, string(m.ID), answer)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// misbehave answers a call of a tool.
func (s *rogue) misbehave(w http.ResponseWriter, r *http.Request, name, id string, answer func(member, value string)) {
	typed := func(media, body string) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
	}
	const plain, events = "application/json", "text/event-stream"
	switch name {
	case "good":
		answer("result", `{"resultType":"complete","content":[{"type":"text","text":"fine"}]}`)
	case "asks":
		if s.state.Load() == "the state of the server" {
			answer("result", `{"resultType":"complete","content":[{"type":"text","text":"went on"}]}`)
			return
		}
		answer("result", `{"resultType":"input_required","requestState":"the state of the server","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}}}`)
	case "half":
		typed(plain, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":"`+inner)
	case "a page":
		typed("text/html", "<html>"+inner+"</html>")
	case "nothing":
		typed(plain, "")
	case "another id":
		typed(plain, `{"jsonrpc":"2.0","id":"`+inner+`","result":{"content":[]}}`)
	case "twice":
		typed(plain, `{"jsonrpc":"2.0","id":`+id+`,"result":{},"result":{"content":"`+inner+`"}}`)
	case "deep":
		typed(plain, `{"jsonrpc":"2.0","id":`+id+`,"result":{"a":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}}`)
	case "a list":
		typed(plain, `[{"jsonrpc":"2.0","id":`+id+`,"result":{"content":"`+inner+`"}}]`)
	case "a text":
		answer("result", `"`+inner+`"`)
	case "null":
		answer("result", "null")
	case "no text":
		typed(plain, "{\"jsonrpc\":\"2.0\",\"id\":"+id+",\"result\":{\"a\":\"\xff\"}}")
	case "failed":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, inner)
	case "refused":
		w.Header().Set("WWW-Authenticate", `Bearer error_description="`+inner+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	case "large":
		typed(plain, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":"`+strings.Repeat("x", 13<<20)+`"}}`)
	case "inwards":
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
	case "broken off":
		typed(events, "data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"resu")
		panic(http.ErrAbortHandler)
	case "ended":
		typed(events, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n")
	case "odd events":
		typed(events, "data: "+inner+"\n\n")
	case "gone":
		panic(http.ErrAbortHandler)
	case "silent":
		<-r.Context().Done()
	case "silent stream":
		typed(events, ": open\n\n")
		<-r.Context().Done()
	default:
		answer("error", `{"code":-32602,"message":"unknown tool"}`)
	}
}
