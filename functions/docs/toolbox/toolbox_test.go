package toolbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"gateway/functions/docs/document"
	"gateway/functions/docs/toolbox"
	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// some is a document with what tools are made of, and what none is made of.
const some = `{"paths":{
 "/things/{id}":{
  "get":{"operationId":"getThing","summary":"Read a thing.","tags":["things"],"security":[{"Gateway-Key":[]},{"Bearer":[]}],"x-gateway-scopes":["things.read"],"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}},{"name":"page_size","in":"query","schema":{"type":"integer"}},{"name":"tags","in":"query","schema":{"type":"array"}},{"name":"where","in":"query","content":{"application/json":{"schema":{"type":"object"}}}}],"responses":{"200":{"content":{"application/json":{}}}}},
  "put":{"operationId":"updateThing","summary":"Change a thing.","tags":["things"],"security":[{"Gateway-Key":[]}],"x-gateway-scopes":["things.update"],"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}},"responses":{"200":{"content":{"application/json":{}}}}}},
 "/open":{"get":{"operationId":"open","tags":["things"],"security":[],"responses":{"200":{"content":{"application/json":{}}}}}},
 "/stream":{"get":{"operationId":"tail","tags":["things"],"security":[{"Gateway-Key":[]}],"x-gateway-scopes":["things.read"],"responses":{"200":{"content":{"text/event-stream":{}}}}}},
 "/form":{"post":{"operationId":"form","tags":["things"],"security":[{"Gateway-Key":[]}],"x-gateway-scopes":["things.read"],"requestBody":{"content":{"application/x-www-form-urlencoded":{}}},"responses":{"200":{"content":{"application/json":{}}}}}},
 "/people":{"get":{"operationId":"people","tags":["things"],"security":[{"Bearer":[]}],"x-gateway-scopes":["things.read"],"responses":{"200":{"content":{"application/json":{}}}}}},
 "/old/{id}":{"get":{"operationId":"getThingAlias1","tags":["things"],"security":[{"Gateway-Key":[]}],"x-gateway-scopes":["things.read"],"responses":{"200":{"content":{"application/json":{}}}}}},
 "/chat":{"post":{"operationId":"chat","tags":["inference"],"security":[{"Gateway-Key":[]}],"x-gateway-scopes":["things.read"],"responses":{"200":{"content":{"application/json":{}}}}}}}}`

// send sends a message as a caller with scopes, past the engine.
func send(t *testing.T, api toolbox.API, message string, scopes ...string) string {
	t.Helper()
	r := toolbox.New(api, func() (json.RawMessage, error) { return json.RawMessage(some), nil }).Route()
	r.Do, r.Public, r.OptionalAuth = wrap(r.Do, scopes), true, false
	h, err := admin.NewHandler(admin.Deps{Resources: resources(t)}, admin.Family{Name: "docs", Routes: []admin.Route{r}})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("POST", "/v1/mcp?writes=true", strings.NewReader(message))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Gateway-Api-Key", "the key")
	req.Header.Set("Cookie", "session=1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	var text struct {
		Result struct{ Content []struct{ Text string } }
		Error  json.RawMessage
	}
	if err := json.Unmarshal(w.Body.Bytes(), &text); err != nil {
		t.Fatal(err, w.Body.String())
	}
	if len(text.Result.Content) == 1 {
		return text.Result.Content[0].Text
	}
	return string(text.Error)
}

func resources(t *testing.T) *resource.Resources {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return resource.New(s)
}

func wrap(do func(*admin.Call) (any, error), scopes []string) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) {
		c.Caller = admin.Caller{KeyID: "k", Scope: store.Scope{Org: "o"}, Scopes: identity.NewScopeSet(scopes...)}
		return do(c)
	}
}

func call(name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
}

