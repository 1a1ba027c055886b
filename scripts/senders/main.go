// Command senders records what the instrumentations of LLM SDKs send. It runs each sender's
// real package, in the version that its package.json pins, against the mock provider and writes
// the OTLP requests with the mock's bill to functions/logs/testdata/senders, where make test
// replays them.
//
//	go run ./scripts/senders [-dir DIR] [-only NAME,...]
//
// Packages are installed by npm in DIR, a temporary directory unless stated. Recordings contain
// no data of this machine: the resource is reduced to names and versions, and stack traces are
// removed.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gateway/local/mockprovider"
)

// source is where the senders are, and target is where recordings are written.
const (
	source = "scripts/senders"
	target = "functions/logs/testdata/senders"
)

// calls are the cases that each sender makes.
var calls = []string{"plain", "stream", "tool", "cached", "reasoning", "429", "500", "aborted"}

// further are cases of single senders.
var further = map[string][]string{
	"ai6": {"responses", "embeddings"}, "ai7": {"responses", "embeddings"}, "ai7-legacy": {"embeddings"}, "openinference-openai": {"responses", "embeddings"},
	"langfuse": {"responses", "embeddings"}, "opentelemetry": {"responses", "embeddings"}, "traceloop-openai": {"embeddings"},
	"openinference-langchain": {"responses", "embeddings"}, "traceloop-langchain": {"responses", "embeddings"}, "openinference-agents": {"responses"}, "openinference-vercel": {"responses", "embeddings"}, "traceloop-bedrock": {"converse"},
	"sentry": {"responses", "embeddings"}, "sentry-ai": {"responses", "embeddings"},
}

// without are cases that a sender cannot make.
var without = map[string][]string{
	"anthropic": {"reasoning"}, "traceloop-anthropic": {"reasoning"}, "openinference-anthropic": {"reasoning"}, "ai7-anthropic": {"reasoning"}, "traceloop-bedrock": {"reasoning", "cached"},
	"traceloop-google": {"tool"}, "adk": {"tool"}, "mastra": {"tool"},
}

// Recording is the file of a sender.
type Recording struct {
	Sender   string            `json:"sender"`
	Packages map[string]string `json:"packages"`
	Cases    []Case            `json:"cases"`
}

// Case is one call, with the exported data and the provider's charge.
type Case struct {
	Name     string    `json:"name"`
	Requests []Request `json:"requests"`
	Bill     []Charge  `json:"bill"`
}

// Request is a request of OTLP. Body is a JSON object, or a string with base64 of protobuf.
type Request struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// Charge is a row of the mock provider's bill.
type Charge struct {
	Model       string             `json:"model"`
	Status      int                `json:"status"`
	Usage       mockprovider.Usage `json:"usage"`
	NanoDollars int64              `json:"nano_dollars"`
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "", "where packages are installed; empty: a temporary directory")
	only := flag.String("only", "", "names of senders, separated by commas; empty: all")
	flag.Parse()
	if *dir == "" {
		made, err := os.MkdirTemp("", "senders-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(made)
		*dir = made
	}
	found, err := filepath.Glob(source + "/*/package.json")
	if err != nil || len(found) == 0 {
		log.Fatal("senders: run it in the root of the repository: ", err)
	}
	for _, f := range found {
		name := filepath.Base(filepath.Dir(f))
		if *only != "" && !slices.Contains(strings.Split(*only, ","), name) {
			continue
		}
		if err := record(*dir, name); err != nil {
			log.Fatalf("senders: %s: %v", name, err)
		}
	}
}

// record installs a sender and writes its recording.
func record(dir, name string) error {
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for from, to := range map[string]string{name + "/package.json": name + "/package.json", name + "/run.cjs": name + "/run.cjs", "support.cjs": "support.cjs"} {
		raw, err := os.ReadFile(filepath.Join(source, from))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, to), raw, 0o644); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(at, "node_modules")); err != nil {
		npm := exec.Command("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--silent", "--no-package-lock")
		npm.Dir, npm.Stdout, npm.Stderr = at, os.Stderr, os.Stderr
		if err := npm.Run(); err != nil {
			return fmt.Errorf("npm install: %w", err)
		}
	}
	out := Recording{Sender: name}
	var pinned struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	raw, err := os.ReadFile(filepath.Join(at, "package.json"))
	if err == nil {
		err = json.Unmarshal(raw, &pinned)
	}
	if err != nil {
		return err
	}
	out.Packages = pinned.Dependencies
	for _, c := range append(slices.Clone(calls), further[name]...) {
		if slices.Contains(without[name], c) {
			continue
		}
		made, err := call(at, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		log.Printf("%s %s: %d requests, %d charged", name, c, len(made.Requests), len(made.Bill))
		out.Cases = append(out.Cases, *made)
	}
	f, err := os.Create(filepath.Join(target, name+".json.gz"))
	if err != nil {
		return err
	}
	defer f.Close()
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression) // the level is valid
	if err := json.NewEncoder(z).Encode(out); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

