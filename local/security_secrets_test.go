package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/shared/store"
)

// loggedProcess is a gateway in a process of its own, of which every line is kept.
type loggedProcess struct {
	*process
	mu  sync.Mutex
	out bytes.Buffer
}

func (h *loggedProcess) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.Write(p)
}

func (h *loggedProcess) output() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.String()
}

// listen starts a gateway on the folder and keeps what it says.
func listen(t *testing.T, dir string) *loggedProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GATEWAY_TEST_CHILD="+dir, "GATEWAY_TEST_ADDR=127.0.0.1:0")
	h := &loggedProcess{process: &process{cmd: cmd}}
	cmd.Stdout, cmd.Stderr = h, h
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, func() error {
		lines := bufio.NewScanner(strings.NewReader(h.output()))
		for lines.Scan() {
			if base, ok := strings.CutPrefix(lines.Text(), "gateway ready on "); ok {
				h.base = base
				return nil
			}
		}
		return fmt.Errorf("not ready: %s", h.output())
	})
	return h
}

// Canaries: credentials, which nobody may ever read again, and words of
// prompts and responses, which only the log's own detail shows.
const (
	canaryKey    = "CANARYkey0123456789"
	canaryPrompt = "CANARYprompt0123456789"
)

// finds reports whether text holds a canary, plain or in an encoding that gives it
// away.
func finds(text, canary string) bool {
	for _, form := range []string{canary, hex.EncodeToString([]byte(canary)), url.QueryEscape("=" + canary)} {
		if strings.Contains(text, form) {
			return true
		}
	}
	for i := range 3 { // base64 of it, wherever it stands
		enc := base64.RawStdEncoding.EncodeToString([]byte("aaa"[:i] + canary))
		if strings.Contains(text, enc[4:len(enc)-4]) {
			return true
		}
	}
	return false
}

// TestCanariesStayWhereTheyBelong sends marked keys, credentials and prompts on
// every path that can fail or succeed, and then reads all that the gateway
// wrote: its output, its responses, its books, its audit log, its folder.
//
//lane:exhaustive
func TestCanariesStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startIn(t, dir).stop() // makes the first keys, so that the process below does not print them
	h := listen(t, dir)
	r := &running{t: t, base: h.base}
	mock := r.mockBase()
	ws := member(r.get("/workspaces/default", adminKey), "id").(string)

	admin := r.sendCredentials(ws, mock)
	prompts := r.sendPrompts(mock)
	for _, got := range admin {
		if finds(got.body, canaryKey) || finds(fmt.Sprint(got.header), canaryKey) {
			t.Errorf("an answer of the administration shows a credential: %d %s", got.status, got.body)
		}
	}
	for _, got := range prompts {
		if finds(got.body, canaryKey) || finds(fmt.Sprint(got.header), canaryKey) {
			t.Errorf("an answer shows a credential: %d %s", got.status, got.body)
		}
		if got.status >= 400 && (finds(got.body, canaryPrompt) || finds(fmt.Sprint(got.header), canaryPrompt)) {
			t.Errorf("an error of the gateway shows the prompt: %d %s", got.status, got.body)
		}
		if got.status >= 500 && got.header.Get("X-Gateway-Gateway-Exception") != "" {
			t.Errorf("the gateway failed: %d %s", got.status, got.body)
		}
	}
	r.readEverything(t, ws, len(prompts))

	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, h.output())
	}
	raw := []string{canaryKey, canaryPrompt, workspaceKey, adminKey, "mock-key-of-this-gateway"}
	for _, canary := range raw {
		if finds(h.output(), canary) {
			t.Errorf("%s is in the process's output:\n%s", canary, h.output())
		}
	}
	searchFolder(t, dir, raw)
	searchBooks(t, dir, raw)
}

