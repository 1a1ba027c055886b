package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gateway/shared/provider"
)

// jobOperations are the columns of the table of files, batches and fine-tuning, in
// the order in which one run does them.
var jobOperations = []struct {
	op   provider.Operation
	name string
}{
	{provider.FilesUpload, "upload"}, {provider.FilesList, "files"}, {provider.FilesGet, "file"}, {provider.FilesContent, "content"},
	{provider.BatchesCreate, "batch"}, {provider.BatchesGet, "read"}, {provider.BatchesList, "batches"}, {provider.BatchesOutput, "output"}, {provider.BatchesCancel, "cancel"},
	{provider.FinetuneCreate, "tune"}, {provider.FinetuneGet, "read"}, {provider.FinetuneList, "jobs"}, {provider.FinetuneCancel, "cancel"},
	{provider.FilesDelete, "delete"},
}

// jobPlace is where the mock provider runs the jobs of a provider, and what they
// need there.
type jobPlace struct {
	path           string // of the custom host, or behindFront
	configurations string // further members
	model          string
	batch, tune    string // further members of a new batch, of a new job
	endpoint       string // of a batch: that of embeddings, or "" for conversations
}

// behindFront is the path of hosts behind the matrix's own front.
const behindFront = "front"

const azureJobs = `,"azure_auth_mode":"default","azure_resource_name":"res","azure_deployment_config":[{"azure_deployment_name":"gpt-4o-mini","azure_api_version":"2024-10-21","azure_model_slug":"gpt-4o-mini","is_default":true}]`

var jobPlaces = map[string]jobPlace{
	"openai":              {path: "/v1", model: "gpt-4o-mini"},
	"azure-openai":        {path: behindFront, model: "gpt-4o-mini", configurations: azureJobs},
	"azure-ai":            {path: "/v1", model: "gpt-4o-mini", configurations: `,"azure_auth_mode":"default","azure_foundry_url":"HERE/v1"`},
	"anthropic":           {path: "/v1", model: "claude-sonnet-4-5"},
	"claude-platform-aws": {path: "/v1", model: "claude-sonnet-4-5", configurations: `,"aws_auth_type":"apiKey","aws_region":"us-east-1"`},
	"bedrock": {
		path: "/v1", model: bedrockClaude, batch: `,"role_arn":"arn:aws:iam::123456789012:role/batch"`, tune: `,"role_arn":"arn:aws:iam::123456789012:role/tune"`,
		configurations: `,"aws_auth_type":"accessKey","aws_region":"us-east-1","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret","aws_s3_bucket":"mock-bucket"`,
	},
	"vertex-ai": {
		path: "/v1", model: "gemini-2.5-flash",
		configurations: `,"vertex_auth_type":"basic","vertex_region":"us-central1","vertex_project_id":"proj","vertex_storage_bucket_name":"mock-gcs"`,
	},
	"mistral-ai":   {path: "/hosts/mistral/v1", model: "mistral-large-latest"},
	"together-ai":  {path: "/hosts/together/v1", model: "meta-llama/Llama-3.3-70B-Instruct-Turbo"},
	"groq":         {path: "/hosts/groq/openai/v1", model: "llama-3.3-70b-versatile"},
	"kluster-ai":   {path: "/v1", model: "m"},
	"cohere":       {path: "/hosts/cohere", model: "embed-english-v3.0", endpoint: "/v1/embeddings"},
	"fireworks-ai": {path: "/hosts/fireworks", model: "100b", configurations: `,"fireworks_account_id":"mock-account"`},
}

// jobRun is one provider's way through all of its files and jobs.
type jobRun struct {
	m        *matrix
	p        *provider.Provider
	place    jobPlace
	cells    map[provider.Operation]string
	file     string
	batch    string
	training string
	job      string
	rows     string
}

// jobs tries the files, batches and fine-tuning of a provider; nil when it has none.
func (m *matrix) jobs(p *provider.Provider) map[provider.Operation]string {
	if !slices.ContainsFunc(jobOperations, func(o struct {
		op   provider.Operation
		name string
	}) bool {
		return p.Serves(o.op)
	}) {
		return nil
	}
	place, ok := jobPlaces[p.ID]
	if !ok {
		m.t.Errorf("%s has files or jobs, and the table jobPlaces does not say where the mock provider runs them", p.ID)
		return nil
	}
	mock := strings.TrimSuffix(m.mockBase(), "/v1")
	host, key := mock+place.path, `"key":"mock-key",`
	if place.path == behindFront {
		host = m.front.URL + "/" + p.ID
	}
	if strings.Contains(place.configurations, "aws_access_key_id") {
		key = ""
	}
	m.admin("POST", "/integrations", fmt.Sprintf(`{"name":"jobs of %s","slug":"j-%s","workspace_id":%q,"ai_provider_id":%q,%s"configurations":{"custom_host":%q%s}}`,
		p.ID, p.ID, m.workspace(), p.ID, key, host, strings.ReplaceAll(place.configurations, "HERE", mock)))
	r := &jobRun{m: m, p: p, place: place, cells: map[provider.Operation]string{}, rows: rowsFor(place.model)}
	r.file, r.batch, r.training, r.job = "file-none", "batch_none", "file-none", "ftjob-none" // where none is made
	if place.endpoint == "/v1/embeddings" {
		r.rows = strings.Join(strings.SplitAfter(vectorsFor(place.model, ""), "\n")[:2], "")
	}
	for _, o := range jobOperations {
		if p.Serves(o.op) || o.op == provider.BatchesOutput && p.Serves(provider.BatchesGet) {
			r.cells[o.op] = r.try(o.op)
		}
	}
	return r.cells
}

