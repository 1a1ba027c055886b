package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A file of logs, from the draft to its lines, as a client meets it.
func TestLogsAreExported(t *testing.T) {
	t.Parallel()
	r := start(t)
	for i := range 3 {
		if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", fmt.Sprint("Hello ", i), "")); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	logs := r.logs(3, workspaceKey)
	made := r.admin("POST", "/logs/exports", fmt.Sprintf(`{"workspace_id":%q,"filters":{"status_code":"200"},"requested_data":["id","ai_model","request"]}`, r.workspace()))
	if made["total"] != 3.0 {
		t.Errorf("%v", made)
	}
	at := fmt.Sprintf("/logs/exports/%s", made["id"])
	in := "?workspace_id=" + r.workspace()
	r.admin("POST", at+"/start"+in, "")
	eventually(t, func() error {
		if got := r.admin("GET", at+in, ""); got["status"] != "success" || got["rows"] != 3.0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	resp, err := http.Get(r.admin("GET", at+"/download"+in, "")["signed_url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	file, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Disposition") != `attachment; filename="logs.jsonl"` || int64(len(file)) != resp.ContentLength {
		t.Fatalf("%v %d %v %s", err, resp.StatusCode, resp.Header, file)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
		if want := fmt.Sprintf(`{"id":%q,"ai_model":`, logs[i]["id"]); !strings.HasPrefix(line, want) || !strings.Contains(line, `"content":"Hello `) || strings.Contains(line, workspaceKey) {
			t.Errorf("%s", line)
		}
	}
}
