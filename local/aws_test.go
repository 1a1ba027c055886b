package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/testkit/awstest"
)

// serveAWS runs the gateway on emulators of AWS and gives its base URL.
func serveAWS(t *testing.T, open func(context.Context, options) (*gateway, error)) string {
	t.Helper()
	t.Setenv("GATEWAY_ADMIN_KEY", "admin-key-of-this-test")
	t.Setenv("GATEWAY_WORKSPACE_KEY", "workspace-key-of-this-test")
	data := t.TempDir()
	if err := os.Symlink(awstest.Functions(t), filepath.Join(data, "functions")); err != nil {
		t.Fatal(err)
	}
	g, err := open(t.Context(), options{addr: "127.0.0.1:0", data: data, mock: true, store: "aws"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.serve(ctx, io.Discard) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + g.server.Addr().String() + "/v1"
}

func callAWS(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Gateway-Api-Key", key)
	req.Header.Set("X-Gateway-Provider", "@mock")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// checkGateway makes one round through the data plane, the administration and
// the workers.
func checkGateway(t *testing.T, url string) {
	t.Helper()
	const request = `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`
	if status, body := callAWS(t, "POST", url+"/chat/completions", "workspace-key-of-this-test", request); status != 200 || !strings.Contains(body, "chat.completion") {
		t.Fatalf("chat: %d %s", status, body)
	}
	if status, body := callAWS(t, "GET", url+"/models/gpt-4o-mini", "workspace-key-of-this-test", ""); status != 200 {
		t.Errorf("pass-through: %d %s", status, body)
	}
	if status, body := callAWS(t, "POST", url+"/configs", "admin-key-of-this-test", `{"name":"A","workspace_id":"default","config":{"retry":{"attempts":1}}}`); status != 200 {
		t.Errorf("config: %d %s", status, body)
	}
	if status, _ := callAWS(t, "POST", url+"/chat/completions", "nobody", request); status != 401 {
		t.Errorf("unknown key: %d", status)
	}
	checkBatch(t, url)
	// The event reaches the usage worker, the change the audit worker.
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		now := time.Now().UTC()
		span := "?workspace_slug=default&time_of_generation_min=" + now.Add(-time.Hour).Format(time.RFC3339) + "&time_of_generation_max=" + now.Add(time.Hour).Format(time.RFC3339)
		_, logs := callAWS(t, "GET", url+"/logs"+span, "admin-key-of-this-test", "")
		_, changes := callAWS(t, "GET", url+"/audit-logs?start_time="+now.Add(-time.Hour).Format(time.RFC3339)+"&end_time="+now.Add(time.Hour).Format(time.RFC3339), "admin-key-of-this-test", "")
		if total(logs) >= 2 && bytes.Contains([]byte(changes), []byte("/configs")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("logs: %s\naudit: %s", logs, changes)
		}
	}
}

func total(list string) int {
	var l struct{ Total int }
	if json.Unmarshal([]byte(list), &l) != nil {
		return -1
	}
	return l.Total
}

// In a row: it sets the environment.
func TestStoresOnAWS(t *testing.T) {
	awstest.Start(t)
	checkGateway(t, serveAWS(t, open))
}

// In a row: it sets the environment.
func TestFunctionsBehindOneAddress(t *testing.T) {
	awstest.Start(t)
	checkGateway(t, serveAWS(t, openLambda))
}
