package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/local/mockprovider"
)

// TestSocketsReachNothingOfAnotherWorkspace attacks a workspace from the sockets of another one
// that uses the same integration: its stored responses and their items, its conversations, files
// and vector stores, and its client secrets. Each attempt is rejected, and no id of the first
// workspace reaches the provider.
func TestSocketsReachNothingOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	n := share(t)
	n.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"x"}`, as(n.theirs)...) // it uses the credential
	attackBySockets(n.running, socketAttack{victim: as(n.mine), provider: "@common", attacker: as(n.theirs), shared: true})
}

// TestSocketsReachNothingOfAnotherOrganisation is the same for another organization, which has a
// provider of its own: nothing that the gateway itself stores leads to the first one.
func TestSocketsReachNothingOfAnotherOrganisation(t *testing.T) {
	t.Parallel()
	r := start(t)
	const otherAdmin, otherData = "admin-key-of-the-other-organisation", "workspace-key-of-the-other-organisation"
	r.tenant("other", otherAdmin, otherData)
	elsewhere := mockprovider.New(mockprovider.Options{})
	host, err := elsewhere.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = elsewhere.Close() })
	for _, c := range [][3]string{{adminKey, "own", r.mockBase()}, {otherAdmin, "common", host + "/v1"}} {
		ws := r.call("GET", "/workspaces", "", "X-Gateway-Api-Key", c[0]).json(t)["data"].([]any)[0].(map[string]any)["id"]
		if got := r.call("POST", "/virtual-keys", fmt.Sprintf(`{"name":"vk","slug":%q,"provider":"openai","key":"mock-common","workspace_id":%q,"customHost":%q}`, c[1], ws, c[2]), "X-Gateway-Api-Key", c[0]); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	attackBySockets(r, socketAttack{victim: []string{"X-Gateway-Api-Key", workspaceKey, "X-Gateway-Provider", "@own", "Openai-Beta", "assistants=v2"}, provider: "@own",
		attacker: []string{"X-Gateway-Api-Key", otherData, "X-Gateway-Provider", "@common"}})
}

// socketAttack says who attacks whom.
type socketAttack struct {
	victim, attacker []string // headers
	provider         string   // of the victim
	shared           bool     // both use one credential
}

func attackBySockets(r *running, a socketAttack) {
	t, own, other := r.t, a.victim, a.attacker
	t.Helper()
	ids := map[string]string{
		"file":         r.id("POST", "/files", form("purpose", "vision", "file", "a:b"), append(own[:len(own):len(own)], formType...)...),
		"vector store": r.id("POST", "/vector_stores", `{"name":"v"}`, own...),
		"conversation": r.id("POST", "/proxy/conversations", `{"items":[{"type":"message","role":"user","content":"secret words"}]}`, own...),
	}
	made := r.call("POST", "/responses", `{"model":"gpt-4o-mini","input":"secret words","store":true}`, own...).json(t)
	ids["response"], _ = made["id"].(string)
	ids["item"], _ = member(made, "output/0/id").(string)
	mine := r.talk(own...)
	mine.create(a.provider+"/gpt-4o-mini", "secret words", `,"store":true`)
	completed1, _ := mine.completes()
	ids["response of a socket"], _ = completed1["id"].(string)
	mine.create(a.provider+"/gpt-4o-mini", "secret words", `,"store":false`)
	unstored, _ := mine.completes()
	ids["response that a connection remembers"], _ = unstored["id"].(string)
	for what, id := range ids {
		if id == "" {
			t.Fatalf("no %s: %v", what, ids)
		}
	}
	secret := r.secretOf(`{"session":{"model":"`+a.provider+`/gpt-realtime","instructions":"secret words"}}`, own[:2]...)

	// told is how often the provider was told an id of the first organization.
	leaked := func() (n int) {
		for _, got := range r.mock.Requests(1000) {
			for _, id := range ids {
				if strings.Contains(got.Path+string(got.Body), id) {
					n++
				}
			}
		}
		return n
	}
	before := leaked()
	refused := func(what string, got any, err error) {
		t.Helper()
		text, _ := json.Marshal(got)
		if err != nil || a.shared && !strings.Contains(string(text), `"error"`) || strings.Contains(string(text), "secret words") {
			t.Errorf("%s: %s %v", what, text, err)
		}
	}
	input := func(part string) string {
		return `"model":"gpt-4o-mini","input":[{"role":"user","content":[` + part + `]}]`
	}
	for what, body := range map[string]string{
		"a response":                             `"model":"gpt-4o-mini","input":"x","previous_response_id":"` + ids["response"] + `"`,
		"a response of a socket":                 `"model":"gpt-4o-mini","input":"x","previous_response_id":"` + ids["response of a socket"] + `"`,
		"a response that a connection remembers": `"model":"gpt-4o-mini","input":"x","previous_response_id":"` + ids["response that a connection remembers"] + `"`,
		"an escaped id":                          `"model":"gpt-4o-mini","input":"x","previous_r\u0065sponse_id":"` + strings.Replace(ids["response"], "_", `\u005f`, 1) + `"`,
		"a conversation":                         `"model":"gpt-4o-mini","input":"x","conversation":"` + ids["conversation"] + `"`,
		"a conversation as an object":            `"model":"gpt-4o-mini","input":"x","conversation":{"id":"` + ids["conversation"] + `"}`,
		"an item":                                `"model":"gpt-4o-mini","input":[{"type":"item_reference","id":"` + ids["item"] + `"}]`,
		"a file":                                 input(`{"type":"input_file","file_id":"` + ids["file"] + `"}`),
		"an image":                               input(`{"type":"input_image","file_id":"` + ids["file"] + `"}`),
		"a vector store":                         `"model":"gpt-4o-mini","input":"x","tools":[{"type":"file_search","vector_store_ids":["` + ids["vector store"] + `"]}]`,
		"a file of a container":                  `"model":"gpt-4o-mini","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["` + ids["file"] + `"]}}]`,
		"a saved provider":                       `"model":"` + a.provider + `/gpt-4o-mini","input":"x"`,
	} {
		if a.shared && what == "a saved provider" {
			continue
		}
		headers := other
		if what == "a saved provider" {
			headers = other[:2]
		}
		s := r.talk(headers...)
		s.send(`{"type":"response.create",` + body + `}`)
		got, err := s.read()
		refused(what, got, err)
		if status, _ := got["status"].(float64); (a.shared || what == "a saved provider") && (status < 400 || status >= 500) {
			t.Errorf("%s: %v", what, got)
		}
	}
	// An item_reference of a session names an item of that session.
	for what, event := range map[string]string{
		"a vector store of a session":   `{"type":"session.update","session":{"type":"realtime","tools":[{"type":"file_search","vector_store_ids":["` + ids["vector store"] + `"]}]}}`,
		"a file of a response":          `{"type":"response.create","response":{"conversation":"none","input":[{"type":"message","role":"user","content":[{"type":"input_file","file_id":"` + ids["file"] + `"}]}]}}`,
		"a file of an item":             `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_image","file_id":"` + ids["file"] + `"}]}}`,
		"a response of a session":       `{"type":"response.create","response":{"previous_response_id":"` + ids["response"] + `"}}`,
		"a conversation of a response":  `{"type":"response.create","response":{"conversation":"` + ids["conversation"] + `"}}`,
		"a vector store of a response":  `{"type":"response.create","response":{"tools":[{"type":"file_search","vector_store_ids":["` + ids["vector store"] + `"]}]}}`,
		"a saved prompt with a file":    `{"type":"response.create","response":{"prompt":{"id":"pmpt_1","variables":{"f":{"type":"input_file","file_id":"` + ids["file"] + `"}}}}}`,
		"a vector store, told as a key": `{"type":"session.update","session":{"type":"realtime","tools":[{"type":"file_search","Vector_Store_Ids":["` + ids["vector store"] + `"]}]}}`,
	} {
		s := r.speak("model=gpt-realtime", other...)
		s.send(event)
		got, err := s.read()
		refused(what, got, err)
	}
	for what, session := range map[string]string{
		"a secret for a vector store": `{"session":{"type":"realtime","model":"@common/gpt-realtime","tools":[{"type":"file_search","vector_store_ids":["` + ids["vector store"] + `"]}]}}`,
		"a secret for a provider":     `{"session":{"type":"realtime","model":"` + a.provider + `/gpt-realtime"}}`,
	} {
		if a.shared && what == "a secret for a provider" {
			continue
		}
		got := r.call("POST", "/realtime/client_secrets", session, other[:2]...)
		value, _ := member(got.json(t), "value").(string)
		if got.status == http.StatusOK && what == "a secret for a vector store" { // its session is checked when it begins
			ws, _, err := r.inBrowser("", value)
			if err != nil {
				continue
			}
			s := &realtimeClient{t, ws}
			got, err := s.read()
			for err == nil && (got["type"] == "session.created") {
				got, err = s.read()
			}
			if err == nil {
				refused(what, got, err)
			}
		} else if got.status < 400 || got.status >= 500 {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	// A secret acts for its maker alone, and beside a key for nobody.
	for what, headers := range map[string][]string{
		"a secret as a key":      {"X-Gateway-Api-Key", secret},
		"a secret with a config": {"X-Gateway-Api-Key", "", "protocol", "realtime", "protocol", "openai-insecure-api-key." + secret, "X-Gateway-Provider", "@common"},
		"a cookie":               {"X-Gateway-Api-Key", "", "Cookie", "__Host-gateway-session=gs-x; gateway=" + own[1], "Origin", "https://evil.example"},
		"a key in the query":     {"X-Gateway-Api-Key", ""},
	} {
		for _, path := range []string{"/realtime?model=gpt-realtime&api_key=" + own[1] + "&call_id=rtc_1", "/responses?api_key=" + own[1]} {
			if ws, resp, err := r.dialSocket(path, headers...); err == nil {
				_ = ws.Close()
				t.Errorf("%s opens %s", what, path)
			} else if resp == nil || resp.StatusCode != 401 && resp.StatusCode != 403 && resp.StatusCode != 400 {
				t.Errorf("%s: %s: %v %v", what, path, resp, err)
			}
		}
	}
	for _, c := range [][2]string{
		{"GET", "/responses/" + ids["response of a socket"]}, {"GET", "/responses/" + ids["response of a socket"] + "/input_items"}, {"DELETE", "/responses/" + ids["response of a socket"]},
		{"POST", "/responses/" + ids["response of a socket"] + "/cancel"}, {"GET", "/proxy/responses/" + ids["response of a socket"]}, {"GET", "/proxy/realtime/calls/" + ids["response"]},
	} {
		if !a.shared && c[0] != "GET" {
			continue
		}
		if got := r.call(c[0], c[1], "", other...); a.shared && (got.status < 400 || got.status >= 500) || strings.Contains(got.body, "secret words") {
			t.Errorf("%s %s: %d %s", c[0], c[1], got.status, got.body)
		}
	}
	if after := leaked(); after != before {
		t.Errorf("the provider was told ids of the other organization %d times", after-before)
	}
	// The maker reaches what is its own.
	mine.create(a.provider+"/gpt-4o-mini", "x", `,"previous_response_id":"`+ids["response of a socket"]+`"`)
	mine.completes()
	if got := r.call("GET", "/responses/"+ids["response of a socket"], "", own...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
