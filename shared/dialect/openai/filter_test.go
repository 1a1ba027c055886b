package openai

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/pricing"
)

// stream is what OpenAI sends for a short response when usage was asked for.
func stream(chunks int, obfuscated bool) string {
	var b strings.Builder
	head := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1750000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_1","choices":`
	tail := `,"usage":null}`
	if obfuscated {
		tail = `,"usage":null,"obfuscation":"aB3xYz09"}`
	}
	event := func(choices, tail string) { b.WriteString("data: " + head + choices + tail + "\n\n") }
	event(`[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]`, tail)
	for i := range chunks {
		event(fmt.Sprintf(`[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]`, i%10), tail)
	}
	event(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`, tail)
	event(`[]`, `,"usage":{"prompt_tokens":120,"completion_tokens":100,"total_tokens":220,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":4}}}`)
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// pass runs in through a filter in pieces of size bytes.
func pass(t testing.TB, o chat.FilterOptions, in string, size int) (string, chat.StreamFilter) {
	t.Helper()
	f := newFilter(&o)
	var out strings.Builder
	buffer := make([]byte, size) // used for each read, as a connection's is
	for len(in) > 0 {
		n := copy(buffer, in)
		in = in[n:]
		got, err := f.Feed(buffer[:n])
		if err != nil {
			t.Fatal(err)
		}
		out.Write(got)
	}
	out.Write(f.End())
	return out.String(), f
}

func TestFilterPassesBytesThroughIfUsageWasRequested(t *testing.T) {
	for _, obfuscated := range []bool{false, true} {
		in := stream(5, obfuscated)
		for _, size := range []int{1, 2, 3, 7, 64, 1000, len(in)} {
			out, f := pass(t, chat.FilterOptions{UsageAdded: true, IncludeUsage: true, Strict: true}, in, size)
			if out != in {
				t.Fatalf("size %d: the stream was changed:\n%s", size, out)
			}
			checkMeter(t, f.Meter())
		}
	}
}

func checkMeter(t *testing.T, m chat.Meter) {
	t.Helper()
	if !m.Complete || !m.Started || m.Err != nil || m.Finish != "stop" || m.ID != "chatcmpl-1" || m.Model != "gpt-4o-mini-2024-07-18" {
		t.Fatalf("meter %+v", m)
	}
	want := map[pricing.Class]int64{pricing.Input: 100, pricing.CacheRead: 20, pricing.Output: 96, pricing.Reasoning: 4}
	for c, n := range want {
		if got := m.Usage.N(c); got != n {
			t.Errorf("%v = %d, want %d", c, got, n)
		}
	}
	if _, ok := m.Usage.Get(pricing.AudioIn); ok {
		t.Error("audio that was not reported counts as reported")
	}
	if m.OutputBytes < 30 || m.OutputBytes > 60 {
		t.Errorf("output of 5 words measured as %d bytes", m.OutputBytes)
	}
}

func TestFilterTakesInjectedUsageOut(t *testing.T) {
	for _, obfuscated := range []bool{false, true} {
		in := stream(5, obfuscated)
		want := strings.ReplaceAll(in, `,"usage":null`, "")
		at := strings.Index(want, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1750000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_1","choices":[]`)
		want = want[:at] + want[at+strings.Index(want[at:], "\n\n")+2:]
		for _, size := range []int{1, 5, 100, 333, len(in)} {
			out, f := pass(t, chat.FilterOptions{UsageAdded: true, Strict: true}, in, size)
			if out != want {
				t.Fatalf("size %d:\n got %s\nwant %s", size, out, want)
			}
			checkMeter(t, f.Meter())
		}
	}
}

func TestFilterUsageShapes(t *testing.T) {
	const head = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",`
	tests := map[string]struct{ in, want string }{
		"usage on the finish chunk": {
			"data: " + head + `"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}` + "\n\ndata: [DONE]\n\n",
			"data: " + head + `"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		},
		"usage in front of the choices": {
			`data: {"id":"c","usage":null,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n" + `data: {"id":"c","usage":null,"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}` + "\n\n" + `data: {"usage":{"prompt_tokens":1,"completion_tokens":1},"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n" + `data: {"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}` + "\n\n" + `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		},
		"spaces, CRLF, comments and a nested usage": {
			": hello\r\n\r\ndata: {\"id\": \"c\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"a \\\"usage\\\":null\", \"usage\": null}, \"finish_reason\": \"stop\"}], \"usage\": null}\r\n\r\ndata: {\"choices\": [], \"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 1}}\r\n\r\ndata: [DONE]\r\n\r\n",
			": hello\r\n\r\ndata: {\"id\": \"c\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"a \\\"usage\\\":null\", \"usage\": null}, \"finish_reason\": \"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n",
		},
		"no [DONE]": {
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n",
		},
		"text completion": {
			`data: {"id":"c","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n" + `data: {"id":"c","choices":[{"index":0,"text":"b","logprobs":null,"finish_reason":"length"}],"usage":null}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n",
			`data: {"id":"c","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}]}` + "\n\n" + `data: {"id":"c","choices":[{"index":0,"text":"b","logprobs":null,"finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 10, len(tt.in)} {
				out, f := pass(t, chat.FilterOptions{UsageAdded: true}, tt.in, size)
				if out != tt.want {
					t.Fatalf("size %d:\n got %q\nwant %q", size, out, tt.want)
				}
				m := f.Meter()
				if !m.Complete || !m.Started || m.Usage.N(pricing.Input) != 1 || m.Usage.N(pricing.Output) != 1 || m.Finish == "" {
					t.Fatalf("meter %+v", m)
				}
			}
		})
	}
}

func TestFilterFindsErrorsInTheStream(t *testing.T) {
	const content = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
	const bad = `data: {"error":{"message":"overloaded","type":"server_error","code":"503"}}` + "\n\n"
	out, f := pass(t, chat.FilterOptions{}, bad+"data: [DONE]\n\n", 9)
	m := f.Meter()
	if m.Started || m.Err == nil || m.Err.Status() != 503 || m.Complete {
		t.Fatalf("meter %+v", m)
	}
	if out != bad {
		t.Fatalf("got %q", out)
	}
	out, f = pass(t, chat.FilterOptions{}, content+bad+"data: [DONE]\n\n", 1000)
	m = f.Meter()
	if !m.Started || m.Err == nil || m.Complete || !f.Passed() {
		t.Fatalf("meter %+v", m)
	}
	if out != content+bad {
		t.Fatalf("[DONE] after an error: %q", out)
	}
	_, f = pass(t, chat.FilterOptions{}, content+content[:40], 1000)
	if f.Meter().Complete {
		t.Fatal("a stream that was cut counts as complete")
	}
}

func TestFilterSwallowsFilterOnlyChunksWhenStrict(t *testing.T) {
	const azure = `data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0}]}` + "\n\n"
	const content = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
	const results = `data: {"id":"","choices":[{"content_filter_offsets":{"check_offset":0},"finish_reason":null,"index":0}]}` + "\n\n"
	const end = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	out, _ := pass(t, chat.FilterOptions{Strict: true}, azure+content+results+end, 50)
	if out != content+end {
		t.Fatalf("got %q", out)
	}
	if out, _ = pass(t, chat.FilterOptions{}, azure+content+results+end, 50); out != azure+content+results+end {
		t.Fatalf("not strict: got %q", out)
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, o := range []chat.FilterOptions{{UsageAdded: true, Strict: true}, {UsageAdded: true, IncludeUsage: true, Strict: true}} {
		for _, obfuscated := range []bool{false, true} {
			b.Run(fmt.Sprintf("asked=%v,obfuscated=%v", o.IncludeUsage, obfuscated), func(b *testing.B) {
				events := strings.SplitAfter(stream(100, obfuscated), "\n\n")
				pieces := make([][]byte, len(events))
				b.ReportAllocs()
				for b.Loop() {
					f := newFilter(&o)
					for i, e := range events {
						pieces[i] = append(pieces[i][:0], e...)
						if _, err := f.Feed(pieces[i]); err != nil {
							b.Fatal(err)
						}
					}
					f.End()
				}
			})
		}
	}
}
