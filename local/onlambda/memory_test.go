package onlambda_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gateway/shared/host"
	"gateway/shared/host/placement"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/testkit/awsemulator"
)

// TestTheDeployedMemoryHoldsTheLargestBody sends the largest body that a function accepts,
// again and again, and checks how much of the template's memory its process has taken. The
// rest is the platform's.
func TestTheDeployedMemoryHoldsTheLargestBody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	in := install(t)
	for _, name := range []string{"chat", "embeddings"} {
		configured := awsemulator.Described().Functions[name].Memory
		limit := fmt.Sprintf("GOMEMLIMIT=%dMiB", configured*9/10)
		e, err := runtimeapi.Start(filepath.Join(in.dir, name, "bootstrap"), append(in.env, limit), testLog{t})
		if err != nil {
			t.Fatal(err)
		}
		path, body := "/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"%s"}]}`
		if name == "embeddings" {
			path, body = "/embeddings", `{"model":"text-embedding-3-small","input":"%s"}`
		}
		body = fmt.Sprintf(body, strings.Repeat(`\"words\" `, (host.MaxLambdaBody-200)/10))
		for range 4 {
			req := httptest.NewRequest("POST", "/v1"+path, strings.NewReader(body))
			for k, v := range map[string]string{"x-gateway-api-key": workspaceKey, "content-type": "application/json", "x-gateway-provider": "@mock"} {
				req.Header.Set(k, v)
			}
			route, _ := placement.Find("POST", path)
			ev, err := in.shim.Event(req, route)
			if err != nil {
				t.Fatal(err)
			}
			a, err := e.Invoke(t.Context(), ev, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, a.Body); err != nil || a.Status >= 500 {
				t.Fatalf("%s: %d %v", name, a.Status, err)
			}
			<-a.Settled
		}
		used := peak(t, e.PID())
		t.Logf("%s took %d MB of %d", name, used>>20, configured)
		if used > int64(configured)<<20*85/100 {
			t.Errorf("%s took %d MB of %d", name, used>>20, configured)
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// peak is the most memory that a process has had, in bytes.
func peak(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "VmHWM:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil || !ok {
		t.Fatalf("%s: %v", raw, err)
	}
	return bytes << 10
}
