package pricing

import (
	"bytes"
	"compress/flate"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "pack data/prices.txt anew")

// pack makes data/prices.packed of the list.
func pack(t *testing.T, list string) []byte {
	t.Helper()
	rows := map[string]*strings.Builder{}
	for row := range strings.Lines(list) {
		provider, rest, _ := strings.Cut(row, "\t")
		if rows[provider] == nil {
			rows[provider] = new(strings.Builder)
		}
		rows[provider].WriteString(rest)
	}
	head := fmt.Sprintf("%08x\n", crc32.Checksum([]byte(list), crc32.MakeTable(crc32.Castagnoli)))
	var body bytes.Buffer
	for _, provider := range slices.Sorted(maps.Keys(rows)) {
		before := body.Len()
		w, err := flate.NewWriter(&body, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(rows[provider].String())); err != nil || w.Close() != nil {
			t.Fatal("a provider's rows cannot be packed", err)
		}
		head += fmt.Sprintf("%s %d %d\n", provider, body.Len()-before, rows[provider].Len())
	}
	return append([]byte(head+"\n"), body.Bytes()...)
}

// unpacked is the list that an index holds.
func unpacked(x *index) string {
	var list strings.Builder
	for _, provider := range slices.Sorted(maps.Keys(x.providers)) {
		for row := range strings.Lines(x.providers[provider].rows()) {
			list.WriteString(provider + "\t" + row)
		}
	}
	return list.String()
}

// perMillion is what a million units cost, in dollars times 10^9.
func perMillion(t *testing.T, p Price, c Class) int64 {
	t.Helper()
	var u Usage
	u.Set(c, 1_000_000)
	return int64(p.Cost(u))
}

func lookup(t *testing.T, provider, model string, o Options) Price {
	t.Helper()
	p, ok := Default().Price(provider, model, o)
	if !ok {
		t.Fatalf("%s/%s has no price", provider, model)
	}
	return p
}

const milli = int64(Dollar) / 1000