// sendCredentials saves marked credentials, well and badly.
func (r *running) sendCredentials(ws, mock string) (answers []reply) {
	send := func(method, path, body string) {
		fill := strings.NewReplacer("WS", ws, "KEY", canaryKey)
		answers = append(answers, r.call(method, fill.Replace(path), fill.Replace(body), "X-Gateway-Api-Key", adminKey))
	}
	must := func(method, path, body string) {
		r.t.Helper()
		if send(method, path, body); answers[len(answers)-1].status != 200 {
			r.t.Fatalf("%s %s: %s", method, path, answers[len(answers)-1].body)
		}
	}
	must("POST", "/virtual-keys", `{"name":"vk","slug":"canary-vk","provider":"openai","key":"sk-KEY","workspace_id":"WS","customHost":"`+mock+`","customHeaders":{"X-Team":"KEY"}}`)
	must("POST", "/integrations", `{"name":"in","slug":"canary-in","ai_provider_id":"bedrock","configurations":{"aws_auth_type":"accessKey","aws_access_key_id":"AKIAABCDEFGHIJKLMNOP","aws_secret_access_key":"KEY","aws_region":"us-east-1"}}`)
	must("POST", "/configs", `{"name":"c","workspace_id":"WS","config":{"strategy":{"mode":"fallback"},"targets":[{"provider":"openai","api_key":"KEY","custom_host":"`+mock+`"},{"provider":"bedrock","aws_access_key_id":"AKIAABCDEFGHIJKLMNOP","aws_secret_access_key":"KEY","aws_region":"us-east-1"}]}}`)
	must("PUT", "/virtual-keys/canary-vk?workspace_id=WS", `{"key":"sk-other-KEY"}`)
	must("PUT", "/virtual-keys/canary-vk?workspace_id=WS", `{"note":"changed"}`)
	for _, bad := range []struct{ path, body string }{
		{"/virtual-keys", `{"name":"vk2","provider":"openai","key":"KEY`}, {"/virtual-keys", `{"name":"vk2","provider":"openai","key":["KEY"],"workspace_id":"WS"}`},
		{"/virtual-keys", `{"name":"vk2","provider":"nobody","key":"KEY","workspace_id":"WS"}`}, {"/virtual-keys", `{"name":"","key":"KEY","key":"KEY"}`},
		{"/virtual-keys", `{"name":"vk2","slug":"canary-vk","provider":"openai","key":"KEY","workspace_id":"WS"}`}, {"/virtual-keys", `{"key":"KEY"} KEY`},
		{"/integrations", `{"name":"in2","ai_provider_id":"bedrock","configurations":{"aws_secret_access_key":{"x":"KEY"}},"key":1}`},
		{"/integrations", `{"name":"in2","ai_provider_id":"openai","key":"KEY","configurations":{"custom_host":"http://user:KEY@169.254.169.254/"}}`},
		{"/integrations", `{"name":"in2","ai_provider_id":"openai","key":"KEY\n"}`},
		{"/configs", `{"name":"c2","workspace_id":"WS","config":{"provider":"openai","api_key":["KEY"]}}`},
		{"/configs", `{"name":"c2","workspace_id":"WS","config":{"provider":"nobody","api_key":"KEY"}}`},
		{"/configs", `{"name":"c2","workspace_id":"WS","config":{"provider":"openai","api_key":"KEY","retry":{"attempts":"many"}}}`},
	} {
		send("POST", bad.path, bad.body)
		if got := answers[len(answers)-1]; got.status < 400 || got.status > 499 {
			r.t.Errorf("%s %s: %d %s", bad.path, bad.body, got.status, got.body)
		}
	}
	// Credentials in a query and in headers, where they do not belong.
	answers = append(answers,
		r.call("GET", "/configs?api_key="+canaryKey+"&page_size=0", "", "X-Gateway-Api-Key", adminKey),
		r.call("DELETE", "/configs/none?token="+canaryKey, "", "X-Gateway-Api-Key", adminKey, "Authorization", "Bearer "+canaryKey, "X-Api-Key", canaryKey),
		r.call("POST", "/configs", "{}", "X-Gateway-Api-Key", canaryKey))
	return answers
}

