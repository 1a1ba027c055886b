package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	usageworker "gateway/functions/usage"
	"gateway/local/mockprovider"
	"gateway/shared/audit"
	"gateway/shared/queue"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// What one release writes, the one before and the one after can read: while a
// version is brought in, and after it is taken back, both work on the same rows.
//
// testdata/before.json holds what the release before wrote: rows, objects, an event
// and an audit record. TestWhatWasWrittenBeforeIsRead starts today's gateway on it.
// TestWhatIsWrittenNowWasKnownBefore does today what was done then and holds what
// older code relies on: each kind of row still has each attribute and JSON member,
// of the same type; more may be added, as readers pass over what they do not know.
// Not covered by it: the meaning of a value, the columns of segments, and kinds of
// rows that are new. A release writes the file again, when its tag is set:
//
//	go test ./local -run WrittenNow -args -release
var release = flag.Bool("release", false, "write testdata/before.json from what this version stores")

const beforeFile = "testdata/before.json"

// theCredential is what the saved provider of the fixture sends.
const theCredential = "mock-credential-of-before"

// besideMock starts a gateway in a folder without the built-in provider, and a separate
// mock provider beside it.
func besideMock(t *testing.T, folder func(mock string) string) (*running, *mockprovider.Server) {
	t.Helper()
	mock := mockprovider.New(mockprovider.Options{})
	if _, err := mock.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-mock=false", "-data", folder(strings.TrimPrefix(mock.URL(), "http://"))})
	if err != nil {
		t.Fatal(err)
	}
	r := startWith(t, o)
	r.mock = mock
	return r, mock
}

// writeAll has a gateway store something of most kinds, and gives the raw value of
// a key.
func writeAll(t *testing.T, r *running, mock *mockprovider.Server) (key string) {
	t.Helper()
	ws := r.workspace()
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Shared","slug":"shared","ai_provider_id":"openai","key":"mock-shared","configurations":{"custom_host":"%s/v1"}}`, mock.URL()))
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Mine","slug":"mine","provider":"openai","key":%q,"workspace_id":"default","customHost":"%s/v1","note":"of before"}`, theCredential, mock.URL()))
	config := r.admin("POST", "/configs", fmt.Sprintf(`{"name":"Of before","workspace_id":%q,"config":{"retry":{"attempts":1},"targets":[{"provider":"@mine","override_params":{"max_tokens":9}}]}}`, ws))
	slug := member(config, "data/slug").(string)
	r.admin("PUT", "/configs/"+slug+"?workspace_id="+ws, `{"config":{"retry":{"attempts":2},"targets":[{"provider":"@mine","override_params":{"max_tokens":17}}]}}`)
	r.admin("POST", "/configs", fmt.Sprintf(`{"name":"With a secret","workspace_id":%q,"config":{"provider":"openai","api_key":"mock-inline-0123456789","custom_host":"%s/v1"}}`, ws, mock.URL()))
	r.admin("POST", "/admin/workspaces", `{"name":"Second","description":"of before"}`)
	r.admin("PUT", "/admin/organisation/settings", `{"cache_settings":{"max_age":86400}}`)
	key = r.newKey(`"usage_limits":{"type":"cost","credit_limit":5},"rate_limits":[{"type":"requests","unit":"rpd","value":1000}],"defaults":{"metadata":{"team":"a"}}`)
	r.newKey(`"rotation_policy":{"rotation_period":"monthly"},"expires_at":"2125-01-01T00:00:00Z"`)
	for i, body := range []string{chatBody("gpt-4o-mini", "Hello", ""), chatBody("gpt-4o-mini", "Hello", `,"stream":true`), chatBody("gpt-4o-mini", "Hello again", "")} {
		if got := r.call("POST", "/chat/completions", body, "X-Gateway-Api-Key", key, "X-Gateway-Config", slug, "X-Gateway-Trace-Id", fmt.Sprintf("of-before-%d", i)); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	file := r.storeRows(workspaceKey, chatRows(2, "@mine/gpt-4o-mini", greeting))
	r.ended(workspaceKey, r.runBatch(workspaceKey, file, ""))
	r.records(5)
	eventually(t, func() error {
		if n := len(r.get("/audit-logs?"+everTimes(), adminKey)["records"].([]any)); n < 8 {
			return fmt.Errorf("%d audit records", n)
		}
		return nil
	})
	return key
}

// everTimes are the last years, as a query; the audit log gives what it has of them.
func everTimes() string {
	at := func(d time.Duration) string { return url.QueryEscape(time.Now().Add(d).UTC().Format(time.RFC3339)) }
	return "start_time=" + at(-24*time.Hour) + "&end_time=" + at(time.Hour)
}

// filled sets every field that a record has to something.
func filled(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(3)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				filled(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0), depth+1)
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		filled(k, depth+1)
		filled(e, depth+1)
		m.SetMapIndex(k, e)
		v.Set(m)
	}
}

// anEvent is a record with all its fields, of the first organization.
func anEvent() *usage.Record {
	r := &usage.Record{}
	filled(reflect.ValueOf(r).Elem(), 0)
	r.ID, r.Org, r.Workspace, r.Bodies, r.Blob = "01KAAAAAAAAAAAAAAAAAAAAAAA", "default", "w", nil, ""
	r.SettleSubjects = []usage.Settle{{PK: "ORG#default#WS#w#KEY#k", Entry: "abcdefgh:1:1:x", Amount: 1}}
	return r
}