// Well-known list prices, in dollars per million tokens; -1: not declared.
func TestListPrices(t *testing.T) {
	for _, c := range []struct {
		provider, model        string
		in, out, read, written float64
	}{
		{"openai", "gpt-4o", 2.5, 10, 1.25, 0},
		{"openai", "gpt-4o-mini", 0.15, 0.6, 0.075, 0},
		{"openai", "gpt-5", 1.25, 10, 0.125, 0},
		{"openai", "o3", 2, 8, 0.5, 0},
		{"openai", "text-embedding-3-small", 0.02, 0, -1, -1},
		{"anthropic", "claude-sonnet-4-5", 3, 15, 0.3, 3.75},
		{"anthropic", "claude-haiku-4-5", 1, 5, 0.1, 1.25},
		{"google", "gemini-2.5-pro", 1.25, 10, 0.125, -1},
		{"vertex-ai", "gemini-2.5-flash", 0.3, 2.5, 0.03, -1},
		{"bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 3, 15, 0.3, 3.75},
		{"mistral-ai", "mistral-large-latest", 0.5, 1.5, -1, -1},
		{"cohere", "command-r-plus", 2.5, 10, -1, -1},
		{"deepseek", "deepseek-chat", 0.14, 0.28, 0.0028, 0},
		{"groq", "llama-3.3-70b-versatile", 0.59, 0.79, -1, -1},
		{"x-ai", "grok-4", 3, 15, -1, -1},
		{"perplexity-ai", "sonar-pro", 3, 15, -1, -1},
		{"minimax", "MiniMax-M2.7", 0.3, 1.2, -2, -2},
		{"lightning-ai", "openai/o3-mini", -2, -2, 0.55, -2},
	} {
		t.Run(c.provider+"/"+c.model, func(t *testing.T) {
			p := lookup(t, c.provider, c.model, Options{})
			for class, want := range map[Class]float64{Input: c.in, Output: c.out, CacheRead: c.read, CacheWrite5m: c.written} {
				if want == -2 {
					continue
				}
				_, declared := p.Rate(class)
				if declared != (want >= 0) {
					t.Errorf("%s: declared = %v", class, declared)
				}
				if want >= 0 {
					if got := perMillion(t, p, class); got != int64(want*1e9+0.5) {
						t.Errorf("%s: %d nano-dollars per million, want %v dollars", class, got, want)
					}
				}
			}
		})
	}
}

func TestImagePricesByQualityAndSize(t *testing.T) {
	for _, c := range []struct {
		model, quality, size string
		cents                float64
	}{
		{"dall-e-3", "standard", "1024x1024", 4},
		{"dall-e-3", "hd", "1024x1792", 12},
		{"dall-e-3", "hd", "", 8},
		{"dall-e-3", "", "", 4},
		{"dall-e-3", "odd", "1792x1024", 8},
		{"dall-e-3", "hd", "77x77", 8},
		{"gpt-image-1", "low", "1024x1536", 1.6},
		{"gpt-image-1", "medium", "", 4.2},
	} {
		p := lookup(t, "openai", c.model, Options{Quality: c.quality, Size: c.size})
		var u Usage
		u.Set(Images, 2)
		u.Set(Input, 1000) // charged by the image: tokens cost nothing
		u.Set(ImageOut, 4000)
		if got, want := p.Cost(u), NanoDollars(c.cents*2*1e7+0.5); got != want {
			t.Errorf("%s %q %q: %d, want %d", c.model, c.quality, c.size, got, want)
		}
		if !p.PerImage() {
			t.Errorf("%s is not charged by the image", c.model)
		}
	}
}

func TestOddUnits(t *testing.T) {
	for _, c := range []struct {
		name, provider, model string
		o                     Options
		use                   map[Class]int64
		want                  NanoDollars
	}{
		{"whisper by the minute", "openai", "whisper-1", Options{}, map[Class]int64{Seconds: 90}, 9_000_000},
		{"whisper ignores audio tokens", "openai", "whisper-1", Options{}, map[Class]int64{Seconds: 60, AudioIn: 5000}, 6_000_000},
		{"a third of a cent is rounded once", "deepgram", "nova-3", Options{}, map[Class]int64{Seconds: 1}, 71_667},
		{"transcription by the minute", "openai", "gpt-4o-transcribe", Options{}, map[Class]int64{Seconds: 60, AudioIn: 1000, Output: 100}, 7_000_000},
		{"transcription by tokens", "openai", "gpt-4o-transcribe", Options{}, map[Class]int64{AudioIn: 1000, Output: 100}, 7_000_000},
		{"speech by the character", "openai", "tts-1", Options{}, map[Class]int64{Characters: 1000}, 15_000_000},
		{"rerank by the search unit", "cohere", "rerank-v3.5", Options{}, map[Class]int64{Pages: 3}, 6_000_000},
		{"ocr by the page", "mistral-ai", "mistral-ocr-latest", Options{}, map[Class]int64{Pages: 10}, 40_000_000},
		{"fee per request", "perplexity-ai", "pplx-7b-online", Options{}, map[Class]int64{Requests: 1, Output: 1_000_000}, 5_000_000 + 280_000_000},
		{"search by context", "perplexity-ai", "sonar-pro", Options{SearchContext: "high"}, map[Class]int64{WebSearches: 1}, 14_000_000},
		{"search context unknown", "perplexity-ai", "sonar-pro", Options{}, map[Class]int64{WebSearches: 1}, 10_000_000},
		{"tool calls", "openai", "gpt-4o", Options{}, map[Class]int64{WebSearches: 2, FileSearches: 4}, 30_000_000},
		{"video by size", "openai", "sora-2-pro", Options{Size: "1024x1792"}, map[Class]int64{Seconds: 4}, 2_000_000_000},
		{"video of unknown size is the dearest", "azure-openai", "sora-2-pro", Options{}, map[Class]int64{Seconds: 4}, 2_000_000_000},
		{"reasoning priced apart", "dashscope", "qwen3-32b", Options{}, map[Class]int64{Output: 100, Reasoning: 100}, 280_000 + 840_000},
		{"reasoning as output", "openai", "o3", Options{}, map[Class]int64{Output: 100, Reasoning: 100}, 1_600_000},
		{"images by the piece", "byteplus", "seedream-4-5", Options{}, map[Class]int64{Images: 2}, 80_000_000},
		{"an hour's cache write", "anthropic", "claude-sonnet-4-5", Options{}, map[Class]int64{CacheWrite1h: 1_000_000}, 6 * Dollar},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := lookup(t, c.provider, c.model, c.o)
			var u Usage
			for class, n := range c.use {
				u.Set(class, n)
			}
			if got := p.Cost(u); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
			if !p.Covers(u) {
				t.Error("a class is said to be unpriced")
			}
		})
	}
	if d := lookup(t, "google", "veo-3.0-generate-001", Options{}).Defaults(); d.Seconds != 8 || d.Samples != 1 {
		t.Errorf("defaults of a video: %+v", d)
	}
}

