package gate

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"gateway/shared/wire"
)

// FuzzRequest parses arbitrary requests at any path. A valid request contains everything that
// decisions depend on; an error can be encoded in both bindings.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[{"text":"a"}],"taskId":"t"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}`, `{"message":{"parts":[]}}`, `{"request":{"content":[]}}`, `[]`, ``, `null`,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":7}`, `{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"url":"u"}}`,
	} {
		for _, path := range []string{"/a", "/a/message:send", "/a/v1/message:send", "/a/tasks/t:cancel", "/a/ten/tasks/t/pushNotificationConfigs", "/a//", "/a/%zz", "/a/v1", "/a/v1/tasks/t/pushNotificationConfigs/c"} {
			f.Add([]byte(body), path, "1.0", "POST")
			f.Add([]byte(body), path, "", "GET")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, path, version, method string) {
		parts, ok := splitPath(path)
		if !ok || len(parts) == 0 {
			return
		}
		r := &http.Request{Method: method, URL: &url.URL{RawQuery: path}, Header: http.Header{headerVersion: {version}, "Content-Type": {"application/json"}}}
		q, refused := read(r, parts[1:], body)
		if refused != nil {
			for _, raw := range [][]byte{refused.encodeRPC(true), refused.encodeRPC(false), refused.encodeREST(true), refused.encodeREST(false)} {
				if !json.Valid(raw) {
					t.Fatalf("%s", raw)
				}
			}
			return
		}
		if q.op == nil {
			t.Fatal("no operation")
		}
		if q.op.taskField != "" && q.params[q.op.taskField].(string) == "" {
			t.Fatal("no task")
		}
		if len(q.raw) > 0 && wire.CheckStrict(q.raw, maxDepth) != nil {
			t.Fatalf("params that are not JSON: %s", q.raw)
		}
	})
}
