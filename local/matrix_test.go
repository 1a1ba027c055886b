package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/provider"
)

var updateMatrix = flag.Bool("update", false, "rewrite shared/provider/MATRIX.md")

const matrixFile = "../shared/provider/MATRIX.md"

// TestMatrix asks every provider of the catalog for every operation through one
// gateway, and holds what came back against the matrix in the repository.
//
//lane:exhaustive
func TestMatrix(t *testing.T) {
	t.Parallel()
	everyOperationIsTried(t)
	m := newMatrix(t)
	n := len(provider.All())
	rows, further, jobs := make([][]matrixRow, n), make([]map[provider.Operation]string, n), make([]map[provider.Operation]string, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, p := range provider.All() {
		m.save(p)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if len(p.Routes) > 0 {
				rows[i], jobs[i] = m.provider(p), m.jobs(p)
			}
			further[i] = m.further(p)
		})
	}
	wg.Wait()
	var b bytes.Buffer
	m.render(&b, rows)
	renderFurther(&b, further)
	renderJobs(&b, jobs)
	got := b.Bytes()
	if *updateMatrix {
		if err := os.WriteFile(matrixFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	lines := strings.Split(string(want), "\n")
	for _, line := range strings.Split(string(got), "\n") {
		if !slices.Contains(lines, line) {
			t.Errorf("not in the file: %s", line)
		}
	}
	t.Errorf("%s is stale: make matrix", matrixFile)
}

// everyOperationIsTried compares the tables below with the catalog: each operation that a
// row lists is tried by one of them. Sessions have their own tests.
func everyOperationIsTried(t *testing.T) {
	tried := map[provider.Operation]bool{provider.Realtime: true, provider.Live: true, provider.GeminiLive: true}
	for _, c := range nativeShapes { // they stand in for clients' operations at a host that is no custom one
		tried[c.op] = true
	}
	for _, c := range clients {
		tried[c.operation] = true
	}
	for _, o := range otherOperations {
		tried[o.operation] = true
	}
	for _, o := range furtherOperations {
		tried[o.op] = true
	}
	for _, o := range jobOperations {
		tried[o.op] = true
	}
	for _, p := range provider.All() {
		for _, r := range p.Routes {
			if !tried[r.Op] {
				t.Errorf("%s lists %s, which no table of the matrix tries", p.ID, r.Op)
			}
		}
	}
}

// Columns of the matrix.
const (
	colPlain = iota
	colStream
	colTools
	colImages
	colSchema
	colThinking
	colUsage
	colErrors
	columns
)

var columnNames = [columns]string{"plain", "stream", "tools", "images", "json schema", "thinking", "usage", "errors"}

// Marks of a cell.
const (
	yes    = "yes"    // the response carried it
	no     = "no"     // rejected with a 4xx of the gateway that names the field
	lost   = "told"   // left out, and the response's x-gateway-translation says so
	absent = "absent" // the provider tells none
)

type matrixRow struct {
	provider, operation, model string
	cells                      [columns]string
}

// matrix is one gateway with every provider saved in front of one mock.
type matrix struct {
	*running
	front  *httptest.Server
	serial atomic.Int64
	key    string   // private key for OCI
	sent   sync.Map // *sentOn by tag
}

// sentOn is what reached the provider.
type sentOn struct {
	Path string
	Body []byte
}

var tagForm = regexp.MustCompile(`mx[0-9]{5}x`)

func newMatrix(t *testing.T) *matrix {
	m := &matrix{running: start(t)}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	m.key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	m.front = httptest.NewServer(http.HandlerFunc(m.route))
	t.Cleanup(m.front.Close)
	return m
}

// wirePaths are where the mock serves providers with wires of their own.
var wirePaths = map[string]string{
	"jina": "/jina/v1", "voyage": "/voyage/v1", "nomic": "/nomic/v1", "ai21": "/ai21", "reka-ai": "/reka", "palm": "/palm", "bytez": "/bytez",
	"triton": "/triton", "workers-ai": "/workers", "oracle": "/oci", "mistral-ai": "/mistral/v1",
}

// pictureHosts are where the mock serves hosts that make images in a shape of their
// own, and what tells those paths from the others of the host.
var pictureHosts = map[string]struct {
	name  string
	marks []string
}{
	"fireworks-ai": {"fireworks", []string{"/image_generation/", "/workflows/"}}, "siliconflow": {"siliconflow", []string{"/images/generations"}},
	"hyperbolic": {"hyperbolic", []string{"/image/generation"}}, "stability-ai": {"stability", []string{"/"}}, "segmind": {"segmind", []string{"/"}}, "fal-ai": {"fal", []string{"/"}},
	"workers-ai": {"workers", []string{"/flux-"}},
}

// openAIPaths are the ends of the paths with OpenAI's format and Anthropic's.
var openAIPaths = []string{
	"/chat/completions", "/messages", "/messages/count_tokens", "/completions", "/embeddings", "/responses", "/moderations", "/rerank", "/models",
	"/images/generations", "/images/edits", "/images/variations", "/audio/speech", "/audio/transcriptions", "/audio/translations",
}

// route takes /{provider id}/... to the path where the mock speaks that provider's shape,
// whatever comes before it at the provider itself.
func (m *matrix) route(w http.ResponseWriter, r *http.Request) {
	target := r.RequestURI
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	tag := string(tagForm.Find(body))
	if tag == "" {
		tag = tagForm.FindString(target)
	}
	if tag != "" {
		m.sent.Store(tag, &sentOn{target, body})
	}
	id, rest, _ := strings.Cut(strings.TrimPrefix(target, "/"), "/")
	rest = "/" + rest
	path, _, _ := strings.Cut(rest, "?")
	if strings.HasPrefix(path, "/echo/") {
		r.RequestURI = rest
		m.mock.ServeHTTP(w, r)
		return
	}
	if host := pictureHosts[id]; host.name != "" && slices.ContainsFunc(host.marks, func(mark string) bool { return strings.Contains(path, mark) }) {
		r.RequestURI = "/images-of/" + host.name + rest
		m.mock.ServeHTTP(w, r)
		return
	}
	switch id {
	case "bedrock", "google", "vertex-ai", "cohere", "jina", "voyage", "nomic", "oracle":
		rest = strings.TrimSuffix(wirePaths[id], "/v1") + rest
		if wirePaths[id] != "" && id != "oracle" {
			rest = wirePaths[id] + "/" + strings.TrimPrefix(strings.TrimPrefix(rest, strings.TrimSuffix(wirePaths[id], "/v1")), "/")
		}
	default:
		index := max(strings.Index(path, "/responses/"), strings.Index(path, "/files"), strings.Index(path, "/batches"), strings.Index(path, "/fine_tuning/"))
		i := slices.IndexFunc(openAIPaths, func(tail string) bool { return strings.HasSuffix(path, tail) })
		switch {
		case index >= 0:
			rest = "/v1" + path[index:]
		case i >= 0:
			rest = "/v1" + openAIPaths[i]
		case id == "azure-ai" && strings.HasSuffix(path, "/ocr"):
			rest = "/azure" + rest
		default:
			rest = wirePaths[id] + rest
		}
		if r.Header.Get("Authorization") == "" && id != "anthropic" && r.Header.Get("Api-Key") != "" {
			r.Header.Set("Authorization", "Bearer "+r.Header.Get("Api-Key")) // Azure's header
		}
	}
	r.RequestURI = rest
	m.mock.ServeHTTP(w, r)
}

// fieldValues are the fields of credentials that rows need.
var fieldValues = map[string]string{
	"azure_auth_mode": `"default"`, "azure_resource_name": `"res"`, "azure_deployment_config": `[{"azure_deployment_name":"d","azure_api_version":"2024-10-21","azure_model_slug":"gpt-4o"}]`,
	"aws_auth_type": `"apiKey"`, "aws_region": `"us-east-1"`, "vertex_auth_type": `"basic"`, "vertex_region": `"us-central1"`, "vertex_project_id": `"proj"`,
	"workers_ai_account_id": `"account"`, "databricks_workspace": `"ws"`, "snowflake_account": `"acc"`, "predibase_tenant_id": `"tenant"`,
	"oracle_tenancy": `"t"`, "oracle_user": `"u"`, "oracle_fingerprint": `"aa:bb"`, "oracle_region": `"us-ashburn-1"`, "oracle_compartment_id": `"c"`,
}

// save makes the saved provider @m-{id}.
func (m *matrix) save(p *provider.Provider) {
	m.t.Helper()
	fields := map[string]json.RawMessage{}
	host := m.front.URL + "/" + p.ID
	for _, f := range p.Fields {
		if f.Need == "" || f.Need != "always" && fieldValues[f.Name] == "" {
			continue
		}
		value := fieldValues[f.Name]
		switch {
		case f.Form == provider.BaseURL:
			raw, _ := json.Marshal(host)
			value = string(raw)
		case f.Name == "oracle_private_key":
			raw, _ := json.Marshal(m.key)
			value = string(raw)
		case value == "":
			m.t.Fatalf("%s: the field %s has no value for tests", p.ID, f.Name)
		}
		fields[f.Name] = json.RawMessage(value)
	}
	if p.Auth.Scheme == provider.SigV4Auth {
		fields["aws_auth_type"] = json.RawMessage(fieldValues["aws_auth_type"])
	}
	fields["custom_host"], _ = json.Marshal(host)
	raw, _ := json.Marshal(fields)
	m.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":%q,"key":"mock-key","configurations":%s}`, p.ID, "m-"+p.ID, m.workspace(), p.ID, raw))
}

// example is the model that a row is tried with: a current one of the provider,
// for op and column.
func example(p *provider.Provider, op provider.Operation, column int) string {
	switch op {
	case provider.Completions:
		if model := map[string]string{"cohere": "command", "ai21": "j2-mid", "palm": "text-bison-001"}[p.ID]; model != "" {
			return model
		}
	case provider.Embeddings:
		if model := map[string]string{"palm": "embedding-gecko-001", "bedrock": "amazon.titan-embed-text-v2:0", "google": "gemini-embedding-001", "vertex-ai": "text-embedding-005", "cohere": "embed-english-v3.0"}[p.ID]; model != "" {
			return model
		}
	case provider.MessagesCountTokens:
		if p.ID == "vertex-ai" {
			return "anthropic.claude-sonnet-4-5" // Claude alone counts there
		}
	case provider.Rerank:
		if p.ID == "bedrock" {
			return "cohere.rerank-v3-5:0"
		}
	case provider.ImagesGenerate:
		if model := imageModels[p.ID]; model != "" {
			return model
		}
	case provider.Chat, provider.Messages, provider.ResponsesCreate:
		if column == colThinking && (p.ID == "openai" || p.ID == "azure-openai" || op == provider.ResponsesCreate && p.Serves(op)) {
			return "o3"
		}
		if column == colImages && p.ID == "cohere" {
			return "command-a-vision-07-2025"
		}
	}
	if model := map[string]string{
		"openai": "gpt-4.1", "azure-openai": "gpt-4.1", "anthropic": "claude-sonnet-4-5", "claude-platform-aws": "claude-sonnet-4-5", "bedrock": bedrockClaude,
		"google": "gemini-2.5-flash", "vertex-ai": "gemini-2.5-flash", "cohere": "command-a-reasoning-08-2025", "mistral-ai": "mistral-medium-latest",
		"deepseek": "deepseek-chat", "perplexity-ai": "sonar-pro", "oracle": "meta.llama-3.3-70b-instruct", "palm": "chat-bison-001", "reka-ai": "reka-flash",
	}[p.ID]; model != "" {
		return model
	}
	return "model"
}

// imageModels are models that make images, of providers with models for it alone.
var imageModels = map[string]string{
	"bedrock": "amazon.nova-canvas-v1:0", "google": "imagen-4.0-generate-001", "vertex-ai": "imagen-4.0-generate-001", "workers-ai": "@cf/black-forest-labs/flux-1-schnell",
	"fireworks-ai": "stable-diffusion-xl-1024-v1-0", "stability-ai": "sd3.5-large", "fal-ai": "fal-ai/flux/dev", "segmind": "sdxl1.0-txt2img", "hyperbolic": "SDXL1.0-base",
}

// cellRequest is one request of a cell and what came back.
type cellRequest struct {
	reply
	tag  string // stands in the model's name and nowhere else
	bill *mockprovider.Row
	sent *sentOn // nil: nothing reached the provider
}

// send sends a body with a marked model, so that the bill and what the provider received can
// be found: body contains MODEL and TAG.
func (m *matrix) send(p *provider.Provider, op provider.Operation, column int, path, body string) *cellRequest {
	w := &cellRequest{tag: fmt.Sprintf("mx%05dx", m.serial.Add(1))}
	model := example(p, op, column) + "-" + w.tag
	var headers []string
	if column == colThinking { // what is left out is then told in a header
		headers = []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}
	}
	body = strings.NewReplacer("MODEL", "@m-"+p.ID+"/"+model, "TAG", w.tag).Replace(body)
	got, err := m.try("POST", path, body, headers...)
	if err != nil {
		m.t.Errorf("%s %s: %v", p.ID, op, err)
		return w
	}
	w.reply = got
	if sent, ok := m.sent.Load(w.tag); ok {
		w.sent = sent.(*sentOn)
	}
	return w
}

