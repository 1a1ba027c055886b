package onlambda_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/oklog/ulid/v2"

	"gateway/shared/app/onaws"
	"gateway/shared/host/placement"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/queue"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// calls are what one request, or one batch of a worker, costs AWS's services.
type calls struct {
	Writes float64 `json:"writes,omitempty"` // units of DynamoDB, of 1 KB
	Reads  float64 `json:"reads,omitempty"`  // units of DynamoDB, of 4 KB read consistently
	SQS    int     `json:"sqs,omitempty"`    // requests, of 64 KB
	Puts   int     `json:"puts,omitempty"`   // of S3, and lists
	Gets   int     `json:"gets,omitempty"`   // of S3; what is deleted there costs nothing
	KMS    int     `json:"kms,omitempty"`

	Records int `json:"records,omitempty"` // that it is of, when it is no single request
	Batches int `json:"batches,omitempty"`
}

// counters stand before the emulators and count what functions ask them for.
type counters struct {
	mu    sync.Mutex
	sum   calls
	trace []string
	odd   []string // calls of DynamoDB that tell no units
}

// reset gives what was counted since the last reset.
func (c *counters) reset() (calls, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum, trace := c.sum, c.trace
	c.sum, c.trace = calls{}, nil
	return sum, trace
}

// before puts a counter before each service that env leads to.
func (c *counters) before(t *testing.T, env []string) (counted []string) {
	t.Helper()
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		service, ok := strings.CutPrefix(name, "AWS_ENDPOINT_URL_")
		if !ok {
			counted = append(counted, v)
			continue
		}
		to, err := url.Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = p.In.Host }} // it is signed
		s := httptest.NewServer(c.counting(service, proxy))
		t.Cleanup(s.Close)
		counted = append(counted, name+"="+s.URL)
	}
	return counted
}

