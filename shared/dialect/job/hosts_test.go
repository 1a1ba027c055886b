package job

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

var update = flag.Bool("update", false, "write what is sent to the golden files")

// room keeps files and notes in memory.
type room struct {
	chat.JobFiles
	files map[string][2]string // purpose, content
	notes map[string][]byte
}

func (r *room) File(_ context.Context, id string) (*chat.StoredFile, error) {
	f, ok := r.files[id]
	if !ok {
		return nil, nil
	}
	return &chat.StoredFile{ID: id, Purpose: f[0], Bytes: int64(len(f[1]))}, nil
}

func (r *room) Open(_ context.Context, f *chat.StoredFile) io.ReadCloser {
	return io.NopCloser(strings.NewReader(r.files[f.ID][1]))
}

func (r *room) SetData(_ context.Context, id string, note []byte) error {
	r.notes[id] = note
	return nil
}

func (r *room) Data(_ context.Context, ids ...string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, id := range ids {
		if n := r.notes[id]; n != nil {
			out[id] = n
		}
	}
	return out, nil
}

const (
	chatRows   = `{"custom_id":"a \"1\"","method":"POST","url":"/v1/chat/completions","body":{"model":"m","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],"max_tokens":9}}` + "\n"
	vectorRows = `{"custom_id":"a","body":{"model":"titan-embed","input":"Hi","dimensions":8}}` + "\n"
	textRows   = `{"custom_id":"a","body":{"model":"titan-embed","input":"Hi"}}` + "\n"
	talkRows   = `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]}` + "\n" + `{"prompt":"p","completion":"c"}` + "\n"
)

// What every provider is sent for a batch and for a fine-tuning job, call by call.
func TestWhatIsSent(t *testing.T) {
	talk := func(d chat.Provider) *chat.Conversation {
		return &chat.Conversation{Client: openai.Chat{}, Provider: d, Model: "m", Traits: new(chat.Traits), Adapt: func(b []byte) ([]byte, []string) { return b, nil }}
	}
	vectors := func(tr chat.Translator) *chat.Conversation {
		return &chat.Conversation{Translator: tr, Model: "titan-embed", Traits: new(chat.Traits), Adapt: func(b []byte) ([]byte, []string) { return b, nil }}
	}
	const made = `{"id":"x1","name":"n/x1","job_id":"x1","jobArn":"x1","state":"JOB_STATE_PENDING","processing_status":"in_progress","status":"QUEUED","dataset":{"validation_status":"validated"},` +
		`"filenameToSignedUrls":{"gateway-req1.jsonl":"https://signed/a","gateway-req1-training.jsonl":"https://signed/b"}}`
	for _, c := range []struct {
		name, rows, endpoint string
		jobs                 chat.Jobs
		talk                 *chat.Conversation
	}{
		{"anthropic", chatRows, "/v1/chat/completions", Anthropic{}, talk(anthropic.Messages{})},
		{"bedrock", chatRows, "/v1/chat/completions", Bedrock{}, talk(converse.Converse{})},
		{"bedrock-embeddings", vectorRows, "/v1/embeddings", Bedrock{}, vectors(bedrock.Embeddings{})},
		{"vertex-gemini", chatRows, "/v1/chat/completions", Vertex{}, talk(gemini.Generate{})},
		{"vertex-claude", chatRows, "/v1/chat/completions", Vertex{}, talk(anthropic.Messages{})},
		{"vertex-embeddings", vectorRows, "/v1/embeddings", Vertex{}, vectors(gemini.VertexEmbeddings{})},
		{"mistral", chatRows, "/v1/chat/completions", Mistral{}, talk(openai.Chat{})},
		{"together", chatRows, "/v1/chat/completions", TogetherAI{}, talk(openai.Chat{})},
		{"fireworks", chatRows, "/v1/chat/completions", Fireworks{}, talk(openai.Chat{})},
		{"cohere", textRows, "/v1/embeddings", Cohere{}, vectors(cohere.Embeddings{})},
		{"bedrock-tune", "", "", Bedrock{}, nil}, {"vertex-tune", "", "", Vertex{}, nil}, {"mistral-tune", "", "", Mistral{}, nil},
		{"together-tune", "", "", TogetherAI{}, nil}, {"fireworks-tune", "", "", Fireworks{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			sent := made
			if strings.HasPrefix(c.name, "fireworks") { // where it is an object
				sent = strings.Replace(made, `"status":"QUEUED",`, "", 1)
			}
			fields := map[string]string{"aws_s3_bucket": "bucket", "vertex_storage_bucket_name": "bucket", "fireworks_account_id": "acc"}
			j := &chat.Job{
				Operation: "batches_create", Request: "REQ1", Now: time.Unix(1_800_000_000, 0), ProviderName: c.name, Loss: new(chat.Loss),
				Field:        func(name string) string { return fields[name] },
				Conversation: func(string, string) (*chat.Conversation, error) { return c.talk, nil },
				Files:        &room{files: map[string][2]string{"f": {"batch", c.rows}, "t": {"fine-tune", talkRows}}, notes: map[string][]byte{}},
				Body:         []byte(`{"input_file_id":"f","endpoint":"` + c.endpoint + `","completion_window":"24h","role_arn":"arn:aws:iam::1:role/r"}`),
			}
			if !strings.HasPrefix(c.name, "bedrock") {
				j.Body = bytes.ReplaceAll(j.Body, []byte(`,"role_arn":"arn:aws:iam::1:role/r"`), nil)
			}
			if c.talk == nil {
				j.Operation = "finetune_create"
				j.Body = []byte(`{"model":"m","training_file":"t","suffix":"mine","hyperparameters":{"n_epochs":3},"role_arn":"arn:aws:iam::1:role/r"}`)
				if c.name != "bedrock-tune" {
					j.Body = bytes.ReplaceAll(j.Body, []byte(`,"role_arn":"arn:aws:iam::1:role/r"`), nil)
				}
			}
			j.Call = func(_ context.Context, call *chat.JobCall) (*http.Response, error) {
				writeCall(t, &log, call)
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(sent))}, nil
			}
			got, err := c.jobs.Do(t.Context(), j)
			if err != nil {
				t.Fatal(fault.From(err).Message)
			}
			answer, _ := io.ReadAll(got.Body)
			log.WriteString("=> " + string(answer) + "\n")
			golden(t, filepath.Join("testdata", c.name+".txt"), log.Bytes())
		})
	}
}