// sendDirectly asks at the provider's own address, with a caller's key. What is rejected
// there is not sent anywhere.
func (m *matrix) sendDirectly(p *provider.Provider, path, body string) *cellRequest {
	w := &cellRequest{tag: fmt.Sprintf("mx%05dx", m.serial.Add(1))}
	headers := []string{"X-Gateway-Provider", p.ID, "Authorization", "Bearer mock-key"}
	for _, f := range p.Fields {
		if f.Need == "always" && f.HeaderName() != "" {
			headers = append(headers, f.HeaderName(), strings.Trim(fieldValues[f.Name], `"`))
		}
	}
	got, err := m.try("POST", path, strings.NewReplacer("MODEL", "model-"+w.tag, "TAG", w.tag).Replace(body), headers...)
	if err != nil {
		m.t.Errorf("%s %s: %v", p.ID, path, err)
	}
	w.reply = got
	return w
}

// billed finds the row of the bill; only rows that the mock keeps by the model are
// found.
func (m *matrix) billed(ws ...*cellRequest) {
	for _, row := range m.mock.Bill().Rows {
		for _, w := range ws {
			if w != nil && (strings.Contains(row.Model, w.tag) || strings.Contains(row.Path, w.tag)) {
				w.bill = &row
			}
		}
	}
}

// refused gives the mark of a request that has no good answer.
func (m *matrix) refused(p *provider.Provider, op provider.Operation, column int, w *cellRequest) string {
	if w.sent == nil && w.status >= 400 && w.status < 500 {
		e, _ := w.json(m.t)["error"].(map[string]any)
		if e["param"] == nil && e["field"] == nil && !strings.Contains(w.body, `"invalid_request_error"`) {
			m.t.Errorf("%s %s %s: the refusal names no field: %s", p.ID, op, columnNames[column], w.body)
		}
		return no
	}
	sent := ""
	if w.sent != nil {
		sent = w.sent.Path + " " + string(w.sent.Body)
	}
	m.t.Errorf("%s %s %s: %d %.300s\nsent: %.600s", p.ID, op, columnNames[column], w.status, w.body, sent)
	return "?"
}