func TestModesRegionsAndContextTiers(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		o               Options
		in, out         int64 // thousandths of a dollar per million
	}{
		{"openai", "gpt-4o", Options{Mode: "batch"}, 1250, 5000},
		{"openai", "gpt-4o", Options{Mode: "priority"}, 4250, 17000},
		{"openai", "gpt-4o", Options{Mode: "flex"}, 2500, 10000}, // no flex price: the base
		{"openai", "gpt-4o", Options{Mode: "default"}, 2500, 10000},
		{"anthropic", "claude-sonnet-4-5", Options{Mode: "batch"}, 1500, 7500},
		{"openai", "gpt-5.4", Options{ContextTokens: 272000}, 2500, 15000},
		{"openai", "gpt-5.4", Options{ContextTokens: 272001}, 5000, 22500},
		{"openai", "gpt-5.4", Options{Mode: "batch", ContextTokens: 300000}, 2500, 11250},
		{"openai", "gpt-5.4", Options{Region: "eu"}, 2750, 16500},
		{"openai", "gpt-5.4", Options{Region: "eu", ContextTokens: 300000}, 5500, 24750},
		{"openai", "gpt-5.4", Options{Region: "mars"}, 2500, 15000},
		{"google", "gemini-2.5-pro", Options{ContextTokens: 200001}, 2500, 15000},
		{"google", "gemini-2.5-pro", Options{Mode: "batch"}, 625, 5000},
		{"google", "gemini-2.5-pro", Options{Mode: "batch", ContextTokens: 200001}, 1250, 7500},
	} {
		p := lookup(t, c.provider, c.model, c.o)
		if in, out := perMillion(t, p, Input), perMillion(t, p, Output); in != c.in*milli || out != c.out*milli {
			t.Errorf("%s %+v: %d and %d, want %d and %d thousandths", c.model, c.o, in/milli, out/milli, c.in, c.out)
		}
	}
}

func TestBatchRetainsUnnamedRates(t *testing.T) {
	p := lookup(t, "anthropic", "claude-sonnet-4-5", Options{Mode: "batch"})
	if got := perMillion(t, p, CacheRead); got != 300*milli {
		t.Errorf("cache read in a batch: %d", got)
	}
}

func TestNamesThatMeanTheSamePrice(t *testing.T) {
	for _, c := range []struct {
		provider, name, listed string
	}{
		{"bedrock", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"bedrock", "apac.meta.llama3-8b-instruct-v1:0", "meta.llama3-8b-instruct-v1:0"},
		{"bedrock", "meta.llama3-8b-instruct-v1:0:8k", "meta.llama3-8b-instruct-v1:0"},
		{"google", "models/gemini-2.5-pro", "gemini-2.5-pro"},
		{"vertex-ai", "publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"},
		{"vertex-ai", "claude-sonnet-4-5@latest", "claude-sonnet-4-5"},
		{"openai", "ft:gpt-4o-mini-2024-07-18:acme::abc", "ft:gpt-4o-mini-2024-07-18"},
		{"openai", "ft:gpt-4o:acme:x:y", "ft:gpt-4o"},
		{"openai", "gpt-5-2099-01-02", "gpt-5"},
		{"anthropic", "claude-sonnet-4-5-20991231", "claude-sonnet-4-5"},
	} {
		want := lookup(t, c.provider, c.listed, Options{})
		if got := lookup(t, c.provider, c.name, Options{}); got != want {
			t.Errorf("%s does not cost what %s costs", c.name, c.listed)
		}
	}
}