// writeCall writes a call with its body; what a form is bounded by is random.
func writeCall(t *testing.T, log *bytes.Buffer, call *chat.JobCall) {
	t.Helper()
	body := call.Body
	if call.Open != nil {
		src, err := call.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, _ = io.ReadAll(src)
	}
	kind := call.Header.Get("Content-Type")
	if _, boundary, ok := strings.Cut(kind, "boundary="); ok {
		body = bytes.ReplaceAll(body, []byte(boundary), []byte("BOUNDARY"))
		kind = strings.ReplaceAll(kind, boundary, "BOUNDARY")
	}
	log.WriteString(strings.Join([]string{call.Method, call.Operation, call.ID, call.Suffix, call.Object, call.URL, call.Query, kind}, " ") + "\n")
	log.Write(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")))
	log.WriteString("\n")
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
	}
}

func TestStatesOfJobsEverywhere(t *testing.T) {
	eight := map[string]bool{validating: true, failed: true, inProgress: true, "finalizing": true, completed: true, expired: true, cancelling: true, cancelled: true}
	for name, states := range map[string]map[string]string{
		"google": googleStates, "mistral": mistralStates, "together": togetherStates, "fireworks": fireworksStates, "cohere": cohereStates, "bedrock": invocationStates,
	} {
		for state, is := range states {
			if !eight[is] {
				t.Errorf("%s: %s is %s", name, state, is)
			}
		}
	}
	for name, b := range map[string]*Batch{
		"vertex":    (&predictionJob{Name: "a/b/7", Model: "publishers/anthropic/models/claude-x", State: "JOB_STATE_NEW"}).batch(),
		"mistral":   (&mistralJob{ID: "7", Status: "NEW"}).batch(),
		"together":  (&togetherJob{ID: "7", Status: "NEW"}).batch(),
		"fireworks": (&inferenceJob{Name: "accounts/a/batchInferenceJobs/7", State: "JOB_STATE_NEW"}).batch(),
		"cohere":    (&embedJob{ID: "7", Status: "new"}).batch(),
	} {
		if b.ID != "7" || b.Status != validating && b.Status != inProgress || b.Output+b.Errors != "" {
			t.Errorf("%s: a state that is not known: %+v", name, b)
		}
	}
	var p predictionJob
	if err := json.Unmarshal([]byte(`{"name":"p/7","state":"JOB_STATE_SUCCEEDED","endTime":"2026-02-03T04:05:06.123456Z","outputInfo":{"gcsOutputDirectory":"gs://b/o"},"completionStats":{"successfulCount":"2","failedCount":"1","incompleteCount":"-1"}}`), &p); err != nil {
		t.Fatal(err)
	}
	if b := p.batch(); b.Status != completed || b.Total != 3 || b.Completed != 2 || b.Failed != 1 || b.Ended != 1770091506 || b.Output != "7_output" || b.Errors != "7_errors" {
		t.Errorf("%+v", b)
	}
}

