package onlambda_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/local/mockprovider"
	"gateway/local/onlambda"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/audit"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/mcp"
	"gateway/shared/prompt"
	"gateway/shared/queue/sqs"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/awstest"
	"gateway/shared/testkit/sqstest"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// The keys that the sample events carry.
const (
	workspaceKey = "sample-workspace-key-of-the-tests"
	adminKey     = "sample-admin-key-of-the-tests"
	root         = "../.."
)

// installation is AWS as far as it can stand on loopback, with the function
// binaries on it.
type installation struct {
	tools string // host and port of the sample server of MCP
	core  *onaws.Installation
	sqs   *sqstest.Server
	shim  *onlambda.Platform
	url   string
	dir   string // of the binaries
	env   []string
}

// functions are the names of all functions.
func functions(t testing.TB) []string {
	t.Helper()
	mains, err := filepath.Glob(root + "/functions/*/lambda")
	if err != nil || len(mains) < 10 {
		t.Fatalf("%d functions found: %v", len(mains), err)
	}
	names := make([]string, len(mains))
	for i, m := range mains {
		names[i] = filepath.Base(filepath.Dir(m))
	}
	return names
}

func install(t *testing.T) *installation {
	t.Helper()
	services := awstest.Start(t)
	in := &installation{sqs: services.SQS, dir: awstest.Functions(t), env: services.Env}
	for name, value := range map[string]string{
		onaws.EnvEgress: "127.0.0.0/8", onaws.EnvTrustedHosts: "127.0.0.1", onaws.EnvOriginSecrets: "of-the-edge",
	} {
		t.Setenv(name, value)
		in.env = append(in.env, name+"="+value)
	}
	mock := mockprovider.New(mockprovider.Options{})
	addr, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mock.Close() })
	in.fill(t, "http://"+strings.TrimPrefix(addr, "http://")+"/v1")
	build(t, in.dir, functions(t)...)
	in.shim = onlambda.New(onlambda.Options{Dir: in.dir, Env: in.env, Log: testLog{t}, Secret: "of-the-edge", Max: 2})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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

// built are the binaries that this process has built: finding that all are up to date takes
// the go command most of a minute.
var built = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// build builds functions into dir, each once in this process.
func build(t *testing.T, dir string, names ...string) {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return built.paths[filepath.Join(dir, name)] })
	if len(names) == 0 {
		return
	}
	if err := onlambda.Build(t.Context(), root, dir, names...); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		built.paths[filepath.Join(dir, name)] = true
	}
}

// fill makes the tables and the first organization.
func (in *installation) fill(t *testing.T, mockURL string) {
	t.Helper()
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
	if in.core, err = onaws.Open(t.Context(), onaws.Bucket, onaws.AuditQueue, onaws.UsageQueue, onaws.Keys); err != nil {
		t.Fatal(err)
	}
	first := app.First{AdminKey: adminKey, WorkspaceKey: workspaceKey, MockURL: mockURL, AllowInline: true}
	if _, err := in.core.Bootstrap(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	in.samplePrompt(t)
	in.sampleServer(t)
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimRight(p, "\n"))
	return len(p), nil
}

func (in *installation) do(t *testing.T, method, path, key, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, in.url+"/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-gateway-api-key", key)
	req.Header.Set("content-type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func whole(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFunctionsOnAWS drives the real function binaries through the Runtime API.
func TestFunctionsOnAWS(t *testing.T) {
	in := install(t)
	t.Run("a chat is answered", in.chat)
	t.Run("a stream is answered as it comes", in.stream)
	t.Run("keys are checked", in.refusals)
	t.Run("an administration change is served and audited", in.change)
	t.Run("usage is kept and read back", in.usage)
	t.Run("an event that cannot be queued comes back from the log", in.lostEvent)
	t.Run("what needs the container says so", in.withoutContainer)
	t.Run("sample events", in.samples)
	t.Run("start and size", in.startAndSize)
}

const hello = `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`

func (in *installation) chat(t *testing.T) {
	res := in.do(t, "POST", "/chat/completions", workspaceKey, hello, "x-gateway-provider", "@mock")
	if body := whole(t, res); res.StatusCode != 200 || !strings.Contains(body, `"chat.completion"`) {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
}

func (in *installation) stream(t *testing.T) {
	res := in.do(t, "POST", "/chat/completions", workspaceKey, strings.Replace(hello, "{", `{"stream":true,`, 1), "x-gateway-provider", "@mock")
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %v %s", res.StatusCode, res.Header, whole(t, res))
	}
	last, n := "", 0
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			last = data
			n++
		}
	}
	if n < 3 || last != "[DONE]" {
		t.Errorf("%d events, the last is %q", n, last)
	}
}

