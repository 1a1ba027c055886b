package onlambda_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/local/onlambda"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/testkit/awstest"
)

// TestFirstKeys sets a fresh installation up as its owner does after the deploy:
// by the task of the worker, in two environments at once, and again.
func TestFirstKeys(t *testing.T) {
	awstest.Start(t)
	dir := awstest.Functions(t)
	build(t, dir, functions(t)...)
	processes := templates(t)["usual"]
	t.Setenv(onaws.EnvTablePrefix, processes["repair"][onaws.EnvTablePrefix])
	cfg, err := onaws.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tables, err := onaws.Store(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := tables.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log output
	worker := runtimeapi.Pool{Binary: filepath.Join(dir, "repair", "bootstrap"), Env: processEnv(t, processes["repair"], "", ""), Log: &log, Max: 2}
	defer worker.Close(t.Context())
	setup := func() (out app.SetUp, err error) {
		a, err := worker.Invoke(t.Context(), []byte(`{"task":"setup"}`), time.Minute)
		if err != nil {
			return out, err
		}
		raw, err := io.ReadAll(a.Body)
		if err != nil {
			return out, err
		}
		return out, json.Unmarshal(raw, &out)
	}
	var made []app.SetUp
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			got, err := setup()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made = append(made, got)
			} else if !strings.Contains(err.Error(), "already exists") {
				t.Errorf("refused with %v", err)
			}
		})
	}
	wg.Wait()
	if len(made) != 1 {
		t.Fatalf("%d of two were given keys:\n%s", len(made), log.text())
	}
	if _, err := setup(); err == nil || !strings.Contains(err.Error(), "setup runs once") {
		t.Errorf("a third time: %v", err)
	}
	in := &installation{dir: dir}
	in.shim = onlambda.New(onlambda.Options{Dir: dir, Env: processEnv(t, processes["chat"], "", ""), Log: &log, Secret: edgeSecret, Max: 2})
	defer in.shim.Close(t.Context())
	front := httptest.NewServer(in.shim)
	defer front.Close()
	in.url = front.URL
	in.firstSteps(t, made[0])
	for _, key := range []string{made[0].AdminKey, made[0].WorkspaceKey} {
		if strings.Contains(log.text(), key) {
			t.Error("a key stands in the log")
		}
	}
}

// firstSteps are what an owner finds, and does, with the first keys.
func (in *installation) firstSteps(t *testing.T, keys app.SetUp) {
	t.Helper()
	for _, c := range []struct {
		name, method, path, key, body string
		headers                       []string
		status                        int
		holds                         string
	}{
		{"no mock provider is saved", "GET", "/providers?workspace_id=default", keys.AdminKey, "", nil, 200, `"total":0`},
		{"a request cannot bring its own config", "POST", "/chat/completions", keys.WorkspaceKey, hello,
			[]string{"x-gateway-config", `{"provider":"openai","api_key":"sk-1"}`}, 0, "inline"},
		{"a provider is saved", "POST", "/virtual-keys", keys.AdminKey, `{"name":"My OpenAI","provider":"openai","key":"sk-1","workspace_id":"default"}`, nil, 200, "slug"},
		{"models are listed", "GET", "/models", keys.WorkspaceKey, "", nil, 200, ""},
		{"the workspace key is no admin", "GET", "/admin/workspaces", keys.WorkspaceKey, "", nil, 403, ""},
	} {
		res := in.do(t, c.method, c.path, c.key, c.body, c.headers...)
		body := whole(t, res)
		if c.status != 0 && res.StatusCode != c.status || c.status == 0 && (res.StatusCode < 400 || res.StatusCode > 499) || !strings.Contains(strings.ToLower(strings.ReplaceAll(body, " ", "")), c.holds) {
			t.Errorf("%s: %d %s", c.name, res.StatusCode, body)
		}
	}
}