func TestRowsOfResults(t *testing.T) {
	for _, c := range []struct {
		read           func([]byte) (*result, error)
		line, id, kind string
		code, text     string
	}{
		{readInstance, `{"requestId":"a","status":"","response":{"candidates":[]}}`, "a", "succeeded", "", ""},
		{readInstance, `{"custom_id":"a","status":null,"response":{"id":"m"}}`, "a", "succeeded", "", ""},
		{readInstance, `{"requestId":"a","status":"Bad Request: {\"error\":{\"code\":400,\"message\":\"no\",\"status\":\"INVALID_ARGUMENT\"}}","response":{}}`, "a", "errored", "INVALID_ARGUMENT", "no"},
		{readInstance, `{"requestId":"a","status":"It broke"}`, "a", "errored", "model_error", "It broke"},
		{readInstance, `{"instance":{"content":"x","requestId":"a"},"predictions":[{"embeddings":{"values":[1]}}],"status":""}`, "a", "succeeded", "", ""},
		{readInstance, `{"instance":{"requestId":"a"},"predictions":[],"status":{}}`, "a", "errored", "model_error", ""},
		{readHostRow, `{"custom_id":"a","response":{"status_code":200,"body":{"model":"m"}},"error":null}`, "a", "succeeded", "", ""},
		{readHostRow, `{"custom_id":"a","response":{"choices":[]}}`, "a", "succeeded", "", ""},
		{readHostRow, `{"custom_id":"a","response":{"status_code":422,"body":{"message":"no","type":"bad"}},"error":null}`, "a", "errored", "bad", "no"},
		{readHostRow, `{"custom_id":"a","error":"no"}`, "a", "errored", "model_error", "no"},
		{readEmbedded, `{"custom_id":"a","embeddings":{"float":[1,2],"int8":[]}}`, "a", "succeeded", "", ""},
		{readEmbedded, `{"custom_id":"a","embeddings":[1]}`, "a", "succeeded", "", ""},
		{readEmbedded, `{"custom_id":"a","embeddings":null}`, "a", "errored", "model_error", ""},
	} {
		r, err := c.read([]byte(c.line))
		if err != nil || r.id != c.id || r.kind != c.kind || c.kind == "errored" && (r.code != c.code || r.text == "" || c.text != "" && r.text != c.text) {
			t.Errorf("%s: %+v %v", c.line, r, err)
		}
	}
}

// avroFile is a container of one block.
func avroFile(schema string, records int64, block []byte) []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	b := text(text(append([]byte("Obj\x01"), 2), "avro.schema"), schema)
	b = append(append(b, 0), "0123456789abcdef"...)
	b = binary.AppendVarint(b, records)
	return append(text(b, string(block)), "0123456789abcdef"...)
}

func TestAvroBecomesLines(t *testing.T) {
	const schema = `{"type":"record","name":"r","fields":[{"name":"s","type":"string"},{"name":"n","type":["null","long"]},{"name":"b","type":"boolean"},` +
		`{"name":"m","type":{"type":"map","values":"int"}},{"name":"e","type":{"type":"enum","name":"e","symbols":["x","y"]}},{"name":"f","type":{"type":"array","items":"float"}},{"name":"again","type":["null","e"]}]}`
	block := []byte{4, 'h', '"', 2, 6, 1, 2, 2, 'k', 4, 0, 2, 2, 0, 0, 0xc0, 0x3f, 0, 2, 0}
	got, err := io.ReadAll(newAvroLines(io.NopCloser(bytes.NewReader(avroFile(schema, 1, block)))))
	if want := `{"s":"h\"","n":3,"b":true,"m":{"k":2},"e":"y","f":[1.5],"again":"x"}` + "\n"; err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
	whole := avroFile(schema, 1, block)
	for cut := range len(whole) {
		if out, err := io.ReadAll(newAvroLines(io.NopCloser(bytes.NewReader(whole[:cut])))); err == nil && len(out) > 0 {
			t.Errorf("%d bytes of %d are read as %s", cut, len(whole), out)
		}
	}
	if _, err := io.ReadAll(newAvroLines(io.NopCloser(bytes.NewReader(avroFile(`"string"`, 1, []byte{200, 1}))))); err == nil {
		t.Error("a text longer than its block is read")
	}
}