// sendPrompts sends marked prompts with marked credentials, on paths that end
// well, are rejected, and break.
func (r *running) sendPrompts(mock string) (answers []reply) {
	send := func(path, body string, headers ...string) reply {
		got, err := r.try("POST", path, strings.ReplaceAll(body, "PROMPT", canaryPrompt), headers...)
		if err == nil {
			answers = append(answers, got)
		}
		return got
	}
	ways := [][]string{
		{"X-Gateway-Provider", "@canary-vk"},
		{"X-Gateway-Provider", "openai", "Authorization", "Bearer " + canaryKey, "X-Gateway-Custom-Host", mock},
		{"X-Gateway-Config", `{"provider":"openai","api_key":"` + canaryKey + `","custom_host":"` + mock + `"}`},
		{"X-Gateway-Config", `{"provider":"openai","api_key":"` + canaryKey + `","custom_host":"` + mock + `"`},
		{"X-Gateway-Config", `{"provider":"nobody","api_key":"` + canaryKey + `"}`},
		{"X-Gateway-Provider", "openai", "Authorization", "Bearer " + canaryKey, "X-Gateway-Custom-Host", "http://127.0.0.1:1"},
		{"X-Gateway-Provider", "azure-openai", "Authorization", "Bearer " + canaryKey, "X-Gateway-Azure-Resource-Name", "a/b", "X-Gateway-Azure-Deployment-Id", "d", "X-Gateway-Azure-Api-Version", "v"},
		{"X-Gateway-Provider", "@mock", "Cookie", "session=" + canaryKey, "X-My-Secret", canaryKey, "X-Gateway-Sensitive-Headers", "x-my-secret"},
	}
	if got := send("/chat/completions", chatBody("gpt-4o-mini", "PROMPT mock: say=PROMPT", ""), ways[0]...); got.status != 401 && got.status != 200 {
		r.t.Fatalf("the saved canary: %d %s", got.status, got.body)
	}
	for _, way := range ways {
		send("/chat/completions", chatBody("gpt-4o-mini", "PROMPT", ""), way...)
		send("/proxy/chat/completions", chatBody("gpt-4o-mini", "PROMPT", ""), way...)
	}
	for _, fault := range []string{"say=words", "status=429", "status=500", "status=400", "html", "drop", "cut=after:2", "garbage=after:2", "error-event=server_error after=2", "delay=1s"} {
		for _, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5"} {
			for _, stream := range []string{"true", "false"} {
				body := chatBody(model, "PROMPT\nmock: "+fault, `,"max_tokens":50,"stream":`+stream)
				timeout := ""
				if strings.HasPrefix(fault, "delay") {
					timeout = "50"
				}
				send("/chat/completions", body, "X-Gateway-Request-Timeout", timeout)
				send("/messages", body, "X-Gateway-Request-Timeout", timeout)
			}
		}
	}
	for _, body := range []string{
		`{"model":"@mock/m","messages":"PROMPT"}`, `{"model":"@mock/m","messages":["PROMPT"]}`,
		`{"model":"@mock/m","messages":[{"role":"user","content":"PROMPT"}`,
		`{"model":"@mock/m","messages":[{"role":"user","content":"PROMPT"}],"temperature":"PROMPT"}`, `{"model":"@mock/m","messages":[{"role":"user","content":"PROMPT"}],"n":"PROMPT"}`,
		`{"model":"@mock/m","messages":[{"role":"user","content":"PROMPT"}],"stream":"PROMPT"}`,
		`{"model":"@mock/m","messages":[{"role":"user","content":"PROMPT"}],"tools":[{"type":"function","function":{"name":"PROMPT PROMPT"}}]}`,
		`{"model":"@mock/m","messages":[{"role":"user","content":"PROMPT` + "\x01" + `"}]}`, `{"model":"@mock/m","prompt":"PROMPT","messages":[{"role":"user","content":{"a":"PROMPT"}}]}`,
		`{"model":"@mock-anthropic/m","messages":[{"role":"tool","tool_call_id":"x","content":"PROMPT"}]}`, `{"model":"@mock-anthropic/m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:PROMPT"}}]}]}`,
		`{"model":"@mock-anthropic/m","messages":[{"role":"user","content":"PROMPT"}],"stop":[1,"PROMPT"]}`, `PROMPT`, `"PROMPT"`,
	} {
		for _, path := range []string{"/chat/completions", "/messages", "/completions"} {
			send(path, body)
		}
	}
	send("/embeddings", `{"model":"@mock/text-embedding-3-small","input":"PROMPT"}`)
	send("/embeddings", `{"model":"@mock/text-embedding-3-small","input":{"x":"PROMPT"}}`)
	send("/completions", `{"model":"@mock/gpt-3.5-turbo-instruct","prompt":"PROMPT"}`)
	send("/proxy/chat/completions?key="+canaryKey, chatBody("gpt-4o-mini", "PROMPT", ""), "X-Gateway-Provider", "@mock", "Cookie", canaryKey)
	send("/proxy/unknown/path", "PROMPT", "X-Gateway-Provider", "@mock", "Content-Type", "text/plain")
	return answers
}