func (c *counters) counting(service string, to *httputil.ReverseProxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		action := r.Method
		if r.URL.Query().Has("list-type") {
			action = "LIST"
		}
		if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
			action = name
		}
		if service == "DYNAMODB" {
			body = withConsumption(body)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer := httptest.NewRecorder()
		to.ServeHTTP(answer, r)
		c.count(service, action, body, answer.Body.Bytes())
		for k, v := range answer.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// withConsumption has DynamoDB tell what a call consumes.
func withConsumption(body []byte) []byte {
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil {
		return body
	}
	in["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
	out, err := json.Marshal(in)
	if err != nil {
		return body
	}
	return out
}

// count adds one call. It leaves out two calls that a process makes now and then, for any
// number of requests, so that a slow machine counts the same: whether an organization's
// generation has changed, and whether the edge's secrets have. The code that makes a price
// adds the first.
func (c *counters) count(service, action string, body, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch service {
	case "DYNAMODB":
		if action == "GetItem" && (bytes.Contains(body, []byte("GEN#")) || bytes.Contains(body, []byte("SYS#ORIGIN"))) {
			return
		}
		units := consumed(answer)
		if units == 0 && strings.HasPrefix(action, "Update") {
			units = 1 // a condition that failed, or a first write, whose responses tell none here
		}
		if units == 0 {
			c.odd = append(c.odd, action+": "+string(answer[:min(len(answer), 200)]))
		}
		if strings.HasPrefix(action, "Get") || strings.HasPrefix(action, "BatchGet") || action == "Query" || action == "TransactGetItems" {
			c.sum.Reads += units
		} else {
			c.sum.Writes += units
		}
	case "SQS":
		c.sum.SQS += 1 + len(body)/(64<<10)
	case "S3":
		switch action {
		case http.MethodDelete:
		case http.MethodGet, http.MethodHead:
			c.sum.Gets++
		default:
			c.sum.Puts++
		}
	case "KMS":
		c.sum.KMS++
	}
	c.trace = append(c.trace, service+" "+action)
}

// consumed are the units that DynamoDB says a call took.
func consumed(answer []byte) (units float64) {
	var out struct{ ConsumedCapacity json.RawMessage }
	if json.Unmarshal(answer, &out) != nil {
		return 0
	}
	type capacity struct{ CapacityUnits float64 }
	var one capacity
	var many []capacity
	if json.Unmarshal(out.ConsumedCapacity, &one) != nil {
		_ = json.Unmarshal(out.ConsumedCapacity, &many) // none: the caller tells
	}
	for _, c := range append(many, one) {
		units += c.CapacityUnits
	}
	return units
}

// measured are functions whose calls are counted.
type measured struct {
	*installation
	counters
	counted []string
	n       int
	pools   map[string]*runtimeapi.Pool
}

func (m *measured) pool(t *testing.T, function string) *runtimeapi.Pool {
	p := m.pools[function]
	if p == nil {
		p = &runtimeapi.Pool{Binary: filepath.Join(m.dir, function, "bootstrap"), Env: m.counted, Log: testLog{t}, Max: 1}
		m.pools[function] = p
		t.Cleanup(func() { _ = p.Close(context.Background()) })
	}
	return p
}

// send gives a function a request as an event, and waits until all its work for it is
// done.
func (m *measured) send(t *testing.T, method, path, key, body string, header ...string) (status int, answer string) {
	t.Helper()
	req := httptest.NewRequest(method, "/v1"+path, strings.NewReader(body))
	req.Header.Set("x-gateway-api-key", key)
	req.Header.Set("content-type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	route, ok := placement.Find(method, strings.Split(path, "?")[0])
	if !ok {
		t.Fatalf("no route %s %s", method, path)
	}
	ev, err := m.shim.Event(req, route)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.pool(t, route.Family).Invoke(t.Context(), ev, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	<-a.Settled
	if a.Stream {
		return a.Status, string(raw)
	}
	var out struct {
		StatusCode int
		Body       string
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out.StatusCode, out.Body
}

var updateCalls = flag.Bool("update-calls", false, "write the calls of each kind of request")

// callsFile is where infra finds what each kind of request calls.
const callsFile = root + "/infra/testdata/calls.json"

// kinds are requests grouped by what they cost. Each is sent three times; the last one
// counts, when the function is warm.
func (m *measured) kinds(t *testing.T) map[string]calls {
	t.Helper()
	got := map[string]calls{}
	kind := func(name, method, path, key, body string, header ...string) string {
		t.Helper()
		var status int
		var answer string
		for range 3 {
			m.reset()
			status, answer = m.send(t, method, path, key, strings.ReplaceAll(body, "{n}", strconv.Itoa(m.next())), header...)
		}
		if status != 200 {
			t.Fatalf("%s: %d %s", name, status, answer)
		}
		sum, trace := m.reset()
		got[name] = sum
		t.Logf("%-28s %+v %v", name, sum, trace)
		return answer
	}
	const mock = "x-gateway-provider"
	cached := `{"provider":"@mock","cache":{"mode":"simple","max_age":3600}}`
	kind("chat", "POST", "/chat/completions", workspaceKey, hello, mock, "@mock")
	kind("chat, cached", "POST", "/chat/completions", workspaceKey, hello, "x-gateway-config", cached)
	kind("chat, to be cached", "POST", "/chat/completions", workspaceKey, strings.Replace(hello, "Hello", "Hello {n}", 1), "x-gateway-config", cached)
	kind("chat, limited", "POST", "/chat/completions", m.limitedKey(t), hello, mock, "@mock")
	kind("embeddings", "POST", "/embeddings", workspaceKey, `{"model":"text-embedding-3-small","input":"Hello"}`, mock, "@mock")
	kind("models", "GET", "/models", workspaceKey, "")
	kind("pass-through", "GET", "/assistants", workspaceKey, "", mock, "@mock", "openai-beta", "assistants=v2")
	kind("dry run", "POST", "/configs/dry-run", workspaceKey, `{"path":"/chat/completions","body":`+strings.Replace(hello, "gpt", "@mock/gpt", 1)+`}`)
	answer := kind("admin, create", "POST", "/configs", adminKey, `{"name":"Config {n}","workspace_id":"default","config":{"retry":{"attempts":2}}}`)
	var made struct {
		Data struct{ Slug string }
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Data.Slug == "" {
		t.Fatalf("%s: %v", answer, err)
	}
	kind("admin, list", "GET", "/configs?workspace_id=default", adminKey, "")
	kind("admin, read", "GET", "/configs/"+made.Data.Slug+"?workspace_id=default", adminKey, "")
	kind("admin, change", "PUT", "/configs/"+made.Data.Slug, adminKey, `{"name":"Other {n}","workspace_id":"default"}`)
	return got
}

// next numbers bodies that must differ.
func (m *measured) next() int { m.n++; return m.n }

// limitedKey makes a key with a rate limit and a budget.
func (m *measured) limitedKey(t *testing.T) string {
	t.Helper()
	status, answer := m.send(t, "POST", "/api-keys/workspace/service", adminKey, `{"name":"limited","workspace_id":"default","scopes":["completions.write"],
		"rate_limits":[{"type":"requests","unit":"rpm","value":100000}],"usage_limits":{"credit_limit":1000000,"type":"cost"}}`)
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Key == "" {
		t.Fatalf("%d %s: %v", status, answer, err)
	}
	return made.Key
}

// Batches of the usage worker: one request's share when it comes with few others, and with
// many.
var batchSizes = map[string]int{"usage, 24 a batch": 24, "usage, 75 a batch": 75, "usage, 500 a batch": 500}

// bodyBytes is what a record keeps of its bodies here, sealed.
const bodyBytes = 1500

// usageWorker counts what a batch costs to keep and to merge, until the next day.
func (m *measured) usageWorker(t *testing.T) map[string]calls {
	t.Helper()
	got := map[string]calls{}
	for _, v := range m.counted { // the compactor runs here, on another day
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_ENDPOINT") {
			t.Setenv(name, value)
		}
	}
	core, err := onaws.Open(t.Context(), onaws.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	compact := func(later time.Duration) {
		at := time.Now().Add(later)
		archive := segment.New(core.Store, core.Bucket, segment.Options{Inline: segment.CheapestInline, MinMerge: segment.CheapestMinMerge, Clock: func() time.Time { return at }})
		if err := archive.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range batchSizes {
		m.reset()
		const batches = 20
		start := time.Now().UTC().Truncate(time.Hour).Add(time.Minute)
		for b := range batches {
			var ev events.SQSEvent
			for i := range size {
				r := sampleRecord(name, start.Add(time.Duration(b*size+i)*time.Millisecond))
				ev.Records = append(ev.Records, events.SQSMessage{MessageId: r.ID, Body: queue.EncodeBody(r.AppendEvent(nil)), EventSource: "aws:sqs"})
			}
			raw, err := json.Marshal(ev)
			if err != nil {
				t.Fatal(err)
			}
			a, err := m.pool(t, "usage").Invoke(t.Context(), raw, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := io.ReadAll(a.Body); err != nil || !strings.Contains(string(out), `"batchItemFailures":[]`) {
				t.Fatalf("%s %v", out, err)
			}
			<-a.Settled
			if b%5 == 4 { // the schedule: a batch a minute is merged every five
				compact(time.Minute)
			}
		}
		for _, later := range []time.Duration{2 * time.Hour, 2*time.Hour + 20*time.Minute, 49 * time.Hour, 50 * time.Hour} {
			compact(later)
		}
		sum, _ := m.reset()
		n := batches * size
		t.Logf("%-20s %+v for %d records in %d batches", name, sum, n, batches)
		sum.Records, sum.Batches = n, batches
		got[name] = sum
	}
	return got
}

func sampleRecord(org string, start time.Time) *usage.Record {
	r := &usage.Record{
		ID: ulid.MustNew(ulid.Timestamp(start), rand.Reader).String(), Start: start, Org: strings.Fields(strings.ReplaceAll(org, ",", ""))[1], Workspace: "5f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11",
		WorkspaceSlug: "default", KeyID: "6f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11", KeyType: "workspace-service", Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions",
		RequestModel: "gpt-4o", ClientStatus: 200, Provider: "openai", ProviderSlug: "main", Model: "gpt-4o-2024-08-06", OptionIndex: "config", CacheStatus: "MISS",
		FinishReason: "stop", Cost: 1_000_000, Priced: true, Duration: 900 * time.Millisecond, TimeToFirstByte: 200 * time.Millisecond, Bodies: make([]byte, bodyBytes),
	}
	_, _ = rand.Read(r.Bodies) // never fails
	r.Attempts = []usage.Attempt{{Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", OptionIndex: "config", Status: 200, Cost: r.Cost}}
	return r
}

// near reports whether both are the same but for a tenth: files are of slightly other
// sizes each time.
func (c calls) near(o calls) bool {
	close := func(a, b float64) bool { return math.Abs(a-b) <= 2+math.Max(a, b)/10 }
	return c.Records == o.Records && c.Batches == o.Batches && close(c.Writes, o.Writes) && close(c.Reads, o.Reads) &&
		close(float64(c.Puts), float64(o.Puts)) && close(float64(c.Gets), float64(o.Gets)) && c.SQS == o.SQS && c.KMS == o.KMS
}

// TestCallsOfRequests checks what each kind of request, and a batch of the workers, asks of
// AWS's services. infra makes prices of the result.
func TestCallsOfRequests(t *testing.T) {
	m := &measured{installation: install(t), pools: map[string]*runtimeapi.Pool{}}
	m.counted = m.before(t, m.env)
	got := m.kinds(t)
	maps.Copy(got, m.usageWorker(t))
	if len(m.odd) > 0 {
		t.Errorf("calls without units: %q", m.odd)
	}
	if *updateCalls {
		raw, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(callsFile, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]calls
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	for name, c := range got {
		if strings.HasPrefix(name, "admin, ") && c.Reads > want[name].Reads && c.Reads <= want[name].Reads+3 {
			c.Reads = want[name].Reads // on a slow machine what a function knows grows old between two calls, and is read again
		}
		if c != want[name] && (c.Records == 0 || !c.near(want[name])) {
			t.Errorf("%s: %+v, in the file %+v; go test ./local/onlambda -run CallsOfRequests -update-calls writes it", name, c, want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d kinds, in the file %d", len(got), len(want))
	}
}
