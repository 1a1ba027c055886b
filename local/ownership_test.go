package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/shared/usage"
)

// neighbors are two workspaces that use one credential of the organization.
type neighbours struct {
	*running
	mine, theirs string // keys
}

// share makes an integration that both workspaces use, as @common.
func share(t *testing.T) neighbours { return shareOn(start(t)) }

func shareOn(r *running) neighbours {
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Common","slug":"common","ai_provider_id":"openai","key":"mock-common","configurations":{"custom_host":%q}}`, r.mockBase()))
	r.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	n := neighbours{running: r}
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := r.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		*key = r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	return n
}

// as gives the headers of a workspace's call.
func as(key string, more ...string) []string {
	return append([]string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "@common", "Openai-Beta", "assistants=v2"}, more...)
}

// own makes one of each kind of thing and gives their ids by the path below
// which they stand.
func (n neighbours) own(key string) map[string]string {
	n.t.Helper()
	ids := map[string]string{}
	file := n.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+batchRows), as(key, formType...)...)
	training := n.id("POST", "/files", form("purpose", "fine-tune", "file", "rows.jsonl:{}"), as(key, formType...)...)
	ids["/files"] = file
	ids["/batches"] = n.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file), as(key)...)
	ids["/fine_tuning/jobs"] = n.id("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":"gpt-4o-mini","training_file":%q}`, training), as(key)...)
	ids["/assistants"] = n.id("POST", "/assistants", `{"model":"gpt-4o-mini"}`, as(key)...)
	ids["/threads"] = n.id("POST", "/threads", "", as(key)...)
	ids["/responses"] = n.id("POST", "/responses", `{"model":"gpt-4o-mini","input":"Hello"}`, as(key)...)
	ids["/vector_stores"] = n.id("POST", "/vector_stores", `{"name":"v"}`, as(key)...)
	return ids
}

//lane:exhaustive
func TestAnotherWorkspacesThingsAreMissing(t *testing.T) {
	t.Parallel()
	othersAreMissing(t, share(t))
}

func othersAreMissing(t *testing.T, n neighbours) {
	theirs, mine := n.own(n.theirs), n.own(n.mine)
	calls := 0
	send := func(method, path, body, id, missing string) {
		t.Helper()
		calls++
		before := n.mock.Bill().Total.Requests
		fresh := func(id string) reply {
			return n.call(method, strings.ReplaceAll(path, "{id}", id), strings.ReplaceAll(body, "{id}", id), as(n.mine)...)
		}
		got, none := fresh(id), fresh(missing)
		if got.status != 404 || strings.ReplaceAll(got.body, id, "*") != strings.ReplaceAll(none.body, missing, "*") {
			t.Errorf("%s %s %s\nforeign %d %s\nmissing %d %s", method, path, body, got.status, got.body, none.status, none.body)
		}
		if after := n.mock.Bill().Total.Requests; after != before {
			t.Errorf("%s %s %s: %d requests reached the provider", method, path, body, after-before)
		}
	}
	for collection, id := range theirs {
		missing := id[:len(id)-1] + "zz"
		for _, prefix := range []string{"", "/proxy", "/proxy/v1"} {
			for _, c := range []struct{ method, below, body string }{
				{"GET", "", ""}, {"DELETE", "", ""}, {"POST", "", `{"metadata":{}}`}, {"GET", "/content", ""}, {"POST", "/cancel", ""}, {"GET", "/output", ""},
				{"GET", "/events", ""}, {"GET", "/messages", ""}, {"POST", "/runs", `{"assistant_id":"` + mine["/assistants"] + `"}`}, {"GET", "/files", ""}, {"PUT", "/x", "{}"},
			} {
				send(c.method, prefix+collection+"/{id}"+c.below, c.body, id, missing)
			}
		}
		for _, path := range []string{collection + "//{id}", strings.ToUpper(collection) + "/{id}", "//" + collection + "/{id}/"} {
			send("GET", "/proxy"+path, "", id, missing)
		}
		if collection != "/responses" { // which nobody lists: GET is for WebSockets
			send("GET", collection+"?after={id}", "", id, missing)
		}
	}
	for _, c := range []struct{ path, body, of string }{
		{"/batches", `{"input_file_id":"{id}","endpoint":"/v1/chat/completions","completion_window":"24h"}`, "/files"},
		{"/proxy/batches", `{"input_f\u0069le_id":"{id}","endpoint":"/v1/chat/completions","completion_window":"24h"}`, "/files"},
		{"/fine_tuning/jobs", `{"model":"gpt-4o-mini","training_file":"{id}"}`, "/files"},
		{"/fine_tuning/jobs", `{"model":"gpt-4o-mini","training_file":"` + mine["/files"] + `","validation_file":"{id}"}`, "/files"},
		{"/vector_stores", `{"file_ids":["` + mine["/files"] + `","{id}"]}`, "/files"},
		{"/assistants", `{"model":"gpt-4o-mini","tool_resources":{"file_search":{"vector_store_ids":["{id}"]}}}`, "/vector_stores"},
		{"/threads/" + mine["/threads"] + "/messages", `{"role":"user","content":"x","attachments":[{"file_id":"{id}","tools":[]}]}`, "/files"},
		{"/threads/" + mine["/threads"] + "/runs", `{"assistant_id":"{id}"}`, "/assistants"},
		{"/responses", `{"model":"gpt-4o-mini","input":"x","previous_response_id":"{id}"}`, "/responses"},
		{"/proxy/responses", `{"model":"gpt-4o-mini","input":"x","previous_response_id":"{id}"}`, "/responses"},
		{"/responses", `{"model":"gpt-4o-mini","input":[{"role":"user","content":[{"type":"input_file","file_id":"{id}"}]}]}`, "/files"},
		{"/responses", `{"model":"gpt-4o-mini","input":"x","prompt_cache_options":{"comparison_response_id":"{id}"}}`, "/responses"},
		{"/threads/runs", `{"assistant_id":"{id}"}`, "/assistants"},
		{"/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"{id}"}}]}]}`, "/files"},
		{"/proxy/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":[{"type":"file","file":{"file\u005fid":"{id}"}}]}]}`, "/files"},
	} {
		send("POST", c.path, c.body, theirs[c.of], theirs[c.of][:6]+"zzz")
	}
	if calls < 100 {
		t.Errorf("%d calls", calls)
	}
	// What is one's own is reached in all these ways, and nothing of the others' is gone.
	for key, ids := range map[string]map[string]string{n.mine: mine, n.theirs: theirs} {
		for collection, id := range ids {
			for _, prefix := range []string{"", "/proxy"} {
				if got := n.call("GET", prefix+collection+"/"+id, "", as(key)...); got.status != 200 {
					t.Errorf("%s: %d %s", collection, got.status, got.body)
				}
			}
		}
	}
}

// A streamed response, and one that is passed through, belong to who made them.
func TestStreamedThingsBelongToWhoMadeThem(t *testing.T) {
	t.Parallel()
	n := share(t)
	assistant, thread := n.own(n.theirs)["/assistants"], n.own(n.theirs)["/threads"]
	for path, body := range map[string]string{
		"/responses": `{"model":"gpt-4o-mini","input":"Hello","stream":true}`, "/proxy/responses": `{"model":"gpt-4o-mini","input":"Hello","stream":true}`,
		"/threads/" + thread + "/runs": `{"assistant_id":"` + assistant + `","stream":true}`,
	} {
		got := n.call("POST", path, body, as(n.theirs)...)
		if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		if !strings.Contains(path, "responses") {
			continue
		}
		id := regexp.MustCompile(`resp_[a-z0-9]+`).FindString(got.body)
		for key, want := range map[string]int{n.theirs: 200, n.mine: 404} {
			if got := n.call("GET", "/responses/"+id, "", as(key)...); got.status != want {
				t.Errorf("%s %s: %d %s", path, id, got.status, got.body)
			}
		}
	}
}

// Paths that can be read in more ways than one do not reach what is stored.
func TestPathsInDisguiseDoNotReachWhatIsStored(t *testing.T) {
	t.Parallel()
	n := share(t)
	theirs, mine := n.own(n.theirs)["/files"], n.own(n.mine)["/files"]
	before := n.mock.Bill().Total.Requests
	for _, path := range []string{
		"/proxy/files/" + mine + "/../" + theirs, "/proxy/files/" + mine + "/%2e%2e/" + theirs, "/proxy/files%2F" + theirs, "/proxy/files/%2F" + theirs,
		"/proxy/x/../files/" + theirs, "/proxy/files;x=1/" + theirs, "/proxy/files/" + theirs + ";x", `/proxy/files%5C` + theirs, "/files/" + mine + "%2F..%2F" + theirs,
	} {
		if got := n.bare(fmt.Sprintf("GET /v1%s HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nX-Gateway-Api-Key: %s\r\nX-Gateway-Provider: @common\r\n\r\n", path, n.mine)); got.status != 404 && got.status != 400 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	hidden := n.call("POST", "/proxy/batches", `{"input_file_id":"`+theirs+`","endpoint":"/v1/chat/completions","completion_window":"24h"}`, as(n.mine, "Content-Type", "text/plain")...)
	if hidden.status != 400 {
		t.Errorf("a body that cannot be read: %d %s", hidden.status, hidden.body)
	}
	if after := n.mock.Bill().Total.Requests; after != before {
		t.Errorf("%d requests reached the provider: %+v", after-before, n.mock.Requests(int(after-before)))
	}
}

func TestListsShowTheWorkspacesOwnThingsOnly(t *testing.T) {
	t.Parallel()
	n := share(t)
	mine := n.own(n.mine)
	for range 3 {
		n.own(n.theirs) // newer, so that whole pages hold nothing of mine
	}
	for collection, id := range mine {
		if collection == "/threads" || collection == "/responses" {
			continue // have no list
		}
		for _, prefix := range []string{"", "/proxy"} {
			got := n.call("GET", prefix+collection+"?limit=1", "", as(n.mine)...)
			list := got.json(t)
			data, _ := list["data"].([]any)
			if got.status != 200 || len(data) != 1 {
				t.Errorf("%s%s: %d %s", prefix, collection, got.status, got.body)
				continue
			}
			first := data[0].(map[string]any)["id"]
			if collection != "/files" && first != id || list["last_id"] != first || list["first_id"] != first {
				t.Errorf("%s%s: %s", prefix, collection, got.body)
			}
			seen := map[any]bool{}
			for after := ""; ; {
				page := n.call("GET", prefix+collection+"?limit=2"+after, "", as(n.mine)...).json(t)
				for _, d := range page["data"].([]any) {
					seen[d.(map[string]any)["id"]] = true
				}
				if page["has_more"] != true || len(page["data"].([]any)) == 0 {
					break
				}
				after = "&after=" + page["last_id"].(string)
			}
			want := 1
			if collection == "/files" {
				want = 2
			}
			if len(seen) != want || !seen[id] {
				t.Errorf("%s%s: %v, want %s and %d in all", prefix, collection, seen, id, want)
			}
		}
	}
	if got := n.call("GET", "/proxy/echo/files", "", as(n.mine)...); got.status != 403 {
		t.Errorf("a list that cannot be divided: %d %s", got.status, got.body)
	}
}

// What a batch makes belongs to who made the batch; what nobody made through the
// gateway is nobody's.
func TestOutputFilesBelongToTheBatch(t *testing.T) {
	t.Parallel()
	n := share(t)
	batch := n.own(n.theirs)["/batches"]
	var output string
	for range 2 {
		output, _ = n.call("GET", "/batches/"+batch, "", as(n.theirs)...).json(t)["output_file_id"].(string)
	}
	for key, want := range map[string]int{n.theirs: 200, n.mine: 404} {
		for _, path := range []string{"/files/" + output + "/content", "/batches/" + batch + "/output"} {
			if got := n.call("GET", path, "", as(key)...); got.status != want {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
	// Made past the gateway: a credential of one's own reaches it, the shared one not.
	own := append([]string{"X-Gateway-Provider", "openai", "Authorization", "Bearer mock-own", "X-Gateway-Custom-Host", n.mockBase()}, formType...)
	file := n.id("POST", "/files", form("purpose", "vision", "file", "a:b"), own...)
	if got := n.call("GET", "/files/"+file, "", own...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := n.call("GET", "/files/"+file, "", as(n.mine)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := n.call("GET", "/files/"+file, "", onMock...); got.status != 200 {
		t.Errorf("an integration of the workspace alone: %d %s", got.status, got.body)
	}
	if got := n.call("DELETE", "/models/gpt-4o-mini", "", as(n.mine)...); got.status != 404 {
		t.Errorf("a shared model can be deleted: %d %s", got.status, got.body)
	}
	if got := n.call("GET", "/models/gpt-4o-mini", "", as(n.mine)...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Under a credential that several workspaces use, a body may not name to a provider
// something that nobody made through the gateway; it may name what belongs to everybody.
func TestWhatBodiesNameUnderASharedCredential(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	for _, id := range []string{"openai", "anthropic", "google"} {
		r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":"shared-%s","ai_provider_id":%q,"key":"k","configurations":{"custom_host":%q}}`, id, id, id, server.URL))
		r.admin("PUT", "/integrations/shared-"+id+"/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	}
	r.admin("POST", "/workspaces", `{"name":"Neighbour"}`)
	const gemini = "/v1beta/models/gemini-2.5-flash:generateContent"
	for _, c := range []struct {
		provider, path, body string
		passes               bool
	}{
		{"openai", "/audio/speech", `{"model":"gpt-4o-mini-tts","input":"x","voice":{"id":"voice_z"}}`, false},
		{"openai", "/audio/speech", `{"model":"gpt-4o-mini-tts","input":"x","voice":"alloy"}`, true},
		{"openai", "/chat/completions", `{"model":"gpt-4o-audio-preview","modalities":["text","audio"],"audio":{"voice":{"id":"voice_z"},"format":"mp3"},"messages":[{"role":"user","content":"x"}]}`, false},
		{"openai", "/audio/voices", `{"name":"x","consent":"cons_z"}`, false},
		{"openai", "/videos/edits", `{"video":{"id":"video_z"},"prompt":"x"}`, false},
		{"openai", "/responses", `{"model":"gpt-5.4","input":"x","tools":[{"type":"shell","environment":{"type":"container_auto","skills":[{"type":"skill_reference","skill_id":"skill_z"}]}}]}`, false},
		{"anthropic", "/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,"container":{"skills":[{"type":"custom","skill_id":"skill_z"}]},"messages":[{"role":"user","content":"x"}]}`, false},
		{"anthropic", "/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,"container":{"skills":[{"type":"anthropic","skill_id":"pptx"}]},"messages":[{"role":"user","content":"x"}]}`, true},
		{"google", gemini, `{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/z","mimeType":"image/png"}}]}]}`, false},
		{"google", gemini, `{"contents":[{"role":"user","parts":[{"file_data":{"file_uri":"https://youtu.be/z"}}]}]}`, true},
		{"google", gemini, `{"cachedContent":"cachedContents/z","contents":[{"role":"user","parts":[{"text":"x"}]}]}`, false},
		{"google", "/chat/completions", `{"model":"gemini-2.5-flash","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"files/z"}}]}]}`, false},
		{"anthropic", "/chat/completions", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file_z"}}]}]}`, false},
	} {
		before := host.requests.Load()
		got := r.call("POST", c.path, c.body, "X-Gateway-Provider", "@shared-"+c.provider)
		if sent := host.requests.Load() != before; sent != c.passes || !c.passes && got.status != 404 {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
	}
}

// A container that a conversation of Messages has made is its workspace's.
func TestContainersOfMessagesAreTheWorkspacesOwn(t *testing.T) {
	t.Parallel()
	n := share(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const container = `"container":{"id":"container_%s","expires_at":"2026-12-01T00:00:00Z"}`
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},`+container+`}`, "plain")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n")
		fmt.Fprintf(w, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","+container+"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "streamed")
	}))
	t.Cleanup(host.Close)
	n.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Claude","slug":"claude","ai_provider_id":"anthropic","key":"mock-claude","configurations":{"custom_host":%q}}`, host.URL+"/v1"))
	n.admin("PUT", "/integrations/claude/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	send := func(key, more string) int {
		return n.call("POST", "/messages", `{"model":"claude","max_tokens":5,"messages":[{"role":"user","content":"Hello"}]`+more+`}`, "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@claude").status
	}
	for _, key := range []string{n.theirs, n.mine} { // both use the credential
		if status := send(key, ""); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	if status := send(n.theirs, `,"stream":true`); status != 200 {
		t.Fatalf("status %d", status)
	}
	for _, c := range []struct {
		key, container string
		want           int
	}{
		{n.theirs, `"container_streamed"`, 200}, {n.theirs, `{"id":"container_streamed"}`, 200}, {n.theirs, `{"id":"container_plain"}`, 200},
		{n.mine, `"container_streamed"`, 404}, {n.mine, `{"id":"container_streamed"}`, 404}, {n.mine, `{"id":"container_unknown"}`, 404}, {n.mine, `{"skills":[]}`, 200},
	} {
		if status := send(c.key, `,"container":`+c.container); status != c.want {
			t.Errorf("%s: %d, want %d", c.container, status, c.want)
		}
	}
}

// The sound of a response, which a later message may name instead of its words, is its
// workspace's: of what is answered whole and streamed, on the gateway's own route and passed
// through.
func TestSoundsOfChatsAreTheWorkspacesOwn(t *testing.T) {
	t.Parallel()
	n := share(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Stream   bool   `json:"stream"`
			User     string `json:"user"`
			Messages []any  `json:"messages"`
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			t.Error("a body that is not JSON")
		}
		audio := fmt.Sprintf(`"audio":{"id":"sound-%s","data":"AAAA","transcript":"Hi","expires_at":1}`, body.User)
		if !body.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-audio","choices":[{"index":0,"message":{"role":"assistant","content":null,%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, audio)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		const chunk = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-audio\",\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n"
		fmt.Fprintf(w, chunk+chunk+chunk+"data: [DONE]\n\n", `"role":"assistant","content":"Hi"`, "null", audio, "null", "", `"stop"`)
	}))
	t.Cleanup(host.Close)
	n.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Voices","slug":"voices","ai_provider_id":"openai","key":"mock-voices","configurations":{"custom_host":%q}}`, host.URL+"/v1"))
	n.admin("PUT", "/integrations/voices/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	send := func(path, key, user, more, before string) reply {
		body := fmt.Sprintf(`{"model":"gpt-audio","user":%q,"modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"},"messages":[{"role":"user","content":"Hello"}%s,{"role":"user","content":"And now?"}]%s}`, user, before, more)
		return n.call("POST", path, body, "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@voices")
	}
	const own, raw = "/chat/completions", "/proxy/chat/completions"
	for _, key := range []string{n.theirs, n.mine} { // both use the credential
		if got := send(own, key, "other", "", ""); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for user, c := range map[string]struct{ path, more string }{
		"plain": {own, ""}, "streamed": {own, `,"stream":true`}, "passed": {raw, ""}, "passed-streamed": {raw, `,"stream":true`},
	} {
		if got := send(c.path, n.theirs, user, c.more, ""); got.status != 200 || !strings.Contains(got.body, "sound-"+user) {
			t.Fatalf("%s: %d %s", user, got.status, got.body)
		}
		for _, path := range []string{own, raw} {
			earlier := `,{"role":"assistant","audio":{"id":"sound-` + user + `"}}`
			if got := send(path, n.theirs, "x", "", earlier); got.status != 200 {
				t.Errorf("%s at %s, its own: %d %s", user, path, got.status, got.body)
			}
			if got := send(path, n.mine, "x", "", earlier); got.status != 404 || strings.Contains(got.body, "AAAA") {
				t.Errorf("%s at %s, another's: %d %s", user, path, got.status, got.body)
			}
		}
	}
	if got := send(own, n.mine, "x", "", `,{"role":"assistant","audio":{"id":"sound-of-nobody"}}`); got.status != 404 {
		t.Errorf("nobody's: %d %s", got.status, got.body)
	}
}

