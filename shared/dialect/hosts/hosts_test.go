package hosts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// TestRowsNameTheirSources requires that each row of a table is followed by a comment with where it
// comes from, and when that was read. Binaries do not contain them.
func TestRowsNameTheirSources(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(source), "\n") {
			if strings.HasSuffix(file, "_test.go") || !row.MatchString(line) {
				continue
			}
			rows++
			match := sourced.FindStringSubmatch(line)
			if match == nil {
				t.Errorf("%s:%d: the row has no comment with its source and a date", file, n+1)
			} else if _, err := time.Parse(time.DateOnly, match[1]); err != nil {
				t.Errorf("%s:%d: %v", file, n+1, err)
			}
		}
	}
	if want := len(Stops) + len(Overflows) + len(Balances) + len(ThinkingControls) + len(MinEfforts) + len(Reasoners) + len(Lengths); rows != want {
		t.Errorf("%d rows are found, the tables have %d", rows, want)
	}
}

var (
	row     = regexp.MustCompile(`^\t\{.*\},`)
	sourced = regexp.MustCompile(`\}, +// [^ ].*, (\d{4}-\d{2}-\d{2})$`)
)

func TestStopsHaveOneMeaningAndASource(t *testing.T) {
	seen := map[string]bool{"stop": true, "length": true, "tool_calls": true, "content_filter": true}
	for _, s := range Stops {
		if seen[s.Name] {
			t.Errorf("%s has two rows", s.Name)
		}
		seen[s.Name] = true
		if s.Failed != (s.Reason == chat.StopUnknown) {
			t.Errorf("%s: a row has a reason or fails, not both", s.Name)
		}
		if reason, failed := StopOf([]byte(s.Name)); reason != s.Reason || failed != s.Failed {
			t.Errorf("%s: %v, %t", s.Name, reason, failed)
		}
	}
	if reason, failed := StopOf([]byte("of_tomorrow")); reason != chat.StopUnknown || failed {
		t.Errorf("an unknown word is %v, %t", reason, failed)
	}
}

