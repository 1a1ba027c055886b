package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	adminKey     = "gw-admin-key-of-the-client-tests"
	workspaceKey = "gw-workspace-key-of-the-client-tests"
)

// process is a gateway that runs as a program of its own.
type process struct {
	url    string // ends in /v1
	tls    string // the same over TLS, which some clients insist on
	ca     string // file of the certificate that answers there
	binary string // of the program
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	err    error         // of its end, after exited
	output *logBuffer
}

// goBuild builds a program, given as seen from a folder. It uses no C, like the other
// tests, so that what was compiled for them is not compiled again.
func goBuild(dir, binary, pkg string) *exec.Cmd {
	build := exec.Command("go", "build", "-o", binary, pkg)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	return build
}

// startGateway builds ./local and starts it on a port and a folder of its own.
func startGateway(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "gateway")
	build := goBuild(".", binary, "gateway/local")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the gateway: %v\n%s", err, out)
	}
	p := &process{binary: binary, exited: make(chan struct{}), output: &logBuffer{}}
	p.cmd = exec.Command(binary, "-addr", "127.0.0.1:0", "-data", filepath.Join(dir, "data"))
	p.cmd.Env = append(os.Environ(), "GATEWAY_ADMIN_KEY="+adminKey, "GATEWAY_WORKSPACE_KEY="+workspaceKey, "GATEWAY_HEADER_ALIASES=x-portkey")
	p.cmd.Stderr = p.output
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			fmt.Fprintln(p.output, sc.Text())
			if url, ok := strings.CutPrefix(sc.Text(), "gateway ready on "); ok {
				ready <- url
			}
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // does nothing to one that has ended
		<-p.exited
		if t.Failed() {
			t.Logf("the gateway wrote:\n%s", p.output.String())
		}
	})
	select {
	case p.url = <-ready:
	case <-p.exited:
		t.Fatalf("the gateway ended before it was ready: %v", p.err)
	case <-time.After(2 * time.Minute):
		t.Fatal("the gateway was not ready in time")
	}
	p.waitHealthy(t)
	p.overTLS(t, dir)
	return p
}

func (p *process) waitHealthy(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		resp, err := http.Get(strings.TrimSuffix(p.url, "/v1") + "/healthz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not healthy: %v %v", resp, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// environment is what the programs read.
func (p *process) environment() []string {
	return append(os.Environ(), "GATEWAY_URL="+p.url, "GATEWAY_KEY="+workspaceKey, "GATEWAY_WORKSPACE_KEY="+workspaceKey, "GATEWAY_ADMIN_KEY="+adminKey, "GATEWAY_TLS_URL="+p.tls, "NODE_EXTRA_CA_CERTS="+p.ca)
}

// missing skips the test because a tool is not there. Where CI is set nothing
// may be missing.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: not allowed to be missing in CI", what)
	}
	t.Skipf("SKIPPED: %s", what)
}

//lane:standard
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway and client programs, which -short leaves out")
	}
	p := startGateway(t)
	t.Run("go", func(t *testing.T) { goProgram(t, p) })
	t.Run("a generated Go client", func(t *testing.T) { generatedClient(t, p) })
	t.Run("terraform", func(t *testing.T) { terraform(t, p) })
	t.Run("metrics", func(t *testing.T) { metrics(t, p) })
	t.Run("node", func(t *testing.T) { nodePrograms(t, p) })
	t.Run("curl", func(t *testing.T) { curlProgram(t, p) })
	t.Run("a stream outlives SIGTERM, then the gateway ends well", func(t *testing.T) { stop(t, p) })
}

// goProgram is in its own module, so that commands for all packages of the gateway do not
// go through the large client libraries.
func goProgram(t *testing.T, p *process) {
	t.Logf("%s", bytes.TrimSpace(run(t, p, 2*time.Minute, buildGoclient(t))))
}

func buildGoclient(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "goclient")
	if out, err := goBuild("goclient", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building goclient: %v\n%s", err, out)
	}
	return binary
}

