package mockprovider

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"
)

var assistantsBeta = []string{"Openai-Beta", "assistants=v2", "Anthropic-Version", "", "Authorization", "Bearer mock-key"}

// made makes a thing and gives its id.
func madeAt(t *testing.T, url, path, body string) string {
	t.Helper()
	r := do(t, "POST", url+path, body, assistantsBeta...)
	if r.status != 200 {
		t.Fatalf("%s: %d %s", path, r.status, r.body)
	}
	return at(decode(t, r.body), "id").(string)
}

func aTextFile(t *testing.T, url, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", "user_data")
	part, _ := w.CreateFormFile("file", name)
	_, _ = part.Write([]byte(content))
	_ = w.Close()
	r := do(t, "POST", url+"/v1/files", b.String(), "Content-Type", w.FormDataContentType())
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return at(decode(t, r.body), "id").(string)
}

// What OpenAI refuses of things that it keeps.
func TestKeptThingsAreStrict(t *testing.T) {
	_, url := start(t, Options{})
	file := aTextFile(t, url, "a.txt", "a fox")
	assistant := madeAt(t, url, "/v1/assistants", `{"model":"gpt-4o"}`)
	thread := madeAt(t, url, "/v1/threads", `{"messages":[{"role":"user","content":"x"}]}`)
	store := madeAt(t, url, "/v1/vector_stores", `{"file_ids":["`+file+`"]}`)
	upload := madeAt(t, url, "/v1/uploads", `{"bytes":3,"filename":"a","mime_type":"text/plain","purpose":"user_data"}`)
	conversation := madeAt(t, url, "/v1/conversations", `{}`)
	eval := madeAt(t, url, "/v1/evals", `{"data_source_config":{},"testing_criteria":[]}`)
	run := madeAt(t, url, "/v1/threads/"+thread+"/runs", `{"assistant_id":"`+assistant+`"}`)
	names := strings.Repeat("n", 257)
	for _, c := range []struct {
		method, path, body string
		status             int
		param              string
	}{
		{"POST", "/v1/assistants", `{}`, 400, ""},
		{"POST", "/v1/assistants", `{"model":"gpt-4o","file_ids":[]}`, 400, "file_ids"},
		{"POST", "/v1/assistants", `{"model":"gpt-4o","name":"` + names + `"}`, 400, "name"},
		{"POST", "/v1/assistants", `{"model":"gpt-4o","tools":[{"type":"retrieval"}]}`, 400, "tools[0].type"},
		{"POST", "/v1/assistants", `{"model":"gpt-4o","metadata":{"a":1}}`, 400, "metadata.a"},
		{"POST", "/v1/assistants", `{"model":"gpt-4o","tool_resources":{"file_search":{"vector_store_ids":["vs_x"]}}}`, 404, "id"},
		{"GET", "/v1/assistants?limit=101", ``, 400, "limit"},
		{"GET", "/v1/assistants?order=up", ``, 400, "order"},
		{"GET", "/v1/assistants?after=asst_x", ``, 400, "after"},
		{"POST", "/v1/threads", `{"messages":[{"role":"system","content":"x"}]}`, 400, "messages[0].role"},
		{"POST", "/v1/threads/" + thread + "/messages", `{"role":"user"}`, 400, "content"},
		{"POST", "/v1/threads/" + thread + "/messages", `{"role":"user","content":"x"}`, 400, ""}, // a run is active
		{"POST", "/v1/threads/" + thread + "/runs", `{"assistant_id":"` + assistant + `"}`, 400, ""},
		{"POST", "/v1/threads/" + thread + "/runs", `{}`, 400, "assistant_id"},
		{"POST", "/v1/threads/" + thread + "/runs", `{"assistant_id":"asst_x"}`, 404, "id"},
		{"POST", "/v1/threads/runs", `{"assistant_id":"` + assistant + `","max_prompt_tokens":1}`, 400, "max_prompt_tokens"},
		{"POST", "/v1/threads/" + thread + "/runs/" + run + "/cancel", `{}`, 400, ""},
		{"POST", "/v1/threads/" + thread + "/runs/" + run + "/submit_tool_outputs", `{"tool_outputs":[]}`, 400, ""},
		{"GET", "/v1/threads/thread_x/runs/" + run, ``, 404, "id"},
		{"POST", "/v1/vector_stores", `{"file_ids":["file-x"]}`, 404, "id"},
		{"POST", "/v1/vector_stores/" + store + "/files", `{}`, 400, "file_id"},
		{"POST", "/v1/vector_stores/" + store + "/file_batches", `{"file_ids":[]}`, 400, "file_ids"},
		{"POST", "/v1/vector_stores/" + store + "/search", `{}`, 400, "query"},
		{"POST", "/v1/vector_stores/" + store + "/search", `{"query":"x","max_num_results":51}`, 400, "max_num_results"},
		{"POST", "/v1/uploads", `{"bytes":0,"filename":"a","mime_type":"text/plain","purpose":"user_data"}`, 400, "bytes"},
		{"POST", "/v1/uploads/" + upload + "/complete", `{"part_ids":["part_x"]}`, 404, "id"},
		{"POST", "/v1/conversations/" + conversation, `{}`, 400, "metadata"},
		{"POST", "/v1/conversations/" + conversation + "/items", `{"items":[]}`, 400, "items"},
		{"POST", "/v1/responses", `{"model":"gpt-4o","input":"x","conversation":"conv_x"}`, 404, ""},
		{"POST", "/v1/responses", `{"model":"gpt-4o","input":"x","conversation":"` + conversation + `","previous_response_id":"resp_x"}`, 400, "previous_response_id"},
		{"POST", "/v1/evals/" + eval + "/runs", `{"data_source":{"type":"jsonl","source":{"type":"file_id","id":"file-x"}}}`, 404, "id"},
		{"POST", "/v1/containers", `{}`, 400, "name"},
		{"GET", "/v1/chat/completions/chatcmpl-x", ``, 404, "id"},
	} {
		r := do(t, c.method, url+c.path, c.body, assistantsBeta...)
		if param, _ := at(decode(t, r.body), "error", "param").(string); r.status != c.status || param != c.param {
			t.Errorf("%s %s %.80s: %d %s, want %d naming %q", c.method, c.path, c.body, r.status, r.body, c.status, c.param)
		}
	}
	if r := do(t, "GET", url+"/v1/threads/"+thread, ""); r.status != 400 || !strings.Contains(string(r.body), "assistants=v2") {
		t.Errorf("without the header: %d %s", r.status, r.body)
	}
}

