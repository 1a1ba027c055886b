package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// sums are what one side says of all requests.
type sums struct{ requests, input, cacheRead, write5m, write1h, output, reasoning, nanoDollars int64 }

func booked(records []usage.Record) (s sums) {
	for _, r := range records {
		u := r.Usage
		s.requests += u.N(pricing.Requests)
		s.input += u.N(pricing.Input)
		s.cacheRead += u.N(pricing.CacheRead)
		s.write5m += u.N(pricing.CacheWrite5m)
		s.write1h += u.N(pricing.CacheWrite1h)
		s.output += u.N(pricing.Output)
		s.reasoning += u.N(pricing.Reasoning)
		s.nanoDollars += int64(r.Cost)
	}
	return s
}

func billed(r *running) sums {
	t := r.mock.Bill().Total
	return sums{t.Requests, t.Input, t.CacheRead, t.CacheWrite5m, t.CacheWrite1h, t.Output, t.Reasoning, t.NanoDollars}
}

// traffic is a bit of everything that ends well.
var traffic = []struct{ path, body string }{
	{"/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", "")},
	{"/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"stream":true`)},
	{"/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"stream":true,"stream_options":{"include_usage":true}`)},
	{"/chat/completions", chatBody("@mock/o4-mini", "mock: reasoning=40", "")},
	{"/chat/completions", chatBody("@mock/gpt-4o", "mock: cached=3 say=many words for a long answer", "")},
	{"/chat/completions", chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", "")},
	{"/chat/completions", chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"stream":true`)},
	{"/messages", chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":50`)},
	{"/messages", chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":50,"stream":true`)},
	{"/messages", chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":50,"stream":true`)},
	{"/completions", `{"model":"@mock/gpt-3.5-turbo-instruct","prompt":"Once","max_tokens":9}`},
	{"/embeddings", `{"model":"@mock/text-embedding-3-small","input":["a","b"]}`},
}

//lane:standard
func TestOurBooksEqualTheProvidersBill(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range traffic {
		if got := r.call("POST", c.path, c.body); got.status != 200 {
			t.Fatalf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
	}
	records := r.records(len(traffic))
	if got, want := booked(records), billed(r); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
	for _, rec := range records {
		if rec.Usage.Estimated || !rec.Priced || rec.ClientStatus != 200 || rec.Provider == "" || rec.Model == "" || rec.TraceID == "" || rec.Duration <= 0 {
			t.Errorf("record %+v", rec)
		}
	}
}

// leave reads n events of a stream and goes away.
func leave(r *running, path, body string, n int, headers ...string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", r.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Gateway-Api-Key", workspaceKey)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for seen := 0; seen < n && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			seen++
		}
	}
	return nil
}

//lane:standard
func TestClientsThatLeaveAreBilledInFull(t *testing.T) {
	t.Parallel()
	r := start(t)
	var wg sync.WaitGroup
	total := 0
	for _, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5"} {
		for n := range 8 {
			total++
			wg.Go(func() {
				body := chatBody(model, fmt.Sprintf("Tell %d\nmock: chunks=20 pace=5ms", n), `,"stream":true`)
				if err := leave(r, "/chat/completions", body, 1+n*2); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	records := r.records(total)
	if got, want := booked(records), billed(r); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
	gone := 0
	for _, rec := range records {
		if rec.ClientGone {
			gone++
		}
	}
	if gone == 0 {
		t.Error("no record says that its client left")
	}
}

//lane:standard
func TestBrokenStreamsNeverLookWhole(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ name, path, model, fault string }{
		{"cut, same dialect", "/chat/completions", "@mock/gpt-4o-mini", "cut=after:4"},
		{"cut within an event", "/chat/completions", "@mock/gpt-4o-mini", "cut=mid:4"},
		{"cut, translated", "/chat/completions", "@mock-anthropic/claude-sonnet-4-5", "cut=after:4"},
		{"no message_stop", "/chat/completions", "@mock-anthropic/claude-sonnet-4-5", "no-done"},
		{"error event, same dialect", "/chat/completions", "@mock/gpt-4o-mini", "error-event=server_error after=4"},
		{"error event, translated", "/chat/completions", "@mock-anthropic/claude-sonnet-4-5", "error-event=overloaded_error after=4"},
		{"cut, messages", "/messages", "@mock-anthropic/claude-sonnet-4-5", "cut=after:4"},
		{"cut, messages translated", "/messages", "@mock/gpt-4o-mini", "cut=after:4"},
		{"garbage, translated", "/messages", "@mock/gpt-4o-mini", "garbage=after:4"},
		{"garbage, same dialect", "/chat/completions", "@mock/gpt-4o-mini", "garbage=after:4"},
		{"garbage, messages", "/messages", "@mock-anthropic/claude-sonnet-4-5", "garbage=after:4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.call("POST", c.path, chatBody(c.model, "Hello\nmock: chunks=12 "+c.fault, `,"stream":true,"max_tokens":100`))
			if got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			all := events(got.body)
			last := all[len(all)-1]
			if strings.Contains(got.body, "[DONE]") || strings.Contains(got.body, `"type":"message_stop"`) {
				t.Errorf("a broken stream ends as if it were whole: %s", last)
			}
			if !strings.Contains(last, `"error"`) {
				t.Errorf("the last event is no error: %s", last)
			}
			if strings.Contains(got.body, `"finish_reason":"stop"`) && !strings.HasPrefix(c.fault, "no-done") {
				t.Errorf("a broken stream has a finish reason: %s", got.body)
			}
		})
	}
	records := r.records(11)
	eventually(t, func() error {
		if open := r.mock.Bill().Open; open != 0 {
			return fmt.Errorf("%d rows of the bill are open", open)
		}
		return nil
	})
	bill := r.mock.Bill()
	for _, rec := range records {
		ours, theirs := rec.Usage.OutputTokens(), int64(0)
		for _, row := range bill.Rows {
			if strings.Contains(rec.Attempts[0].RequestID, row.ID) {
				theirs = row.Output
			}
		}
		// A piece that was made and never sent is on the bill; and a stream that
		// nobody can read is not read to its end.
		unreadable := strings.Contains(rec.ErrorMessage, "cannot be read")
		if !rec.Usage.Estimated && !rec.Usage.IsReported() || ours < theirs-1 && !unreadable || ours > 2*theirs+2 {
			t.Errorf("%s: %d tokens in our books, %d on the bill", rec.ErrorMessage, ours, theirs)
		}
		if rec.ErrorCode == "" || rec.Usage.OutputTokens() == 0 {
			t.Errorf("record of a broken stream: error %q, usage %+v", rec.ErrorCode, rec.Usage)
		}
	}
}

//lane:standard
func TestErrorsBeforeAStreamHaveTheirOwnStatus(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct {
		name, path, model, fault string
		status                   int
		code                     string
	}{
		{"overloaded first event", "/chat/completions", "@mock-anthropic/claude-sonnet-4-5", "error-event=overloaded_error after=0", 529, "overloaded"},
		{"overloaded first event, same dialect", "/messages", "@mock-anthropic/claude-sonnet-4-5", "error-event=overloaded_error after=0", 529, "overloaded"},
		{"rate limit", "/chat/completions", "@mock/gpt-4o-mini", "status=429 retry-after=2", 429, "rate_limit"},
		{"html", "/chat/completions", "@mock/gpt-4o-mini", "html", 502, "invalid_provider_response"},
		{"connection dropped", "/chat/completions", "@mock/gpt-4o-mini", "drop", 503, "provider_unreachable"},
	} {
		for _, stream := range []string{"true", "false"} {
			if stream == "false" && strings.Contains(c.fault, "event") {
				continue
			}
			t.Run(c.name+" stream="+stream, func(t *testing.T) {
				got := r.call("POST", c.path, chatBody(c.model, "Hello\nmock: "+c.fault, `,"max_tokens":50,"stream":`+stream))
				if got.status != c.status || !strings.Contains(got.body, c.code) {
					t.Errorf("%d %s", got.status, got.body)
				}
				if strings.Contains(c.fault, "retry-after") && got.header.Get("Retry-After") != "2" {
					t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
				}
			})
		}
	}
}
