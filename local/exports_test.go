package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// exported has a file of logs written, and fetches it by its link.
func (r *running) exported(form, name string) []byte {
	r.t.Helper()
	made := r.admin("POST", "/logs/exports", fmt.Sprintf(`{"workspace_id":%q,"filters":{"status_code":"200"},%s}`, r.workspace(), form))
	at, in := fmt.Sprintf("/logs/exports/%s", made["id"]), "?workspace_id="+r.workspace()
	r.admin("POST", at+"/start"+in, "")
	eventually(r.t, func() error {
		if got := r.admin("GET", at+in, ""); got["status"] != "success" || got["rows"] != made["total"] {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	resp, err := http.Get(r.admin("GET", at+"/download"+in, "")["signed_url"].(string))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	file, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Disposition") != `attachment; filename="`+name+`"` || int64(len(file)) != resp.ContentLength {
		r.t.Fatalf("%v %d %v %s", err, resp.StatusCode, resp.Header, file)
	}
	return file
}

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
	file := r.exported(`"requested_data":["id","ai_model","request"]`, "logs.jsonl")
	for i, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
		if want := fmt.Sprintf(`{"id":%q,"ai_model":`, logs[i]["id"]); !strings.HasPrefix(line, want) || !strings.Contains(line, `"content":"Hello `) || strings.Contains(line, workspaceKey) {
			t.Errorf("%s", line)
		}
	}
	packed := r.exported(`"requested_data":["ai_model","id","request"],"format":"parquet","compression":"zstd"`, "logs.parquet")
	type row struct {
		Model   string `parquet:"ai_model,optional"`
		ID      string `parquet:"id,optional"`
		Request string `parquet:"request,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(packed), int64(len(packed)))
	if err != nil || len(rows) != 3 {
		t.Fatal(len(rows), err)
	}
	for i, got := range rows {
		if got.ID != logs[i]["id"] || got.Model == "" || !strings.Contains(got.Request, `"content":"Hello `) {
			t.Errorf("%+v", got)
		}
	}
}