// generatedClient makes a Go client of the API document that the gateway serves, compiles a program
// with it, and runs that. Only the operations that the program uses are generated: all of them
// take a compiler minutes.
func generatedClient(t *testing.T, p *process) {
	dir := t.TempDir()
	for from, to := range map[string]string{"go.mod": "go.mod", "go.sum": "go.sum", "testdata/generated/config.yaml": "config.yaml", "testdata/generated/program.go": "program.go"} {
		content, err := os.ReadFile(filepath.Join("goclient", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "client"), 0o700); err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(p.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	document, err := io.ReadAll(res.Body)
	if err != nil || os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600) != nil {
		t.Fatal("the API document cannot be saved: ", err)
	}
	for _, args := range [][]string{{"tool", "oapi-codegen", "-config", "config.yaml", "openapi.json"}, {"build", "-o", "program", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(t, p, time.Minute, filepath.Join(dir, "program"))
}

// terraform drives a provider over Terraform's plugin protocol.
func terraform(t *testing.T, p *process) {
	binary := filepath.Join(t.TempDir(), "terraform")
	if out, err := goBuild("goclient", binary, "./terraform").CombinedOutput(); err != nil {
		t.Fatalf("building the driver: %v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(run(t, p, 5*time.Minute, binary)))
}

// metrics checks the metrics of the gateway by Prometheus' own rules, after requests of all formats.
func metrics(t *testing.T, p *process) {
	binary := buildGoclient(t)
	run(t, p, 2*time.Minute, binary)
	res, err := http.Get(strings.TrimSuffix(p.url, "/v1") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || bytes.Count(text, []byte("# TYPE ")) < len(comparableMetrics)+5 {
		t.Fatalf("%d %v: %.2000s", res.StatusCode, err, text)
	}
	cmd := exec.Command(binary, "promlint")
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.CombinedOutput()
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, _, problem := strings.Cut(strings.TrimPrefix(line, "FAIL "), ":")
		if found[name] = problem; !problem || !slices.Contains(comparableMetrics, name) {
			t.Errorf("%s", line)
		}
	}
	if err != nil && len(found) == 0 {
		t.Error(err)
	}
}

// comparableMetrics have the names, units and labels that dashboards read, of comparable gateways
// and of the gateway's earlier versions, which the rules reject.
var comparableMetrics = []string{
	"request_count", "llm_cost_sum", "llm_token_sum", "http_request_duration_seconds", "gateway_request_duration_milliseconds", "llm_request_duration_milliseconds",
	"gateway_latency_milliseconds", "gateway_processing_time_excluding_last_byte_ms", "llm_last_byte_diff_duration_milliseconds",
}

// standardFiles are run when net/http serves and calls instead of the engines of this project:
// a stream, an upload, a WebSocket, a signed request, an error.
var standardFiles = []string{
	"test/anthropic.test.mjs", "test/bedrock.test.mjs", "test/errors.test.mjs",
	"test/openai_chat.test.mjs", "test/openai_stored.test.mjs", "test/realtime.test.mjs",
}

// nodePrograms runs each file of test/ with node's own test runner.
func nodePrograms(t *testing.T, p *process) {
	if _, err := exec.LookPath("node"); err != nil {
		missing(t, "node is not installed")
	}
	for _, name := range []string{"openai", "@anthropic-ai/sdk", "@a2a-js/sdk", "@openai/agents-realtime", "@livekit/agents-plugin-openai", "@langfuse/otel", "@ai-sdk/openai", "portkey-ai", "openapi-typescript"} {
		if _, err := os.Stat(filepath.Join("node_modules", name, "package.json")); err != nil {
			missing(t, "the npm packages are not installed: npm ci --prefix scripts/clients")
		}
	}
	files, err := filepath.Glob("test/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no node tests found: %v", err)
	}
	if os.Getenv("GATEWAY_HTTP") == "standard" {
		files = standardFiles
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			// A client may leave a connection open; the tests are over all the same.
			out := run(t, p, 5*time.Minute, "node", "--test", "--test-force-exit", "--test-reporter=tap", file)
			if !bytes.Contains(out, []byte("\n# fail 0\n")) || bytes.Contains(out, []byte("\n# pass 0\n")) || !bytes.Contains(out, []byte("\n# skipped 0\n")) {
				t.Errorf("not all tests ran and passed:\n%s", out)
			}
		})
	}
}

func curlProgram(t *testing.T, p *process) {
	for _, tool := range []string{"bash", "curl", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, tool+" is not installed")
		}
	}
	out := run(t, p, time.Minute, "bash", "curl.sh")
	t.Logf("%s", bytes.TrimSpace(out))
}

// run runs a program against the gateway and fails the test with its output if
// it does not exit with 0.
func run(t *testing.T, p *process, limit time.Duration, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = p.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return out
}

// stop sends SIGTERM while a stream runs: the stream comes to its end, and the
// gateway exits with 0.
func stop(t *testing.T, p *process) {
	body := `{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"mock: chunks=50 pace=20ms"}]}`
	r, err := http.NewRequest(http.MethodPost, p.url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+workspaceKey)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-gateway-provider", "@mock")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 64)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(rest), []byte("data: [DONE]")) {
		t.Errorf("the stream was cut: %v, ends %q", err, rest[max(0, len(rest)-100):])
	}
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		t.Fatal("the gateway did not end")
	}
	if p.err != nil {
		t.Errorf("the gateway ended with %v", p.err)
	}
}
