package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// checkBatch runs a batch of three rows on the stores of AWS.
func checkBatch(t *testing.T, url string) {
	t.Helper()
	call := func(method, path, body string, headers ...string) reply {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := 0, asGateway("workspace-key-of-this-test", headers...); i+1 < len(v); i += 2 {
			req.Header.Set(v[i], v[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 200 {
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, got)
		}
		return reply{res.StatusCode, res.Header, string(got)}
	}
	file := call("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+chatRows(3, "@mock/gpt-4o-mini", greeting)), formType...).json(t)["id"]
	id := call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"immediate"}`, file), "Content-Type", "application/json").json(t)["id"].(string)
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		b := call("GET", "/batches/"+id, "").json(t)
		if b["status"] == "completed" {
			if fmt.Sprint(b["request_counts"]) != counts(3, 3, 0) {
				t.Errorf("%v", b)
			}
			break
		}
		if time.Now().After(deadline) || b["status"] == "failed" {
			t.Fatalf("%v", b)
		}
	}
	if rows := readRows(t, call("GET", "/batches/"+id+"/output", "").body); len(rows) != 3 || rows[2].CustomID != "row-2" {
		t.Errorf("%+v", rows)
	}
}