func readBefore(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile(beforeFile)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestWhatIsWrittenNowWasKnownBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, mock := besideMock(t, func(string) string { return dir })
	key := writeAll(t, r, mock)
	r.stop()
	now := takeStored(t, dir, strings.TrimPrefix(mock.URL(), "http://"))
	now.Key = key
	now.Event = anEvent().AppendEvent(nil)
	now.EventVersion = now.Event[1]
	now.Audit = json.RawMessage(`{"id":"01KAAAAAAAAAAAAAAAAAAAAAAB","timestamp":"` + time.Now().UTC().Format(time.RFC3339) + `","organisation_id":"default","action":"create","resource_type":"configs","resource_id":"of-before"}`)
	if *release {
		raw, err := json.MarshalIndent(now, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(beforeFile, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := parseStored(t, readBefore(t))
	have := now.shapes()
	for _, m := range missing(before.shapes(), have) {
		t.Errorf("the version before reads %s", m)
	}
	if len(have) < 40 {
		t.Errorf("only %d kinds of rows are written", len(have))
	}
	if now.EventVersion > before.EventVersion {
		t.Errorf("events of version %d are written, the version before reads up to %d: read them for one release before writing them", now.EventVersion, before.EventVersion)
	}
	old, err := usage.DecodeEvents(before.Event)
	if err != nil || len(old) != 1 {
		t.Fatalf("%d events: %v", len(old), err)
	}
	if !bytes.Equal(old[0].AppendEvent(nil), before.Event) {
		t.Error("an event is written otherwise than the version before reads it")
	}
}

func TestWhatWasWrittenBeforeIsRead(t *testing.T) {
	t.Parallel()
	var of *stored
	r, mock := besideMock(t, func(addr string) (dir string) {
		dir, of = putStored(t, readBefore(t), addr)
		return dir
	})
	ws := r.workspace()
	// Keys, configs, providers and their sealed credentials serve.
	var slug any
	for _, c := range r.get("/configs?workspace_id="+ws, adminKey)["data"].([]any) {
		if c.(map[string]any)["name"] == "Of before" {
			slug = c.(map[string]any)["slug"]
		}
	}
	if got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", of.Key, "X-Gateway-Config", slug.(string)); got.status != 200 {
		t.Fatalf("chat: %d %s", got.status, got.body)
	}
	last := mock.Requests(1)
	if len(last) != 1 || last[0].Headers.Get("Authorization") != "Bearer "+theCredential || !bytes.Contains(last[0].Body, []byte(`"max_tokens":17`)) {
		t.Errorf("the provider got %v", last)
	}
	// What was counted continues.
	limits := ""
	for _, k := range r.get("/api-keys?page_size=100", adminKey)["data"].([]any) {
		if l := k.(map[string]any)["usage_limits"]; l != nil {
			limits = fmt.Sprint(l)
		}
	}
	if !strings.Contains(limits, "current_usage") || strings.Contains(limits, "current_usage:0 ") {
		t.Errorf("what the key has used is %s", limits)
	}
	// It is changed.
	r.admin("PUT", "/virtual-keys/mine?workspace_id="+ws, `{"note":"of now"}`)
	r.admin("PUT", "/configs/"+slug.(string)+"?workspace_id="+ws, `{"config":{"targets":[{"provider":"@mine","override_params":{"max_tokens":18}}]}}`)
	if n := len(r.get("/configs/"+slug.(string)+"/versions?workspace_id="+ws, adminKey)["data"].([]any)); n != 3 {
		t.Errorf("%d versions of the config, want 3", n)
	}
	if got := r.get("/admin/organisation/settings", adminKey); !strings.Contains(fmt.Sprint(got), "86400") {
		t.Errorf("settings: %v", got)
	}
	if got := r.get("/admin/workspaces", adminKey); !strings.Contains(fmt.Sprint(got), "of before") {
		t.Errorf("workspaces: %v", got)
	}
	// Records of requests, in segments, and what waits in queues.
	if n := len(archived(t, r.g)); n < 5 {
		t.Errorf("%d records of before are read", n)
	}
	w := usageworker.Worker{Ingester: segment.New(r.g.core.Store, r.g.core.Bucket, segment.Options{}), Settler: r.g.core.Ledger}
	if failed, err := w.Handle(context.Background(), []queue.Message{{ID: "1", Group: "default", Body: of.Event}}); err != nil || len(failed) > 0 {
		t.Errorf("the event: %v %v", failed, err)
	}
	if failed, err := audit.NewWorker(r.g.core.Store).Handle(context.Background(), []queue.Message{{ID: "1", Group: "default", Body: of.Audit}}); err != nil || len(failed) > 0 {
		t.Errorf("the audit record: %v %v", failed, err)
	}
	at := func(t time.Time) string { return url.QueryEscape(t.UTC().Format(time.RFC3339)) }
	if n := len(r.get("/audit-logs?start_time="+at(of.Written.Add(-time.Hour))+"&end_time="+at(of.Written.Add(time.Hour)), adminKey)["records"].([]any)); n < 8 {
		t.Errorf("%d audit records of before are read", n)
	}
}