// Lists are walked in both orders, forwards and backwards, without gaps.
func TestListsOfKeptThings(t *testing.T) {
	_, url := start(t, Options{})
	thread := madeAt(t, url, "/v1/threads", "")
	var ids []string
	for i := range 7 {
		ids = append(ids, madeAt(t, url, "/v1/threads/"+thread+"/messages", fmt.Sprintf(`{"role":"user","content":"%d"}`, i)))
	}
	page := func(query string) (got []string, more bool) {
		r := do(t, "GET", url+"/v1/threads/"+thread+"/messages?"+query, "", assistantsBeta...)
		v := decode(t, r.body)
		for _, m := range at(v, "data").([]any) {
			got = append(got, at(m, "id").(string))
		}
		return got, at(v, "has_more").(bool)
	}
	var all []string
	for after := ""; ; {
		got, more := page("order=asc&limit=3" + after)
		if all = append(all, got...); !more {
			break
		}
		after = "&after=" + got[len(got)-1]
	}
	if fmt.Sprint(all) != fmt.Sprint(ids) {
		t.Errorf("%v, want %v", all, ids)
	}
	if got, _ := page("before=" + ids[4]); fmt.Sprint(got) != fmt.Sprint([]string{ids[6], ids[5]}) {
		t.Errorf("before, newest first: %v", got)
	}
}
