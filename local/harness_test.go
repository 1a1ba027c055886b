package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/local/mockprovider"
	"gateway/shared/relay/caching"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

const (
	adminKey     = "admin-key-of-the-tests"
	workspaceKey = "workspace-key-of-the-tests"
)

// running is a gateway in this process, with its own folder and mock provider.
type running struct {
	t    *testing.T
	base string // with /v1
	g    *gateway
	mock *mockprovider.Server
	stop func() // stops it and waits; may be called more than once
}

// made are the ids of all keys that newKey has made, by key.
var made sync.Map

// start runs a gateway until the test ends.
func start(t *testing.T) *running { return startIn(t, t.TempDir()) }

// startIn runs a gateway in a folder; set changes it before it serves.
func startIn(t *testing.T, dir string, set ...func(*gateway)) *running {
	t.Helper()
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", dir})
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, o, set...)
}

// startWith runs a gateway with other options.
func startWith(t *testing.T, o options, set ...func(*gateway)) *running {
	t.Helper()
	g, err := open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if g.relay != nil { // what is kept is found, however busy the machine is
		g.relay.CacheTimes = caching.Times{Read: time.Minute, Write: time.Minute, Embed: time.Minute}
	}
	g.core.AllowDuplicates = true // tests create many equal resources
	for _, f := range set {
		f(g)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.serve(ctx, io.Discard) }()
	r := &running{t: t, g: g, mock: g.mock, base: "http://" + g.server.Addr().String() + "/v1"}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the gateway stopped with %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// reply is a response read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("not JSON: %v: %s", err, r.body)
	}
	return v
}

// call sends a request; headers come as name, value pairs.
func (r *running) call(method, path, body string, headers ...string) reply {
	r.t.Helper()
	got, err := r.try(method, path, body, headers...)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *running) try(method, path, body string, headers ...string) (reply, error) {
	if method == "GET" && path == "/realtime" {
		return r.tryRealtime(body, headers...)
	}
	if method == "GET" && path == "/responses" {
		return r.tryDialogue(body, headers...)
	}
	req, err := http.NewRequest(method, r.base+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("X-Gateway-Api-Key", workspaceKey)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	got := reply{resp.StatusCode, resp.Header, string(raw)}
	if err == nil {
		r.checkDescribed(method, path, &got)
	}
	return got, err
}

// admin sends a request with the organization key and expects status 200.
func (r *running) admin(method, path, body string) map[string]any {
	r.t.Helper()
	got := r.call(method, path, body, "X-Gateway-Api-Key", adminKey)
	if got.status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
	return got.json(r.t)
}

// workspace is the id of the default workspace.
func (r *running) workspace() string {
	r.t.Helper()
	rec, ok, err := r.g.core.Resources.Get(context.Background(), store.Scope{Org: "default"}, tenant.KindWorkspace, "default")
	if err != nil || !ok {
		r.t.Fatalf("the default workspace: %v %v", ok, err)
	}
	return rec.ID
}

// newKey makes a workspace key with further fields of its body.
func (r *running) newKey(fields string) string {
	r.t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	got := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"a key of the tests","workspace_id":%q,"scopes":["completions.write","logs.view","logs.list"]%s}`, r.workspace(), fields))
	made.Store(got["key"], got["id"])
	return got["key"].(string)
}

// chatBody is a chat request's body with one user message.
func chatBody(model, message, more string) string {
	m, _ := json.Marshal(message)
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%s}]%s}`, model, m, more)
}

// records waits until n requests are in the archive and gives them, oldest first.
func (r *running) records(n int) []usage.Record {
	r.t.Helper()
	var all []usage.Record
	eventually(r.t, func() error {
		all = archived(r.t, r.g)
		if len(all) < n {
			return fmt.Errorf("%d of %d records", len(all), n)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b usage.Record) int { return a.Start.Compare(b.Start) })
	return all
}

// archived reads every record that the archive holds, each once.
func archived(t *testing.T, g *gateway) []usage.Record {
	t.Helper()
	ctx := context.Background()
	a := segment.New(g.core.Store, g.core.Bucket, segment.Options{})
	list, err := a.List(ctx, "default", 0, time.Now().Add(time.Hour).UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var all []usage.Record
	for i := range list {
		f, err := a.File(ctx, &list[i])
		if err != nil {
			t.Fatal(err)
		}
		for gi, group := range f.Groups {
			rows := make([]int, group.Rows)
			for j := range rows {
				rows[j] = j
			}
			recs, err := f.Records(ctx, gi, rows)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range recs {
				if !seen[rec.ID] {
					seen[rec.ID] = true
					all = append(all, rec)
				}
			}
		}
	}
	return all
}

// eventually tries f until it succeeds, for at most two minutes: something that takes a
// second may take long on a busy machine.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// events are the data lines of a server-sent event stream.
func events(body string) []string {
	var out []string
	for _, line := range strings.Split(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("GATEWAY_TEST_CHILD"); dir != "" {
		os.Exit(child(dir))
	}
	if err := ready(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// ready prepares this process once for tests that run side by side. It sets the keys of
// their gateways in the environment. Most tests wait for others most of the time, so it
// lets more of them run than there are cores.
func ready() error {
	flag.Parse()
	stopped := false
	flag.Visit(func(f *flag.Flag) { stopped = stopped || f.Name == "test.parallel" })
	if !stopped {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			return err
		}
	}
	return errors.Join(os.Setenv("GATEWAY_ADMIN_KEY", adminKey), os.Setenv("GATEWAY_WORKSPACE_KEY", workspaceKey))
}

// child is this test binary run as the gateway, for tests that kill it.
func child(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	args := append([]string{"-addr", os.Getenv("GATEWAY_TEST_ADDR"), "-data", dir}, strings.Fields(os.Getenv("GATEWAY_TEST_FLAGS"))...)
	if err := run(ctx, args, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