func (r *jobRun) send(method, path, body string, headers ...string) reply {
	got, err := r.m.try(method, path, body, append(headers, "X-Gateway-Provider", "@j-"+r.p.ID)...)
	if err != nil {
		r.m.t.Errorf("%s %s: %v", r.p.ID, path, err)
	}
	return got
}

// try does one operation and says how it went.
func (r *jobRun) try(op provider.Operation) string {
	var got reply
	good := func(map[string]any) bool { return true }
	is := func(object, id string) func(map[string]any) bool {
		return func(v map[string]any) bool { return v["object"] == object && (id == "" || v["id"] == id) }
	}
	holds := func(id string) func(map[string]any) bool {
		return func(v map[string]any) bool {
			list, _ := v["data"].([]any)
			return slices.ContainsFunc(list, func(e any) bool { return textAt(e, "id") == id })
		}
	}
	switch op {
	case provider.FilesUpload:
		got, good = r.upload("batch", r.rows, &r.file), is("file", "")
	case provider.FilesList:
		got, good = r.send("GET", "/files", ""), holds(r.file)
	case provider.FilesGet:
		got, good = r.send("GET", "/files/"+r.file, ""), is("file", r.file)
	case provider.FilesContent:
		if got = r.send("GET", "/files/"+r.file+"/content", ""); got.status == 200 && got.body == r.rows {
			return yes
		}
	case provider.FilesDelete:
		got, good = r.send("DELETE", "/files/"+r.file, ""), func(v map[string]any) bool { return v["deleted"] == true }
	case provider.BatchesCreate:
		got, good = r.newBatch(&r.batch), is("batch", "")
	case provider.BatchesGet:
		for range 6 {
			if got = r.send("GET", "/batches/"+r.batch, ""); got.status != 200 || got.json(r.m.t)["status"] == "completed" {
				break
			}
		}
		good = func(v map[string]any) bool { return v["id"] == r.batch && v["status"] == "completed" }
	case provider.BatchesList:
		got, good = r.send("GET", "/batches", ""), holds(r.batch)
	case provider.BatchesOutput:
		if got = r.send("GET", "/batches/"+r.batch+"/output", ""); got.status == 200 && strings.Count(got.body, `"custom_id"`) == strings.Count(r.rows, `"custom_id"`) {
			return yes
		}
	case provider.BatchesCancel:
		second := "batch_none"
		r.newBatch(&second)
		got, good = r.send("POST", "/batches/"+second+"/cancel", ""), func(v map[string]any) bool {
			return v["id"] == second && strings.HasPrefix(fmt.Sprint(v["status"]), "cancel")
		}
	case provider.FinetuneCreate:
		if r.p.Serves(provider.FilesUpload) {
			r.upload("fine-tune", strings.Repeat(`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}`+"\n", 10), &r.training)
		}
		got, good = r.newJob(&r.job), is("fine_tuning.job", "")
	case provider.FinetuneGet:
		got, good = r.send("GET", "/fine_tuning/jobs/"+r.job, ""), is("fine_tuning.job", r.job)
	case provider.FinetuneList:
		got, good = r.send("GET", "/fine_tuning/jobs", ""), holds(r.job)
	case provider.FinetuneCancel:
		second := "ftjob-none"
		r.newJob(&second)
		got, good = r.send("POST", "/fine_tuning/jobs/"+second+"/cancel", ""), func(v map[string]any) bool { return v["id"] == second && v["status"] == "cancelled" }
	}
	var v map[string]any
	switch {
	case got.status == 200 && json.Unmarshal([]byte(got.body), &v) == nil && v != nil && good(v):
		return yes
	case got.status == 400 && strings.Contains(got.body, "not supported"):
		return no
	}
	r.m.t.Errorf("%s %s: %d %.400s", r.p.ID, op, got.status, got.body)
	return "?"
}

// takeID takes the id of what was made.
func takeID(got reply, id *string) reply {
	var v struct{ ID string }
	if json.Unmarshal([]byte(got.body), &v) == nil && v.ID != "" {
		*id = v.ID
	}
	return got
}

func (r *jobRun) upload(purpose, rows string, id *string) reply {
	return takeID(r.send("POST", "/files", form("purpose", purpose, "file", "rows.jsonl:"+rows), formType...), id)
}

func (r *jobRun) newBatch(id *string) reply {
	endpoint := "/v1/chat/completions"
	if r.place.endpoint != "" {
		endpoint = r.place.endpoint
	}
	return takeID(r.send("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h"%s}`, r.file, endpoint, r.place.batch)), id)
}

func (r *jobRun) newJob(id *string) reply {
	return takeID(r.send("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":%q,"training_file":%q,"suffix":"mine"%s}`, r.place.model, r.training, r.place.tune)), id)
}

// renderJobs is the table of files and jobs.
func renderJobs(b *bytes.Buffer, done []map[provider.Operation]string) {
	b.WriteString("\n## Files, batches and fine-tuning\n\nA file is uploaded, listed, read and taken back; a batch of its rows is made, run to\nits end, listed, read row by row, and a second one canceled; so are jobs. Providers\nand operations that are not listed are refused as unsupported_operation.\n\n| provider |")
	for _, o := range jobOperations {
		b.WriteString(" " + o.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(jobOperations)) + "\n")
	for i, p := range provider.All() {
		if done[i] == nil {
			continue
		}
		b.WriteString("| " + p.ID + " |")
		for _, o := range jobOperations {
			b.WriteString(" " + done[i][o.op] + " |")
		}
		b.WriteByte('\n')
	}
}