func (in *installation) refusals(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, key, body string
		status                  int
	}{
		"unknown key":          {"POST", "/chat/completions", "nobody", hello, 401},
		"unknown key of admin": {"GET", "/configs", "nobody", "", 401},
		"no JSON":              {"POST", "/chat/completions", workspaceKey, "{", 400},
		"no such method":       {"PATCH", "/responses", workspaceKey, "", 404},
		"outside the base":     {"GET", "/../x", workspaceKey, "", 404},
	} {
		res := in.do(t, c.method, c.path, c.key, c.body, "x-gateway-provider", "@mock")
		if body := whole(t, res); res.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
}

func (in *installation) change(t *testing.T) {
	res := in.do(t, "POST", "/configs", adminKey, `{"name":"By function","workspace_id":"default","config":{"retry":{"attempts":2}}}`)
	body := whole(t, res)
	if res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if len(in.sqs.Messages("gateway-audit")) == 0 {
		t.Fatal("no audit record was sent")
	}
	in.drain(t, "audit", onaws.EnvAuditQueue)
	got, err := audit.NewReader(in.core.Store, time.Now).List(t.Context(), "default", audit.Filter{
		Start: time.Now().Add(-time.Hour), End: time.Now().Add(time.Hour), Size: 10,
	})
	if err != nil || got.Total == 0 {
		t.Errorf("%d audit records: %v", got.Total, err)
	}
}