// What was used is recorded although nobody could note whose the response is.
func TestUsageOutlivesAFailureToNoteTheOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := shareOn(startIn(t, dir))
	n.own(n.theirs)
	db, err := sql.Open("sqlite", filepath.Join(dir, "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`CREATE TRIGGER no_owners BEFORE INSERT ON usage WHEN instr(CAST(NEW.pk AS TEXT), 'OWNED') > 0 BEGIN SELECT RAISE(ABORT, 'no'); END`); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{"/responses": `,"stream":true`, "/proxy/responses": ``}
	for path, more := range bodies {
		if got := n.call("POST", path, `{"model":"gpt-4o-mini","input":"Hello"`+more+`}`, as(n.theirs)...); got.status != 503 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
	}
	var failed []usage.Record
	eventually(t, func() error {
		failed = slices.DeleteFunc(archived(t, n.g), func(rec usage.Record) bool { return rec.ClientStatus != 503 })
		if len(failed) != len(bodies) {
			return fmt.Errorf("%d records of failures", len(failed))
		}
		return nil
	})
	for _, rec := range failed {
		if rec.Usage.OutputTokens() == 0 || rec.Cost == 0 {
			t.Errorf("%s: %+v for %d", rec.Endpoint, rec.Usage, rec.Cost)
		}
	}
}

// What a message of a session names is the workspace's own or nobody's, under a credential
// that several share; the session continues.
func TestMessagesOfSessionsNameNothingOfOthers(t *testing.T) {
	t.Parallel()
	n := share(t)
	s := n.speak("model=@common/gpt-realtime", "X-Gateway-Api-Key", n.theirs)
	for _, named := range []string{
		`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"file_search","vector_store_ids":["vs_z"]}]}}`,
		`{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":{"id":"voice_z"}}}}}`,
		`{"type":"response.create","response":{"conversation":"none","input":[{"type":"message","role":"user","content":[{"type":"input_file","file_id":"file_z"}]}]}}`,
	} {
		s.send(named)
		for {
			e, err := s.read()
			if err != nil {
				t.Fatal(err)
			}
			if e["type"] == "session.created" {
				continue
			}
			if about, _ := json.Marshal(e); e["type"] != "error" || !strings.Contains(string(about), "_z") {
				t.Errorf("%s: %s", named, about)
			}
			break
		}
	}
	s.send(`{"type":"response.create","event_id":"e","response":{"conversation":"auto"}}`)
	s.next("response.done")
}

// TestFormsNameOwnedObjects checks the fields of forms that are passed through under a shared
// credential, before and after a file, and that a form too long to be read is rejected where
// its fields could name an object.
func TestFormsNameOwnedObjects(t *testing.T) {
	t.Parallel()
	host := &everything{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Forms","slug":"forms","ai_provider_id":"openai","key":"k","configurations":{"custom_host":%q}}`, server.URL))
	r.admin("PUT", "/integrations/forms/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	r.admin("POST", "/workspaces", `{"name":"Neighbour"}`)
	long := strings.Repeat("x", 9<<20)
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/proxy/videos/edits", form("prompt", "x", "video[id]", "video_z"), 404},
		{"/proxy/videos/edits", form("file", "a:b", "video", `{"id":"video_z"}`), 404},
		{"/proxy/containers", form("file", "a:b", "file_ids[]", "file-z"), 404},
		{"/proxy/anything", form("file_id", "file-z"), 404},
		{"/proxy/videos/edits", form("prompt", "x", "file", "a:b"), 200},
		{"/proxy/videos/edits", form("file", "a:"+long, "video[id]", "video_z"), 413},
		{"/proxy/files", form("file", "a:"+long, "purpose", "vision"), 200},
		{"/proxy/videos/edits", "no form", 400},
	} {
		before := host.requests.Load()
		got := r.call("POST", c.path, c.body, append([]string{"X-Gateway-Provider", "@forms"}, formType...)...)
		if sent := host.requests.Load() != before; got.status != c.want || sent != (c.want == 200) {
			t.Errorf("%s %.200q: %d %s", c.path, c.body, got.status, got.body)
		}
	}
}

// TestRowsOfBatchesNameOwnedObjects checks the rows of a batch that a provider runs like the
// bodies that they are.
func TestRowsOfBatchesNameOwnedObjects(t *testing.T) {
	t.Parallel()
	n := share(t)
	row := func(file string) string {
		return fmt.Sprintf(`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"file","file":{"file_id":%q}}]}]}}`, file)
	}
	theirs, mine := n.own(n.theirs)["/files"], n.own(n.mine)["/files"]
	for _, c := range []struct {
		path, named string
		want        int
	}{{"/batches", theirs, 404}, {"/batches", mine, 200}, {"/proxy/batches", theirs, 404}, {"/proxy/batches", mine, 200}} {
		file := n.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+row(c.named)), as(n.mine, formType...)...)
		name := "input_file_id"
		if c.path != "/batches" {
			name = `input_f\u0069le_id`
		}
		got := n.call("POST", c.path, fmt.Sprintf(`{"`+name+`":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file), as(n.mine)...)
		if got.status != c.want {
			t.Errorf("%s with a file of %s: %d %s", c.path, c.named, got.status, got.body)
		}
	}
}