func TestUnknownIsNotFree(t *testing.T) {
	for _, c := range [][2]string{
		{"openai", "gpt-nonesuch"}, {"nonesuch", "gpt-4o"}, {"openai", ""}, {"", ""}, {"sagemaker", "default"},
		{"azure-openai", "code-davinci-002"}, // listed as unpriced
		{"openai", "-latest"}, {"bedrock", "us."}, {"bedrock", "arn:"}, {"openai", "ft:"}, {"bedrock", ":"}, {"bedrock", "@"},
	} {
		if _, ok := Default().Price(c[0], c[1], Options{}); ok {
			t.Errorf("%s/%s has a price", c[0], c[1])
		}
	}
	p, ok := Default().Price("openrouter", "baidu/qianfan-ocr-fast:free", Options{})
	var u Usage
	u.Set(Input, 1000)
	if !ok || p.Cost(u) != 0 || !p.Covers(u) {
		t.Error("a declared zero is a price")
	}
	u.Set(Characters, 10)
	if p.Covers(u) {
		t.Error("characters are not priced here")
	}
	w := lookup(t, "openai", "whisper-1", Options{})
	var audio Usage
	audio.Set(AudioIn, 100)
	if w.Covers(audio) {
		t.Error("audio tokens do not price a model that charges minutes")
	}
}

func TestEveryLineOfTheListParses(t *testing.T) {
	source, err := os.ReadFile("data/prices.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := string(source)
	if *update {
		if err := os.WriteFile("data/prices.packed", pack(t, list), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skip("data/prices.packed is written; run the test again")
	}
	if len(packed) > 128<<10 {
		t.Errorf("the list has grown to %d bytes; it is linked into every function", len(packed))
	}
	if unpacked(Default().index()) != list {
		t.Error("data/prices.packed is another list than data/prices.txt: go test ./shared/pricing -run EveryLine -update writes it")
	}
	if want := fmt.Sprintf("%s-%08x", listDate, crc32.Checksum(source, crc32.MakeTable(crc32.Castagnoli))); Default().Version() != want {
		t.Errorf("version %s, want %s", Default().Version(), want)
	}
	lines := strings.Split(strings.TrimSuffix(list, "\n"), "\n")
	if len(lines) < 3000 {
		t.Errorf("the list has lost models: %d", len(lines))
	}
	keys := make([]string, len(lines))
	odd := 0
	for i, row := range lines {
		parts := strings.SplitN(row, "\t", 3)
		if len(parts) != 3 {
			t.Fatalf("line %d has no rates", i+1)
		}
		keys[i] = parts[0] + "\t" + parts[1]
		e, err := parseEntry(parts[0]+"/"+parts[1], parts[2])
		if err != nil {
			t.Errorf("%s: %v", keys[i], err)
			continue
		}
		if e.unpriced {
			odd++
		} else if p, ok := Default().Price(parts[0], parts[1], Options{}); !ok {
			t.Errorf("%s is not found", keys[i])
		} else if p.has == 0 && !p.byMinute {
			t.Errorf("%s is listed without a price", keys[i])
		}
	}
	if !sort.StringsAreSorted(keys) {
		t.Error("the list is not sorted by provider and model")
	}
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			t.Errorf("%s is listed twice", keys[i])
		}
	}
	if odd != 4 {
		t.Errorf("%d unpriced models, want 4", odd)
	}
	if n := len(Default().Models("openrouter")); n != 650 {
		t.Errorf("%d models of openrouter", n)
	}
}

func BenchmarkLookupAndCost(b *testing.B) {
	var u Usage
	u.Set(Input, 1200)
	u.Set(CacheRead, 800)
	u.Set(Output, 300)
	u.Set(Reasoning, 50)
	for _, model := range []string{"gpt-4o", "gpt-5.4"} {
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			book := Default()
			var sum NanoDollars
			for b.Loop() {
				p, _ := book.Price("openai", model, Options{ContextTokens: 2000})
				sum += p.Cost(u)
			}
			if sum == 0 {
				b.Fatal("nothing was charged")
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newBook(packed).index().of("openrouter")
	}
}

func ExampleBook_Price() {
	p, ok := Default().Price("anthropic", "claude-sonnet-4-5", Options{})
	var u Usage
	u.Set(Input, 1000)
	u.Set(Output, 200)
	fmt.Println(ok, p.Cost(u), p.Bound(1000, 200))
	// Output: true 6000000 9000000
}
