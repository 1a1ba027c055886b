package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

var updateMistakes = flag.Bool("update-mistakes", false, "write the answers to wrong requests")

const mistakesFile = "testdata/mistakes.txt"

// varying are parts of responses that differ between runs.
var varying = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|127\.0\.0\.1:[0-9]+`)

// TestMistakesOfNewUsersAreExplained sends the requests of testdata/mistakes.txt, each a line
// with the key, the method, the path, headers and the body. The line after it is the response: a
// sentence that states the field and what is allowed.
func TestMistakesOfNewUsersAreExplained(t *testing.T) {
	t.Parallel()
	r := start(t)
	dead := httptest.NewServer(nil)
	dead.Close()
	team := r.admin("POST", "/admin/workspaces", `{"name":"Team A"}`)["id"].(string)
	r.admin("POST", "/integrations", `{"name":"Closed","slug":"closed","ai_provider_id":"openai","key":"sk-test"}`)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Dead","slug":"dead","workspace_id":"default","provider":"openai","key":"sk-test","custom_host":%q}`, dead.URL))
	owner := r.person("owner@example.com", "admin")
	r.admin("PUT", "/admin/users/"+owner+"/ownership", `{"owner":true}`)
	narrow := r.admin("POST", "/api-keys/organisation/service", `{"name":"narrow","scopes":["configs.list"]}`)["key"].(string)
	named := strings.NewReplacer("{owner}", owner, "{team}", team)
	keys := map[string]string{"admin": adminKey, "work": workspaceKey, "narrow": narrow, "none": "", "wrong": "no-such-key"}
	raw, err := os.ReadFile(mistakesFile)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	sent := 0
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "    ") {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || line[0] == '#' {
			continue
		}
		sent++
		fmt.Fprintf(&out, "    %s\n", varying.ReplaceAllString(r.mistake(named.Replace(line), keys), "<...>"))
	}
	if sent < 60 {
		t.Errorf("%d requests", sent)
	}
	switch {
	case *updateMistakes:
		if err := os.WriteFile(mistakesFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	case out.String() != string(raw):
		t.Errorf("differs from %s; -args -update-mistakes writes it:\n%s", mistakesFile, out.String())
	}
}

// mistake sends the request of a line and returns the status and the message.
func (r *running) mistake(line string, keys map[string]string) string {
	r.t.Helper()
	head, body, _ := strings.Cut(line, " {")
	if body != "" {
		body = "{" + body
	}
	words := strings.Fields(head)
	headers := []string{"X-Gateway-Api-Key", keys[words[0]]}
	for _, h := range words[3:] {
		name, value, _ := strings.Cut(h, ":")
		headers = append(headers, name, value)
	}
	got := r.call(words[1], words[2], body, headers...)
	var shape struct {
		Message string
		Error   json.RawMessage
		Data    struct{ Message string }
	}
	if err := json.Unmarshal([]byte(got.body), &shape); err != nil {
		return fmt.Sprintf("%d %s", got.status, got.body)
	}
	message := shape.Data.Message
	if message == "" {
		message = shape.Message
	}
	if message == "" {
		message = got.body
	}
	return fmt.Sprintf("%d %s", got.status, message)
}
