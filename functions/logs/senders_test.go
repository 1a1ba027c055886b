package logs

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// recording is a file that scripts/senders has written: what an instrumentation sent about
// calls of the mock provider, and what the mock charged for them.
type recording struct {
	Sender   string            `json:"sender"`
	Packages map[string]string `json:"packages"`
	Cases    []struct {
		Name     string `json:"name"`
		Requests []struct {
			Body json.RawMessage `json:"body"` // JSON, or base64 of protobuf
		} `json:"requests"`
		Bill []struct {
			Status int `json:"status"`
			Usage  struct {
				Input        int64 `json:"input"`
				CacheRead    int64 `json:"cache_read"`
				CacheWrite5m int64 `json:"cache_write_5m"`
				CacheWrite1h int64 `json:"cache_write_1h"`
				Output       int64 `json:"output"`
				Reasoning    int64 `json:"reasoning"`
			} `json:"usage"`
			NanoDollars int64 `json:"nano_dollars"`
		} `json:"bill"`
	} `json:"cases"`
}

// losses are what senders lose themselves, by sender and case; the guide observe.md lists
// them. A loss is what differs from the bill, or "span" if nothing is sent.
var (
	nothing   = []string{"span"}
	noUsage   = []string{"cost", "input", "output", "reasoning"}
	noDetails = []string{"cache read", "cost", "input", "reasoning"} // cached tokens are charged as input
	noSplit   = []string{"reasoning"}                                // part of the output
	lastChunk = []string{"cost", "output"}
	losses    = map[string]map[string][]string{
		"adk":                     {"429": {"calls", "status"}, "aborted": {"cost", "output", "status"}},
		"ai6":                     {"429": {"status"}, "aborted": nothing},
		"ai7":                     {"plain": noSplit, "stream": noSplit, "tool": noSplit, "cached": noSplit, "reasoning": noSplit, "responses": noSplit, "aborted": noUsage},
		"ai7-anthropic":           {"aborted": {"cost", "input", "output"}},
		"ai7-legacy":              {"429": {"status"}, "aborted": noUsage},
		"anthropic":               {"aborted": lastChunk},
		"langfuse":                {"embeddings": {"cost", "input"}, "aborted": nothing},
		"langsmith":               {"stream": nothing, "aborted": nothing},
		"mastra":                  {"429": {"status"}, "aborted": noUsage},
		"openinference-anthropic": {"aborted": lastChunk},
		"openinference-openai":    {"stream": noUsage, "429": nothing, "500": nothing, "embeddings": {"cost", "input"}, "aborted": nothing},
		"openinference-agents":    {"aborted": noUsage},
		"openinference-langchain": {"embeddings": nothing, "aborted": noUsage},
		"openinference-vercel":    {"aborted": noUsage},
		"opentelemetry":           {"plain": noSplit, "stream": noSplit, "tool": noSplit, "reasoning": noSplit, "responses": noSplit, "cached": noDetails, "aborted": nothing},
		"sentry":                  {"plain": noSplit, "stream": noSplit, "tool": noSplit, "cached": noSplit, "reasoning": noSplit, "responses": noSplit, "429": {"status"}, "aborted": append(noUsage[:4:4], "status")},
		"sentry-ai":               {"plain": noSplit, "stream": noSplit, "tool": noSplit, "cached": noDetails, "reasoning": noSplit, "responses": noSplit, "429": {"status"}, "aborted": noUsage},
		"traceloop-anthropic":     {"aborted": lastChunk},
		"traceloop-google":        {"aborted": {"cost", "input", "output"}},
		"traceloop-bedrock":       {"aborted": {"status"}, "converse": {"cost", "input", "output"}},
		"traceloop-langchain":     {"plain": noSplit, "stream": noSplit, "tool": noSplit, "reasoning": noSplit, "cached": noDetails, "responses": noUsage, "embeddings": nothing, "aborted": noUsage},
		"traceloop-openai":        {"plain": noSplit, "tool": noSplit, "reasoning": noSplit, "cached": noDetails, "stream": noUsage, "429": nothing, "500": nothing, "embeddings": nothing, "aborted": nothing},
	}
)