// refusals are errors as hosts write them, and what they mean.
var refusals = []struct {
	host               string
	status             int
	code, typ, message string
	want               fault.Code
}{
	{"llama.cpp", 400, "400", "exceed_context_size_error", "request (4267 tokens) exceeds the available context size (4096 tokens), try increasing it", chat.ContextLength},
	{"llama.cpp", 500, "500", "server_error", "Context size has been exceeded.", chat.ContextLength},
	{"x-ai", 400, "Client specified an invalid argument", "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", chat.ContextLength},
	{"moonshot", 400, "", "invalid_request_error", "Invalid request: Your request exceeded model token limit: 131072", chat.ContextLength},
	{"z-ai", 400, "1261", "", "Prompt exceeds max length", chat.ContextLength},
	{"dashscope", 400, "invalid_parameter_error", "", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]", chat.ContextLength},
	{"ollama", 400, "", "", "input length exceeds the context length", chat.ContextLength},
	{"ollama", 400, "", "", "prompt too long; exceeded max context length by 4 tokens", chat.ContextLength},
	{"sglang", 400, "400", "BadRequestError", "The input (210000 tokens) is longer than the model's context length (200000 tokens).", chat.ContextLength},
	{"together", 422, "", "", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000", chat.ContextLength},
	{"github copilot", 400, "model_max_prompt_tokens_exceeded", "", "prompt token count of 130000 exceeds the limit of 128000", chat.ContextLength},
	{"lm studio", 400, "", "", "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", chat.ContextLength},
	{"vllm", 400, "400", "BadRequestError", "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens", chat.ContextLength},
	{"cohere", 400, "", "", "too many tokens: size limit exceeded by 3 tokens", chat.ContextLength},
	{"z-ai", 429, "1113", "", "Insufficient balance or no resource package. Please recharge.", chat.InsufficientQuota},
	{"moonshot", 429, "", "exceeded_current_quota_error", "Your account is suspended, please check your plan and billing details", chat.InsufficientQuota},
	{"deepseek", 402, "invalid_request_error", "unknown_error", "Insufficient Balance", chat.InsufficientQuota},
	{"openai", 429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota", chat.InsufficientQuota},
	{"a rate limit", 429, "rate_limit_exceeded", "tokens", "Rate limit reached: too many tokens per minute", ""},
	{"a failed host", 503, "", "", "too many tokens in flight", ""},
	{"another mistake", 400, "", "invalid_request_error", "max_tokens must be positive", ""},
}

func TestErrorsOfHostsMeanWhatAgentsActOn(t *testing.T) {
	for _, r := range refusals {
		p := &chat.ProviderError{Status: r.status, Code: r.code, Type: r.typ, Message: r.message}
		if got := CodeOf(p); got != r.want {
			t.Errorf("%s: %q means %q, want %q", r.host, r.message, got, r.want)
		}
	}
	for _, rows := range [][]Refusal{Overflows, Balances} {
		for _, r := range rows {
			name := r.Code + r.Type + r.Text
			if name != r.Code && name != r.Type && name != r.Text || name == "" || strings.ToLower(r.Text) != r.Text {
				t.Errorf("%+v: a row has one of code, type and words in lower case", r)
			}
		}
	}
}

func TestThinkersHaveASource(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range ThinkingControls {
		if seen[h.Host] || h.Switch == NoSwitch || ThinkingControlOf(h.Host) == nil {
			t.Errorf("%s: two rows, or a row without a switch", h.Host)
		}
		seen[h.Host] = true
	}
	for effort, want := range map[string]string{"medium": "high", "high": "high", "low": "low", "xhigh": "max", "max": "max"} {
		if got := ThinkingControlOf("deepseek").Effort(effort); got != want {
			t.Errorf("%s becomes %s, want %s", effort, got, want)
		}
	}
}

func TestReasonersHaveASource(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasoners {
		if seen[r.Host] || r.Field != "reasoning" && r.Field != "reasoning_content" {
			t.Errorf("%s: two rows, or the member %q", r.Host, r.Field)
		}
		seen[r.Host] = true
		own := chat.Part{Kind: chat.Reasoned, Text: "hm", Signature: r.Signature()}
		twice := chat.Part{Kind: chat.Reasoned, Text: "hm", Signature: chat.MarkSigned("openai.responses", r.Signature())}
		other := chat.Part{Kind: chat.Reasoned, Text: "hm", Signature: chat.MarkSigned(reasonedBy, "elsewhere")}
		if !r.Accepts(&own) || !r.Accepts(&twice) || r.Accepts(&other) || r.Accepts(&chat.Part{Kind: chat.Reasoned, Text: "hm", Signature: "c2ln"}) {
			t.Errorf("%s takes what others have signed, or not its own", r.Host)
		}
	}
}

func TestLengthsHaveASourceAndHold(t *testing.T) {
	for _, l := range Lengths {
		if got := lengthOf(l.Host, l.Field); got.Max != l.Max || l.Max < 32 {
			t.Errorf("%s %s has two rows, or no room for a hash", l.Host, l.Field)
		}
		if l.Field != "user" {
			continue
		}
		for n := range 2 * l.Max {
			var loss chat.Loss
			user := strings.Repeat("\u00e9", n)
			sent := User(l.Host, user, &loss)
			fits := n >= l.Min && n <= l.Max
			if again := User(l.Host, user, &chat.Loss{}); sent != again || fits != (sent == user) || fits != loss.Empty() || !fits && len(sent) != 32 {
				t.Errorf("%s: %d characters become %q, lost %q", l.Host, n, sent, loss.Header())
			}
		}
	}
	if got := CallID("azure-openai", strings.Repeat("a", 41)); len(got) != 40 {
		t.Errorf("a call id of 41 becomes %q at Azure", got)
	}
	long, other := strings.Repeat("a", 70), strings.Repeat("a", 69)+"b"
	if got := CallID("openai", long); len(got) != 64 || got == CallID("openai", other) || CallID("openai", long[:64]) != long[:64] || CallID("vllm", long) != long {
		t.Errorf("a call id of 70 becomes %q", got)
	}
}
