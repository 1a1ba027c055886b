package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/usage"
)

// Requests in a provider's own shape, passed through, are recorded as the provider
// bills them: plain and streamed, conversations and vectors.
func TestNativeShapesThatPassThroughAreBooked(t *testing.T) {
	t.Parallel()
	r, google := startGoogle(t)
	r.wired("cohere", "", "")
	r.bedrock("bedrock", bedrockKeys)
	const (
		projects = "/proxy/v1/projects/proj/locations/us-central1/publishers/"
		contents = `{"contents":[{"role":"user","parts":[{"text":"mock: chunks=4"}]}]}`
		claude   = `{"anthropic_version":"%","max_tokens":50,"messages":[{"role":"user","content":"mock: chunks=4"}]}`
		converse = `{"messages":[{"role":"user","content":[{"text":"mock: chunks=4"}]}]}`
	)
	of := func(version, more string) string {
		return strings.Replace(claude, "%", version, 1)[:len(claude)+len(version)-2] + more + "}"
	}
	calls := []struct {
		name, provider, path, body string
		kind                       string // free: it only counts; untold: the response says nothing of tokens
	}{
		{"cohere chat", "cohere", "/proxy/v2/chat", `{"model":"command-r","messages":[{"role":"user","content":"Hello"}]}`, ""},
		{"cohere chat streamed", "cohere", "/proxy/v2/chat", `{"model":"command-r","stream":true,"messages":[{"role":"user","content":"Hello"}]}`, ""},
		{"cohere embed", "cohere", "/proxy/v2/embed", `{"model":"embed-english-v3.0","texts":["Hello"],"input_type":"search_query","embedding_types":["float"]}`, ""},
		{"cohere rerank", "cohere", "/proxy/v2/rerank", `{"model":"rerank-v3.5","query":"a","documents":[` + strings.Repeat(`"a",`, 150) + `"b"]}`, ""},
		{"cohere generate", "cohere", "/proxy/v1/generate", `{"model":"command","prompt":"Hello"}`, ""},

		{"generateContent", "google", "/proxy/v1beta/models/gemini-2.5-flash:generateContent", contents, ""},
		{"streamGenerateContent", "google", "/proxy/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", contents, ""},
		{"countTokens", "google", "/proxy/v1beta/models/gemini-2.5-flash:countTokens", contents, "free"},
		{"embedContent", "google", "/proxy/v1beta/models/gemini-embedding-001:embedContent", `{"content":{"parts":[{"text":"Hello"}]}}`, "untold"},
		{"batchEmbedContents", "google", "/proxy/v1beta/models/gemini-embedding-001:batchEmbedContents", `{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"Hello"}]}}]}`, "untold"},

		{"vertex generateContent", "vertex", projects + "google/models/gemini-2.5-flash:generateContent", contents, ""},
		{"vertex streamGenerateContent", "vertex", projects + "google/models/gemini-2.5-flash:streamGenerateContent?alt=sse", contents, ""},
		{"vertex predict", "vertex", projects + "google/models/text-embedding-005:predict", `{"instances":[{"content":"Hello"}]}`, ""},
		{"vertex rawPredict", "vertex", projects + "anthropic/models/claude-sonnet-4-5@20250929:rawPredict", of("vertex-2023-10-16", ""), ""},
		{"vertex streamRawPredict", "vertex", projects + "anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", of("vertex-2023-10-16", `,"stream":true`), ""},

		{"converse", "bedrock", "/proxy/model/" + bedrockClaude + "/converse", converse, ""},
		{"converse-stream", "bedrock", "/proxy/model/" + bedrockClaude + "/converse-stream", converse, ""},
		{"invoke", "bedrock", "/proxy/model/" + bedrockClaude + "/invoke", of("bedrock-2023-05-31", ""), ""},
		{"invoke stream", "bedrock", "/proxy/model/" + bedrockClaude + "/invoke-with-response-stream", of("bedrock-2023-05-31", ""), ""},
		{"invoke embeddings", "bedrock", "/proxy/model/amazon.titan-embed-text-v2:0/invoke", `{"inputText":"Hello"}`, ""},
		{"bedrock count-tokens", "bedrock", "/proxy/model/" + bedrockClaude + "/count-tokens", `{"input":{"converse":` + converse + `}}`, "free"},

		{"messages", "mock-anthropic", "/proxy/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`, ""},
		{"messages streamed", "mock-anthropic", "/proxy/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`, ""},
		{"messages count_tokens", "mock-anthropic", "/proxy/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hello"}]}`, "free"},
	}
	bills := make([]mockprovider.Sum, len(calls))
	bodies := make([]string, len(calls))
	for i, c := range calls {
		r.mock.Reset()
		google.Reset()
		got := r.call("POST", c.path, c.body, "X-Gateway-Provider", "@"+c.provider, "Anthropic-Version", "2023-06-01")
		if got.status != 200 {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
		bills[i], bodies[i] = r.mock.Bill().Total, got.body
		if c.provider == "google" || c.provider == "vertex" {
			bills[i] = google.Bill().Total
		}
	}
	for i, rec := range r.byTime(len(calls)) {
		c, bill := calls[i], &bills[i]
		ok := !rec.Usage.Estimated && rec.Usage.TotalTokens() == bill.Input+bill.Output
		switch {
		case c.kind == "free":
			ok = rec.Cost == 0 && rec.Usage.TotalTokens() == 0
		case c.kind == "untold":
			ok = rec.Usage.Estimated && rec.Cost > 0
		case bill.Unpriced == 0: // the mock has no prices for the names of some hosts
			ok = ok && int64(rec.Cost) == bill.NanoDollars
		}
		if !ok || c.kind != "free" && rec.Cost == 0 {
			t.Errorf("%s: %s costs %d, model %s, %+v; the bill %+v\n%.300s", c.name, rec.Path, rec.Cost, rec.Model, rec.Usage, *bill, bodies[i])
		}
	}
}

// To count tokens is free, also where a budget would have what is not told estimated, and
// by the path that Vertex has for Anthropic's models, which names none.
func TestCountingTokensIsFreeUnderABudget(t *testing.T) {
	t.Parallel()
	r, _ := startGoogle(t)
	r.bedrock("bedrock", bedrockKeys)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	const (
		at       = "/v1/projects/proj/locations/us-central1/publishers/"
		contents = `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`
		messages = `"messages":[{"role":"user","content":"Hello"}]}`
	)
	calls := [][3]string{
		{"google", "/v1beta/models/gemini-2.5-flash:countTokens", contents},
		{"google", "/proxy/v1beta/models/gemini-2.5-flash:countTokens", contents},
		{"vertex", "/proxy" + at + "google/models/gemini-2.5-flash:countTokens", contents},
		{"vertex", "/proxy" + at + "anthropic/models/count-tokens:rawPredict", `{"anthropic_version":"vertex-2023-10-16","model":"claude-sonnet-4-5@20250929",` + messages},
		{"bedrock", "/proxy/model/" + bedrockClaude + "/count-tokens", `{"input":{"converse":{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}}}`},
		{"mock-anthropic", "/proxy/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5",` + messages},
		{"mock-anthropic", "/messages/count_tokens", `{"model":"claude-sonnet-4-5",` + messages},
	}
	for _, c := range calls {
		got := r.call("POST", c[1], c[2], "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@"+c[0], "Anthropic-Version", "2023-06-01")
		if got.status != 200 || !strings.Contains(strings.ToLower(got.body), "tokens") {
			t.Errorf("%s: %d %s", c[1], got.status, got.body)
		}
	}
	for i, rec := range r.byTime(len(calls)) {
		if rec.Cost != 0 || rec.Usage.TotalTokens() != 0 || rec.Usage.Estimated {
			t.Errorf("%s costs %v: %+v", calls[i][1], rec.Cost, rec.Usage)
		}
	}
}

// byTime returns the records of n requests in the order in which they came. Their ids do
// not always have this order: if two came within one millisecond, and another gateway of
// this process has begun the next millisecond between them, the random part decides.
func (r *running) byTime(n int) (records []usage.Record) {
	r.t.Helper()
	eventually(r.t, func() error {
		records = slices.DeleteFunc(archived(r.t, r.g), func(rec usage.Record) bool { return strings.Contains(rec.Path, "/echo/") })
		if len(records) < n {
			return fmt.Errorf("%d of %d records", len(records), n)
		}
		return nil
	})
	slices.SortFunc(records, func(a, b usage.Record) int { return a.Start.Compare(b.Start) })
	return records
}
