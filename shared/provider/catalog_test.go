package provider

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// everyID are provider types that configs and integrations must be able to name; testdata lists all.
const everyID = `openai cohere anthropic azure-openai huggingface anyscale palm together-ai google vertex-ai
perplexity-ai mistral-ai deepinfra ncompass stability-ai nomic ollama ai21 bedrock groq segmind jina fireworks-ai
workers-ai reka-ai moonshot openrouter lingyi zhipu novita-ai monsterapi deepseek predibase triton voyage azure-ai
github deepbricks siliconflow cerebras inference-net sambanova lemonfox-ai upstage lambda dashscope x-ai qdrant
sagemaker nebius recraft-ai milvus replicate lepton kluster-ai nscale hyperbolic bytez featherless-ai krutrim 302ai
cometapi matterai meshy nextbit tripo3d modal z-ai oracle iointelligence aibadgr ovhcloud cortex
bedrock-mantle claude-platform-aws byteplus databricks deepgram fal-ai snowflake-cortex vllm local-ai minimax
lightning-ai ember-cloud hugging-face open-ai scenario-ai`

func TestEveryProviderHasItsRow(t *testing.T) {
	for _, id := range strings.Fields(everyID) {
		if _, ok := ByID(id); !ok {
			t.Errorf("%s is not in the catalog", id)
		}
	}
	if _, ok := ByID("no-such-provider"); ok {
		t.Error("an unknown id must not be found")
	}
	seen := map[string]bool{}
	for _, p := range All() {
		for _, id := range append([]string{p.ID}, p.Aliases...) {
			if seen[id] {
				t.Errorf("%s is listed twice", id)
			}
			seen[id] = true
		}
	}
}

// sample is a credential with a fitting value for each field.
func sample(p *Provider) Credential {
	c := Credential{Key: "sk-test", Fields: map[string]string{}}
	for _, f := range p.Fields {
		switch {
		case f.Name == "is_key_required", f.Name == "azure_ad_token", f.Form == List:
		case f.Values != nil:
			c.Fields[f.Name] = f.Values[0]
		case f.Form == BaseURL:
			if f.Need == always {
				c.Fields[f.Name] = "https://example.com/base"
			}
		case f.Form == JSONObject:
			c.Fields[f.Name] = `{"project_id":"account-project"}`
		case f.Form == Flag:
			c.Fields[f.Name] = "true"
		case f.Name == "azure_api_version":
			c.Fields[f.Name] = "2024-10-21"
		default:
			c.Fields[f.Name] = strings.ReplaceAll(f.Name, "_", "-")
		}
	}
	if p.Auth.Scheme == SigV4Auth {
		c.Fields["aws_auth_type"] = "apiKey"
		c.Fields["aws_region"] = "eu-west-1"
	}
	return c
}

// TestEveryAddressAndCredential writes down what the whole catalog makes:
// the diff of the golden file is the review of a change.
func TestEveryAddressAndCredential(t *testing.T) {
	var b strings.Builder
	for _, p := range All() {
		target := Target{Provider: p, Credential: sample(p)}
		if p.Base == "" {
			target.CustomHost = "https://own.example.com"
		}
		fmt.Fprintf(&b, "%s (%s)\n", p.ID, p.Dialect)
		for _, r := range p.Routes {
			u, err := target.URL(r.Op, "maker/model-1", false)
			if strings.Contains(r.Path, "{id") {
				u, err = target.ResourceURL(r.Op, "id-1")
			}
			if err != nil {
				t.Errorf("%s %s: %v", p.ID, r.Op, err)
				continue
			}
			if _, err := ExactURL(u); err != nil {
				t.Errorf("%s %s: %s: %v", p.ID, r.Op, u, err)
			}
			line := u
			if streamed, err := target.URL(r.Op, "maker/model-1", true); err == nil && streamed != u && !strings.Contains(r.Path, "{id") {
				line += "  stream " + streamed
			}
			fmt.Fprintf(&b, "  %-20s %-22s %s\n", r.Op, p.DialectOf(r.Op), line)
		}
		passed, err := target.PassthroughURL("/some/path", "a=1")
		if err != nil {
			t.Errorf("%s pass-through: %v", p.ID, err)
		}
		fmt.Fprintf(&b, "  %-20s %-22s %s\n", "passthrough", "", passed)
		b.WriteString(authLines(t, &target, passed))
	}
	golden(t, "testdata/catalog.txt", b.String())
}