// TestToolsAreOperations: the list of tools, and the API calls they make, in-process and
// remote.
func TestToolsAreOperations(t *testing.T) {
	t.Parallel()
	tools, err := toolbox.Catalog(json.RawMessage(some))
	if err != nil || len(tools) != 2 || tools[0].Name != "getThing" || tools[1].Name != "updateThing" {
		t.Fatalf("%+v %v", tools, err)
	}
	got := make(chan *http.Request, 10)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got <- r
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), raw)
	})
	far := httptest.NewServer(echo)
	defer far.Close()
	for where, api := range map[string]toolbox.API{"inside": toolbox.LocalAPI{Handler: func() http.Handler { return echo }}, "outside": toolbox.RemoteAPI{Base: far.URL + "/v1/", Transport: http.DefaultTransport}} {
		for message, want := range map[string]string{
			call("getThing", `{"id":"a/b c","page_size":5,"tags":["x","y"],"where":{"n":1}}`): `GET /v1/things/a%2Fb%20c?page_size=5&tags=x%2Cy&where=%7B%22n%22%3A1%7D `,
			call("updateThing", `{"id":"a","body":{"n":1.50}}`):                               `PUT /v1/things/a {"n":1.50}`,
		} {
			if text := send(t, api, message, "things.read"); text != want {
				t.Errorf("%s: %s\nwant %s", where, text, want)
			}
			if r := <-got; r.Header.Get("X-Gateway-Api-Key") != "the key" || r.Header.Get("Cookie") != "" || (r.Method == "PUT") != (r.Header.Get("Content-Type") == "application/json") {
				t.Errorf("%s: %s %v", where, r.Method, r.Header)
			}
		}
	}
	if text := send(t, toolbox.RemoteAPI{Transport: http.DefaultTransport}, call("getThing", `{"id":"a"}`), "things.read"); !strings.Contains(text, "GATEWAY_PUBLIC_URL") {
		t.Errorf("%s", text)
	}
	if text := send(t, toolbox.RemoteAPI{Base: "http://127.0.0.1:1/v1", Transport: http.DefaultTransport}, call("getThing", `{"id":"a"}`), "things.read"); !strings.Contains(text, `"code":503`) {
		t.Errorf("%s", text)
	}
}

// TestLargeAnswers: large responses explain how to request less, and are not buffered.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	for size, large := range map[int]bool{200_000: false, 200_001: true, 3_000_000: true} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range size / 1000 {
				_, _ = w.Write([]byte(strings.Repeat("x", 1000)))
			}
			_, _ = w.Write([]byte(strings.Repeat("x", size%1000)))
		})
		far := httptest.NewServer(h)
		for where, api := range map[string]toolbox.API{"inside": toolbox.LocalAPI{Handler: func() http.Handler { return h }}, "outside": toolbox.RemoteAPI{Base: far.URL, Transport: http.DefaultTransport}} {
			text := send(t, api, call("getThing", `{"id":"a"}`), "things.read")
			if strings.Contains(text, "with page_size") != large || strings.Contains(text, "xxx") == large {
				t.Errorf("%s: %d: %.200s", where, size, text)
			}
		}
		far.Close()
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xff, 0xfe}) })
	if text := send(t, toolbox.LocalAPI{Handler: func() http.Handler { return h }}, call("getThing", `{"id":"a"}`), "things.read"); !strings.Contains(text, "not text") {
		t.Errorf("%s", text)
	}
}

// TestTheWholeDocumentMakesTools: their names fit the protocol, and none is there twice.
func TestTheWholeDocumentMakesTools(t *testing.T) {
	t.Parallel()
	tools, err := toolbox.Catalog(document.JSON)
	if err != nil || len(tools) < 150 {
		t.Fatalf("%d %v", len(tools), err)
	}
	seen := map[string]bool{}
	for _, tool := range tools {
		if seen[tool.Name] || len(tool.Name) > 128 || strings.Trim(tool.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") != "" || tool.Path == toolbox.Path {
			t.Errorf("%+v", tool)
		}
		seen[tool.Name] = true
	}
}