func FuzzAvro(f *testing.F) {
	f.Add(avroFile(`{"type":"record","name":"r","fields":[{"name":"s","type":"string"},{"name":"f","type":{"type":"array","items":["null","double"]}}]}`, 1, []byte{2, 'a', 2, 0, 0}))
	f.Add(avroFile(`"long"`, 2, []byte{2, 4}))
	f.Fuzz(func(t *testing.T, file []byte) {
		src := newAvroLines(io.NopCloser(bytes.NewReader(file)))
		out, err := io.ReadAll(io.LimitReader(src, 1<<20))
		if err != nil || len(out) == 1<<20 {
			return
		}
		for line := range bytes.Lines(out) {
			if !json.Valid(line) {
				t.Fatalf("%q", line)
			}
		}
	})
}

func FuzzHostResults(f *testing.F) {
	f.Add([]byte(`{"requestId":"a","status":"Bad: {}","response":{}}`))
	f.Add([]byte(`{"custom_id":"a","response":{"status_code":200,"body":{"model":"m"}}}`))
	f.Add([]byte(`{"custom_id":"a","embeddings":{"float":[1]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, read := range []func([]byte) (*result, error){readInstance, readHostRow, readEmbedded} {
			r, err := read(bytes.Clone(line))
			if err != nil {
				continue
			}
			if !json.Valid(line) || r.good() && !json.Valid(r.message) || !r.good() && (r.code == "" || r.text == "") {
				t.Fatalf("%q is read as %+v", line, r)
			}
		}
	})
}

func FuzzShapes(f *testing.F) {
	f.Add([]byte(`{"instances":[{"content":"a"}],"parameters":{"outputDimensionality":3}}`))
	f.Add([]byte(`{"model":"m","texts":["a"],"input_type":"x"}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":"a"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, shape := range []func([]byte) ([]byte, error){new(instanceShape).instance, new(embedShape).row, withoutModel} {
			if out, err := shape(bytes.Clone(body)); err == nil && json.Valid(body) && !json.Valid(out) {
				t.Fatalf("%q became %q", body, out)
			}
		}
		for _, write := range []func(dst, line []byte) ([]byte, error){appendContents, appendTalk} {
			if out, err := write(nil, body); err == nil && (!json.Valid(out) || out[len(out)-1] != '\n') {
				t.Fatalf("%q became %q", body, out)
			}
		}
	})
}

// Rows that take no bytes would never end: a file may claim any number of them.
func TestAvroRowsOfNoBytesAreRefused(t *testing.T) {
	for _, schema := range []string{`"null"`, `{"type":"record","name":"r","fields":[]}`, `{"type":"fixed","name":"f","size":0}`} {
		src := newAvroLines(io.NopCloser(bytes.NewReader(avroFile(schema, 1<<40, nil))))
		n, err := io.Copy(io.Discard, io.LimitReader(src, 1<<20))
		if err == nil {
			t.Errorf("%s: %d bytes", schema, n)
		}
	}
}

// What a host claims to have used never becomes less than nothing.
func TestUsageOfRowsDoesNotRunOver(t *testing.T) {
	row := `{"custom_id":"a","response":{"status_code":200,"body":{"model":"m","usage":{"prompt_tokens":9000000000000000000,"completion_tokens":1,"total_tokens":9000000000000000001}}}}` + "\n"
	used, err := RowsUsage(io.NopCloser(strings.NewReader(strings.Repeat(row, 3))), nil)
	if err != nil || len(used) != 1 {
		t.Fatalf("%v %v", used, err)
	}
	if in, out := used[0].Usage.N(pricing.Input), used[0].Usage.N(pricing.Output); in < 0 || in > pricing.MaxUnits || out < 0 || out > 3 {
		t.Errorf("%d in, %d out", in, out)
	}
}

// The rows of a batch are summed by model and by the size of prompts that their price depends on:
// many small rows are no long prompt.
func TestUsageOfRowsIsSummedByTier(t *testing.T) {
	var rows string
	for _, in := range []int{60, 100, 90, 101, 4000} {
		rows += fmt.Sprintf(`{"custom_id":"a","response":{"status_code":200,"body":{"model":"m","usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}}}`+"\n", in, in+1)
	}
	used, err := RowsUsage(io.NopCloser(strings.NewReader(rows)), func(model string, prompt int64) int64 {
		if model == "m" && prompt > 100 {
			return 100
		}
		return 0
	})
	if err != nil || len(used) != 2 {
		t.Fatalf("%v %v", used, err)
	}
	for i, want := range [][2]int64{{250, 100}, {4101, 4000}} {
		if in := used[i].Usage.N(pricing.Input); in != want[0] || used[i].Prompt != want[1] {
			t.Errorf("%d: %d tokens, the largest prompt %d; want %d", i, in, used[i].Prompt, want)
		}
	}
}