func authLines(t *testing.T, target *Target, rawURL string) string {
	t.Helper()
	u, err := ExactURL(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	req := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}}
	if err := target.Authorize(context.Background(), req, nil); err != nil {
		return fmt.Sprintf("  refused: %v\n", err)
	}
	var lines []string
	for name, values := range req.Header {
		lines = append(lines, fmt.Sprintf("  %s: %s\n", name, strings.Join(values, ",")))
	}
	if req.URL.RawQuery != u.RawQuery {
		lines = append(lines, "  ?"+req.URL.RawQuery+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(gotLines), len(wantLines)) {
			if gotLines[i] != wantLines[i] {
				t.Fatalf("%s:%d\n got %s\nwant %s", name, i+1, gotLines[i], wantLines[i])
			}
		}
		t.Fatalf("%s: %d lines, want %d", name, len(gotLines), len(wantLines))
	}
}

// TestOpenAICompatibleProviders holds every row of the OpenAI dialect against
// the rules, whatever the golden file says.
func TestOpenAICompatibleProviders(t *testing.T) {
	suffixes := map[Operation]string{Chat: "/chat/completions", Completions: "/completions", Embeddings: "/embeddings"}
	special := []string{"cortex", "databricks", "predibase", "workers-ai", "ai21"}
	n := 0
	for _, p := range All() {
		if p.Dialect != OpenAIChat || slices.Contains(special, p.ID) {
			continue
		}
		n++
		for op, suffix := range suffixes {
			if !p.Serves(op) {
				continue
			}
			own := Target{Provider: p, Credential: sample(p), CustomHost: "https://own.example.com/v9/"}
			got, err := own.URL(op, "m", true)
			if err != nil {
				t.Errorf("%s %s: %v", p.ID, op, err)
				continue
			}
			u, err := url.Parse(got)
			if err != nil || u.Host != "own.example.com" || !strings.HasPrefix(u.Path, "/v9/") || !strings.HasSuffix(u.Path, suffix) {
				t.Errorf("%s %s: a custom host gives %s", p.ID, op, got)
			}
		}
		if want := wrongDialect(p); want != "" {
			t.Errorf("%s: %s", p.ID, want)
		}
		if traits := p.Traits("m"); traits.Provider != p.ID || (traits.SystemRole == "system") == p.Quirks.Developer {
			t.Errorf("%s: traits %+v", p.ID, traits)
		}
	}
	if n < 50 {
		t.Errorf("only %d rows were looked at", n)
	}
}

// wrongDialect says which dialect of an OpenAI row is wrong.
func wrongDialect(p *Provider) string {
	for op, want := range map[Operation]string{Chat: OpenAIChat, Completions: OpenAICompletions, Embeddings: OpenAI, ResponsesCreate: OpenAIResponses, Messages: AnthropicMessages} {
		if got := p.DialectOf(op); got != "" && got != want {
			return fmt.Sprintf("%s speaks %s, want %s", op, got, want)
		}
	}
	return ""
}

func TestFieldsThatLandInURLsHaveAStrictForm(t *testing.T) {
	for _, p := range All() {
		templates := []string{p.Base}
		for _, r := range p.Routes {
			templates = append(templates, r.Base, r.Path, r.Stream)
		}
		for _, template := range templates {
			for rest := template; ; {
				_, after, ok := strings.Cut(rest, "{")
				if !ok {
					break
				}
				name, tail, _ := strings.Cut(after, "}")
				rest = tail
				name, _, _ = strings.Cut(strings.TrimSuffix(name, "!"), "|")
				if name == "model" || name == "base_model" || name == "id" {
					continue
				}
				f, ok := p.Field(name)
				if !ok || f.Form == Text {
					t.Errorf("%s: {%s} in %s has no strict form", p.ID, name, template)
				}
			}
		}
	}
}