// readEverything asks every GET route for what is there.
func (r *running) readEverything(t *testing.T, ws string, sent int) {
	t.Helper()
	var ids []string
	eventually(t, func() error {
		list := r.get("/logs?page_size=1000&workspace_id="+ws, adminKey)
		if n := list["total"].(float64); n < float64(sent) {
			return fmt.Errorf("%v logs of %d", n, sent)
		}
		ids = ids[:0]
		for _, row := range list["data"].([]any) {
			ids = append(ids, member(row, "id").(string))
		}
		return nil
	})
	storedCount := 0
	for _, id := range ids {
		got := r.call("GET", "/logs/"+id, "")
		if finds(got.body, canaryKey) || strings.Contains(got.body, workspaceKey) {
			t.Errorf("a log shows a credential: %s", got.body)
		}
		if strings.Contains(got.body, canaryPrompt) {
			storedCount++
		}
	}
	if storedCount == 0 {
		t.Error("no log shows its prompt: body logging is off, and this test proves nothing")
	}
	times := "start_time=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)) + "&end_time=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	eventually(t, func() error {
		if records := r.get("/audit-logs?page_size=100&"+times, adminKey)["records"].([]any); len(records) < 18 {
			return fmt.Errorf("%d audit records", len(records))
		}
		return nil
	})
	for _, path := range []string{
		"/audit-logs?page_size=100&" + times, "/logs?page_size=1000&workspace_id=" + ws, "/configs?workspace_id=" + ws, "/virtual-keys?workspace_id=" + ws, "/virtual-keys/canary-vk?workspace_id=" + ws,
		"/providers?workspace_id=" + ws, "/providers/canary-vk?workspace_id=" + ws, "/integrations", "/integrations?workspace_id=" + ws, "/integrations/canary-in", "/integrations/canary-in/models",
		"/api-keys?page_size=1000", "/workspaces", "/workspaces/default", "/analytics/groups/ai-models?" + lastHour(), "/analytics/graphs/errors/stacks?" + lastHour(), "/openapi.json",
	} {
		got := r.call("GET", path, "", "X-Gateway-Api-Key", adminKey)
		if got.status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
		for _, canary := range []string{canaryKey, canaryPrompt, workspaceKey, adminKey, "mock-key-of-this-gateway"} {
			if finds(got.body, canary) {
				t.Errorf("GET %s shows %s: %s", path, canary, got.body)
			}
		}
	}
	for _, row := range r.get("/configs?workspace_id="+ws, adminKey)["data"].([]any) {
		for _, path := range []string{"/configs/" + member(row, "slug").(string), "/configs/" + member(row, "slug").(string) + "/versions"} {
			if got := r.call("GET", path+"?workspace_id="+ws, "", "X-Gateway-Api-Key", adminKey); got.status != 200 || finds(got.body, canaryKey) {
				t.Errorf("GET %s: %d %s", path, got.status, got.body)
			}
		}
	}
}

// searchFolder looks for canaries in every file of the data folder.
func searchFolder(t *testing.T, dir string, canaries []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, canary := range canaries {
			if at := bytes.Index(text, []byte(canary)); at >= 0 || finds(string(text), canary) {
				t.Errorf("%s is in %s, at %d: %.200q", canary, path, at, text[max(at-100, 0):])
			}
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Errorf("%d files in the folder, %v", files, err)
	}
}

// searchBooks looks for canaries in what is stored compressed: the records.
func searchBooks(t *testing.T, dir string, canaries []string) {
	t.Helper()
	r := startIn(t, dir)
	defer r.stop()
	all := archived(t, r.g)
	for i := range all {
		text, err := json.Marshal(&all[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, canary := range canaries {
			if finds(string(text), canary) {
				t.Errorf("a record shows %s: %s", canary, text)
			}
		}
	}
	if len(all) == 0 {
		t.Error("no records")
	}
	if _, ok, err := r.g.core.Resources.Get(context.Background(), store.Scope{Org: "default"}, "WORKSPACE", "default"); err != nil || !ok {
		t.Errorf("the folder cannot be read again: %v", err)
	}
}