// call runs one case of a sender.
func call(at, name string) (*Case, error) {
	mock := mockprovider.New(mockprovider.Options{CacheMinTokens: 64})
	url, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer mock.Close()
	to, err := listen()
	if err != nil {
		return nil, err
	}
	defer to.close()
	node := exec.Command("node", "run.cjs")
	node.Dir, node.Stderr = at, os.Stderr
	node.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + at, "MOCK=" + url, "COLLECTOR=" + to.url, "CASE=" + name}
	stop := time.AfterFunc(time.Minute, func() { _ = node.Process.Kill() })
	defer stop.Stop()
	if err := node.Run(); err != nil {
		return nil, err
	}
	c := &Case{Name: name, Requests: append([]Request{}, to.requests()...), Bill: []Charge{}}
	for _, row := range mock.Bill().Rows {
		c.Bill = append(c.Bill, Charge{row.Model, row.Status, row.Usage, row.NanoDollars})
	}
	return c, nil
}

// receiver accepts and stores OTLP requests.
type receiver struct {
	url       string
	server    *http.Server
	mu        sync.Mutex
	collected []Request
}

func listen() (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + ln.Addr().String()}
	r.server = &http.Server{Handler: r}
	go func() { _ = r.server.Serve(ln) }() // ends with close
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

func (r *receiver) requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.collected)
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	defer w.WriteHeader(http.StatusOK)
	var in io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			log.Printf("%s: %v", q.URL.Path, err)
			return
		}
		in = z
	}
	raw, err := io.ReadAll(in)
	if err != nil || !strings.HasSuffix(q.URL.Path, "/v1/traces") {
		return // other signals, and other protocols of a sender
	}
	body, err := trim(raw, q.Header.Get("Content-Type"))
	if err != nil {
		log.Printf("%s: %v", q.URL.Path, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collected = append(r.collected, Request{"/v1/traces", body})
}

// retainedAttributes are the resource attributes that remain.
var retainedAttributes = []string{"service.name", "telemetry.sdk.name", "telemetry.sdk.language", "telemetry.sdk.version"}

// dropped are attributes that are removed: they have addresses and paths of this machine.
var dropped = []string{"exception.stacktrace", "server.port", "network.peer.port", "url.full", "http.request.header.host"}

// trim removes data of this machine from a request.
func trim(raw []byte, contentType string) (json.RawMessage, error) {
	if !strings.Contains(contentType, "json") {
		var d tracepb.TracesData
		if err := proto.Unmarshal(raw, &d); err != nil {
			return nil, err
		}
		for _, rs := range d.ResourceSpans {
			if rs.Resource != nil {
				rs.Resource.Attributes = slices.DeleteFunc(rs.Resource.Attributes, func(a *commonpb.KeyValue) bool { return !slices.Contains(retainedAttributes, a.Key) })
			}
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					for _, e := range s.Events {
						e.Attributes = slices.DeleteFunc(e.Attributes, func(a *commonpb.KeyValue) bool { return slices.Contains(dropped, a.Key) })
					}
				}
			}
		}
		out, err := proto.Marshal(&d)
		if err != nil {
			return nil, err
		}
		return json.Marshal(base64.StdEncoding.EncodeToString(out))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	resources, _ := o["resourceSpans"].([]any)
	for _, one := range resources {
		rs, _ := one.(map[string]any)
		if res, ok := rs["resource"].(map[string]any); ok {
			res["attributes"] = except(res["attributes"], func(key string) bool { return !slices.Contains(retainedAttributes, key) })
		}
		clean(rs["scopeSpans"])
	}
	return json.Marshal(o)
}

// clean removes dropped attributes below v.
func clean(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			clean(one)
		}
	case map[string]any:
		if list, ok := v["attributes"]; ok {
			v["attributes"] = except(list, func(key string) bool { return slices.Contains(dropped, key) })
		}
		for _, one := range v {
			clean(one)
		}
	}
}

func except(list any, drop func(key string) bool) any {
	all, _ := list.([]any)
	return slices.DeleteFunc(all, func(one any) bool {
		pair, _ := one.(map[string]any)
		key, _ := pair["key"].(string)
		return drop(key)
	})
}