// TestRecordingsOfSenders replays what the real packages sent: records, and the sums of
// analytics, are what the provider charged.
func TestRecordingsOfSenders(t *testing.T) {
	files, err := filepath.Glob("testdata/senders/*.json.gz")
	if err != nil || len(files) < 22 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		in := install(t)
		var rec recording
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err == nil {
			err = json.NewDecoder(z).Decode(&rec)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		for i := range rec.Cases {
			c := &rec.Cases[i]
			traces := map[string]bool{}
			for _, r := range c.Requests {
				in.replay(t, r.Body, traces)
			}
			records := in.recordsOf(t, slices.Sorted(maps.Keys(traces)))
			want := map[string]int64{}
			for _, b := range c.Bill {
				u := b.Usage
				for name, n := range map[string]int64{"calls": 1, "input": u.Input, "cache read": u.CacheRead, "cache write": u.CacheWrite5m + u.CacheWrite1h, "output": u.Output + u.Reasoning, "reasoning": u.Reasoning, "cost": b.NanoDollars, "status": int64(b.Status)} {
					want[name] += n
				}
			}
			if c.Name == "aborted" {
				want["status"] = 500 // the mock has answered, but the stream broke off
			}
			got := map[string]int64{}
			for j := range records {
				r := &records[j]
				if r.Endpoint == usage.EndpointSpan {
					if r.Cost != 0 || r.Usage.TotalTokens() != 0 {
						t.Errorf("%s %s: a span costs %d", rec.Sender, c.Name, r.Cost)
					}
					continue
				}
				u := r.Usage
				for name, n := range map[string]int64{"calls": 1, "input": u.N(pricing.Input), "cache read": u.Cached(), "cache write": u.CacheWrites(), "output": u.OutputTokens(), "reasoning": u.N(pricing.Reasoning), "cost": int64(r.Cost), "status": int64(r.ClientStatus)} {
					got[name] += n
				}
			}
			var differ []string
			if len(records) == 0 {
				differ = []string{"span"}
			} else {
				for _, name := range slices.Sorted(maps.Keys(want)) {
					if got[name] != want[name] {
						differ = append(differ, name)
					}
				}
			}
			if expected := losses[rec.Sender][c.Name]; !slices.Equal(differ, expected) {
				t.Errorf("%s %s: %v differ, want %v: %v, charged %v", rec.Sender, c.Name, differ, expected, got, want)
			}
		}
	}
}

var recordedTime = regexp.MustCompile(`("(?:start|end)TimeUnixNano":")(\d+)"`)

// replay sends a recorded request, moved to an hour ago, and adds its traces.
func (in *installation) replay(t *testing.T, body json.RawMessage, traces map[string]bool) {
	t.Helper()
	header, raw := map[string]string{"Content-Type": "application/json"}, []byte(body)
	read := otlp.ReadJSONTraces
	if body[0] == '"' {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			t.Fatal(err)
		}
		var err error
		if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
			t.Fatal(err)
		}
		header["Content-Type"], read = protobufType, otlp.ReadTraces
	}
	all, err := read(raw)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d spans, %v", len(all), err)
	}
	for i := range all {
		traces[all[i].Trace] = true
	}
	move := uint64(time.Now().Add(-time.Hour).Sub(all[0].Start))
	if body[0] == '"' {
		var d tracepb.TracesData
		if err := proto.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		for _, r := range d.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, one := range s.Spans {
					one.StartTimeUnixNano += move
					one.EndTimeUnixNano += move
				}
			}
		}
		if raw, err = proto.Marshal(&d); err != nil {
			t.Fatal(err)
		}
	} else {
		raw = recordedTime.ReplaceAllFunc(raw, func(b []byte) []byte {
			m := recordedTime.FindSubmatch(b)
			n, _ := strconv.ParseUint(string(m[2]), 10, 64)
			return fmt.Appendf(nil, `%s%d"`, m[1], n+move)
		})
	}
	if got := in.sent(t, admintest.WorkspaceA, header, raw); got.Status != 200 || strings.Contains(string(got.Body), "rejected") {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
}

// recordsOf are the records of traces.
func (in *installation) recordsOf(t *testing.T, traces []string) []usage.Record {
	t.Helper()
	if len(traces) == 0 {
		return nil
	}
	page, err := report.New(in.archive, nil).Logs(context.Background(), store.Scope{Org: admintest.Org, Workspace: in.One}, &report.LogQuery{
		Filter: report.Filter{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(time.Hour), TraceIDs: traces}, Limit: 1000, NoTotal: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}