func (in *installation) usage(t *testing.T) {
	if n := len(in.sqs.Messages("gateway-usage")); n < 2 {
		t.Fatalf("%d usage events were sent for two requests", n)
	}
	in.drain(t, "usage", onaws.EnvUsageQueue)
	logs := report.New(segment.New(in.core.Store, in.core.Bucket, segment.Options{}), in.core.Bucket)
	page, err := logs.Logs(t.Context(), store.Scope{Org: "default"}, &report.LogQuery{
		Filter: report.Filter{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}, Limit: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for _, r := range page.Records {
		if r.ClientStatus == 200 && r.Cost > 0 {
			answered++
		}
	}
	if answered < 2 {
		t.Errorf("%d of %d records are of answered and priced requests", answered, len(page.Records))
	}
}

// drain lets a worker's function work until its queue is empty.
func (in *installation) drain(t *testing.T, name, env string) {
	t.Helper()
	cfg, err := onaws.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	go func() { // ends with ctx
		for len(in.sqs.Messages("gateway-"+name)) > 0 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		stop()
	}()
	if err := in.shim.Poll(ctx, sqs.New(cfg, os.Getenv(env)), name); err != nil {
		t.Fatal(err)
	}
	if n := len(in.sqs.Messages("gateway-" + name)); n > 0 {
		t.Errorf("%d messages are left in %s", n, name)
	}
}

// output keeps what a function prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (in *installation) lostEvent(t *testing.T) {
	in.sqs.SetFaults(sqstest.Faults{Request: func(action string) int {
		if strings.HasPrefix(action, "SendMessage") {
			return http.StatusServiceUnavailable
		}
		return 0
	}})
	var log output
	p := runtimeapi.Pool{Binary: filepath.Join(in.dir, "chat", "bootstrap"), Env: in.env, Log: &log}
	defer p.Close(t.Context())
	raw, err := os.ReadFile(filepath.Join(root, "events", "chat.json"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Invoke(t.Context(), raw, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(a.Body); err != nil || a.Status != 200 {
		t.Fatalf("%d %s %v", a.Status, body, err)
	}
	<-a.Settled
	in.sqs.SetFaults(sqstest.Faults{})
	before := len(in.sqs.Messages("gateway-usage"))
	// What a process prints arrives some time after it was printed.
	for deadline := time.Now().Add(time.Minute); !lostIsLogged(log.text()) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	lines := strings.Split(log.text(), "\n")
	var out any
	if err := in.shim.Call(t.Context(), "requeue", logDelivery(t, lines), &out); err != nil {
		t.Fatal(err)
	}
	if n := len(in.sqs.Messages("gateway-usage")) - before; n != 1 {
		t.Errorf("%d events came back from the log: %q", n, lines)
	}
	if strings.Contains(strings.Join(lines, ""), workspaceKey) {
		t.Error("the log holds the key")
	}
	in.drain(t, "usage", onaws.EnvUsageQueue)
}

// logDelivery packs lines as a log subscription does.
func logDelivery(t *testing.T, lines []string) (ev events.CloudwatchLogsEvent) {
	t.Helper()
	var d events.CloudwatchLogsData
	for _, l := range lines {
		d.LogEvents = append(d.LogEvents, events.CloudwatchLogsLogEvent{Message: l})
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(d), z.Close()); err != nil {
		t.Fatal(err)
	}
	ev.AWSLogs.Data = base64.StdEncoding.EncodeToString(packed.Bytes())
	return ev
}

func (in *installation) withoutContainer(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
	}{{"POST", "/realtime", 501}, {"GET", "/responses", 426}, {"POST", "/files", 413}, {"POST", "/audio/speech", 413}} {
		res := in.do(t, c.method, c.path, workspaceKey, "{}", "x-gateway-provider", "@mock")
		// API Gateway leaves the header Upgrade of a 426 out: clients go by the status.
		if body := whole(t, res); res.StatusCode != c.status || !strings.Contains(body, "container") || res.Header.Get("Upgrade") != "" {
			t.Errorf("%s: %d %v %s", c.path, res.StatusCode, res.Header, body)
		}
	}
}

// samplePrompt saves the prompt that the sample of promptruns names.
func (in *installation) samplePrompt(t *testing.T) {
	t.Helper()
	org := store.Scope{Org: "default"}
	ws, ok, err := in.core.Resources.Get(t.Context(), org, tenant.KindWorkspace, "default")
	if err != nil || !ok {
		t.Fatalf("the default workspace: %t %v", ok, err)
	}
	err = in.core.Resources.Change(t.Context(), org, func(tx *resource.Tx) error {
		rec := resource.Record{
			Scope: store.Scope{Org: org.Org, Workspace: ws.ID}, Kind: prompt.KindPrompt, Slug: "pp-sample-000000", Name: "A sample", Status: "active",
			Body: []byte(`{"string":"[{\"role\":\"user\",\"content\":\"{{name}}\"}]","parameters":{},"virtual_key":"mock","model":"gpt-4o-mini"}`),
		}
		if err := tx.Create(&rec); err != nil {
			return err
		}
		tx.FirstVersion(&rec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sampleServer registers the server that the sample of mcp names.
func (in *installation) sampleServer(t *testing.T) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "sample", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
	})
	up := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(up.Close)
	in.tools = strings.TrimPrefix(up.URL, "http://")
	org := store.Scope{Org: "default"}
	ws, ok, err := in.core.Resources.Get(t.Context(), org, tenant.KindWorkspace, "default")
	if err != nil || !ok {
		t.Fatalf("the default workspace: %t %v", ok, err)
	}
	at := store.Scope{Org: org.Org, Workspace: ws.ID}
	err = in.core.Resources.Change(t.Context(), org, func(tx *resource.Tx) error {
		of := resource.Record{Scope: at, Kind: mcp.KindIntegration, Slug: "sample", Name: "A sample", Status: "active",
			Body: []byte(`{"url":"` + up.URL + `","auth_type":"none","transport":"http"}`)}
		if err := tx.Create(&of); err != nil {
			return err
		}
		rec := resource.Record{Scope: at, Kind: mcp.KindServer, Slug: "sample", Name: "A sample", Status: "active",
			Body: []byte(`{"mcp_integration_id":"` + of.ID + `","mcp_integration_slug":"sample"}`)}
		return tx.Create(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// samples replays events/<function>.json.
func (in *installation) samples(t *testing.T) {
	for _, name := range functions(t) {
		t.Run(name, func(t *testing.T) { in.replay(t, name, in.env) })
	}
}

// maxBinary is the bound of functions, in bytes, as they are deployed: for arm64. The
// same code for amd64 is 8 to 9 % longer (measured over chat, mcp and batchruns; batchruns has
// 20,775,074 and 22,667,426 bytes). A
// package that finds methods by reflection (text/template, protobuf) makes the linker
// keep every method and breaks it.
var maxBinary = map[string]int64{"arm64": 20 << 20, "amd64": (20 << 20) * 109 / 100}[runtime.GOARCH]

func (in *installation) startAndSize(t *testing.T) {
	for _, name := range functions(t) {
		path := filepath.Join(in.dir, name, "bootstrap")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxBinary {
			t.Errorf("%s has %d bytes, at most %d are allowed", name, info.Size(), maxBinary)
		}
		begun := time.Now()
		e, err := runtimeapi.Start(path, in.env, testLog{t})
		if err != nil {
			t.Fatal(err)
		}
		for e.Polls() == 0 {
			select {
			case <-e.Ended():
				t.Fatalf("%s ended at its start", name)
			case <-time.After(100 * time.Microsecond):
			}
		}
		t.Logf("%-14s %5.1f MB, ready after %s", name, float64(info.Size())/1e6, time.Since(begun).Round(time.Millisecond))
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// lostIsLogged reports whether the line of an event that could not be queued has come
// whole.
func lostIsLogged(log string) bool {
	_, rest, found := strings.Cut(log, "usage event is not queued")
	return found && strings.Contains(rest, "}\n")
}
