package onlambda_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/local/mockprovider"
	"gateway/local/onlambda"
	"gateway/shared/app/onaws"
	"gateway/shared/queue/sqs"
	"gateway/shared/testkit/awsemulator"
	"gateway/shared/testkit/awstest"
	"gateway/shared/testkit/awstest/rights"
)

// keyInPolicies is what the policies of the templates call the key.
const keyInPolicies = "arn:aws:kms:us-east-1:123456789012:key/SealKey"

// restricted is an installation whose functions, and container, call with access
// keys of their own and may do what their roles in the templates allow.
type restricted struct {
	*installation
	t        *testing.T
	mock     *mockprovider.Server
	recorder *rights.Recorder
	policies map[string][]awsemulator.Statement
	envOf    func(name string) []string // what a function, or the container, is given
	log      output                     // what the functions print
}

func restrict(t *testing.T) *restricted {
	t.Helper()
	return restrictTo(t, append(functions(t), "container"))
}

// restrictTo makes one of some functions. more are variables of all of them, beside those of
// the templates.
func restrictTo(t *testing.T, names []string, more ...func(in *restricted) string) *restricted {
	t.Helper()
	services := awstest.Start(t)
	in := &restricted{installation: &installation{sqs: services.SQS, dir: awstest.Functions(t)}, t: t, policies: map[string][]awsemulator.Statement{}}
	for name, f := range awsemulator.Described().Functions {
		in.policies[name] = f.Policy
	}
	var err error
	var led map[string]string
	if in.recorder, led, err = rights.Record(services.Endpoints(), in.policies, keyInPolicies); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.recorder.Close)
	for name, v := range led {
		t.Setenv(name, v)
	}
	mock := mockprovider.New(mockprovider.Options{})
	if _, err := mock.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	in.mock = mock
	in.fill(t, mock.URL()+"/v1")
	build(t, in.dir, names...)
	provider := strings.TrimPrefix(mock.URL(), "http://")
	set := templates(t)["usual"]
	in.envOf = func(name string) []string {
		out := append(processEnv(t, set[name], provider, in.tools), "AWS_ACCESS_KEY_ID="+name, onaws.EnvTablePrefix+"=gateway-")
		for _, v := range more {
			out = append(out, v(in))
		}
		return out
	}
	addr := ""
	if slices.Contains(names, "container") {
		addr = in.startContainer()
	}
	in.shim = onlambda.New(onlambda.Options{
		Dir: in.dir, EnvOf: in.envOf, Log: &in.log, Secret: edgeSecret, Max: 2,
		Container: func(context.Context) (string, error) { return addr, nil },
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := in.shim.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	front := httptest.NewServer(in.shim)
	t.Cleanup(front.Close)
	in.url = front.URL
	return in
}

// startContainer starts the container until the test ends.
func (in *restricted) startContainer() (addr string) {
	in.t.Helper()
	addr = freeAddress(in.t)
	cmd, log := in.launchContainer(addr, in.t.TempDir())
	in.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			in.t.Errorf("%v\n%s", err, log.text())
		}
	})
	return addr
}

// freeAddress is one of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// launchContainer starts the container and waits until it is ready.
func (in *restricted) launchContainer(addr, journal string) (cmd *exec.Cmd, log *output) {
	in.t.Helper()
	env := slices.DeleteFunc(in.envOf("container"), func(v string) bool { return strings.HasPrefix(v, "AWS_LAMBDA") })
	log = new(output)
	cmd = exec.Command(filepath.Join(in.dir, "container", "gateway"))
	cmd.Env = append(env, "GATEWAY_ADDR="+addr, "GATEWAY_JOURNAL="+journal)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.until(func() error {
		res, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err
	})
	return cmd, log
}

// until tries f until it succeeds, for two minutes at most.
func (in *restricted) until(f func() error) {
	in.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			in.t.Fatal(err)
		}
	}
}

// send sends a request and gives its response, which must be a 200.
func (in *restricted) send(method, path, key, body string, header ...string) map[string]any {
	in.t.Helper()
	res := in.do(in.t, method, path, key, body, header...)
	text := whole(in.t, res)
	if res.StatusCode != 200 {
		in.t.Errorf("%s %s: %d %.600s\nrefused: %q", method, path, res.StatusCode, text, in.recorder.Denied())
		return nil
	}
	var out map[string]any
	_ = json.Unmarshal([]byte(text), &out) // a stream has none
	return out
}

// work lets the workers of the queues run until f succeeds.
func (in *restricted) work(f func() error) {
	in.t.Helper()
	cfg, err := onaws.Config(in.t.Context())
	if err != nil {
		in.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(in.t.Context())
	var polls sync.WaitGroup
	for name, env := range map[string]string{"usage": onaws.EnvUsageQueue, "audit": onaws.EnvAuditQueue, "batchruns": onaws.EnvRunQueue, "exports": onaws.EnvExportQueue} {
		q := sqs.New(cfg, os.Getenv(env))
		polls.Go(func() { _ = in.shim.Poll(ctx, q, name) })
	}
	in.until(f)
	in.until(in.idle) // what is received when the polls end stays hidden
	stop()
	polls.Wait()
}

// anything is what work waits for where the queues are to be emptied.
func anything() error { return nil }

// idle reports whether the queues of events are empty.
func (in *restricted) idle() error {
	for _, name := range []string{"gateway-usage", "gateway-audit", "gateway-batches", "gateway-exports"} {
		if n := len(in.sqs.Messages(name)); n > 0 {
			return fmt.Errorf("%d messages in %s", n, name)
		}
	}
	return nil
}

// limitedKey is a key whose requests are counted and reserve money.
func (in *restricted) limitedKey() string {
	got := in.send("POST", "/api-keys/workspace/service", adminKey, `{"name":"limited","workspace_id":"default","scopes":["completions.write","logs.view","logs.list"],
		"rate_limits":[{"type":"requests","unit":"rpd","value":10000}],"usage_limits":{"type":"cost","credit_limit":100,"alert_threshold":1}}`)
	key, _ := got["key"].(string)
	return key
}

// session calls a tool in a session of MCP.
func (in *restricted) session() {
	in.t.Helper()
	const path = "/mcp/sample/mcp"
	res := in.do(in.t, "POST", path, workspaceKey, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	id := res.Header.Get("Mcp-Session-Id")
	if text := whole(in.t, res); id == "" {
		in.t.Errorf("%d %.600s\nrefused: %q", res.StatusCode, text, in.recorder.Denied())
	}
	for _, text := range []string{"Hello", noise(300 << 10)} {
		in.send("POST", path, workspaceKey, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`, text), "Mcp-Session-Id", id)
	}
}

// noise is text that does not compress.
func noise(n int) string {
	b := make([]byte, n/2)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
