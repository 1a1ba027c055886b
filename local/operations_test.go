package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// last is the last request that reached the provider.
func (r *running) last() (method, path, body string, header http.Header) {
	r.t.Helper()
	all := r.mock.Requests(1)
	if len(all) != 1 {
		r.t.Fatal("nothing reached the provider")
	}
	return all[0].Method, all[0].Path, string(all[0].Body), all[0].Headers
}

//lane:standard
func TestFilesAreReturnedUnchanged(t *testing.T) {
	t.Parallel()
	r := start(t)
	content := make([]byte, 300_000)
	for i := range content {
		content[i] = byte(i * 31)
	}
	id := r.id("POST", "/files", form("purpose", "user_data", "file", "all.bin:"+string(content)), formOnMock...)
	got := r.call("GET", "/files/"+id+"/content", "", onMock...)
	if got.status != 200 || got.body != string(content) || got.header.Get("Content-Type") != "application/octet-stream" || !strings.Contains(got.header.Get("Content-Disposition"), "all.bin") {
		t.Errorf("%d %v, %d bytes", got.status, got.header, len(got.body))
	}
	one := r.call("GET", "/files/"+id, "", onMock...).json(t)
	if one["bytes"] != 300000.0 || one["filename"] != "all.bin" || one["purpose"] != "user_data" || one["provider"] != nil {
		t.Errorf("%v", one)
	}
	for i := range 3 {
		r.id("POST", "/files", form("purpose", "vision", "file", fmt.Sprint(i, ".png:x")), formOnMock...)
	}
	page := r.call("GET", "/files?purpose=vision&limit=2", "", onMock...).json(t)
	next := r.call("GET", "/files?purpose=vision&limit=2&after="+page["last_id"].(string), "", onMock...).json(t)
	if len(page["data"].([]any)) != 2 || page["has_more"] != true || len(next["data"].([]any)) != 1 || next["has_more"] != false {
		t.Errorf("%v\n%v", page, next)
	}
	if gone := r.call("DELETE", "/files/"+id, "", onMock...); gone.status != 200 || gone.json(t)["deleted"] != true {
		t.Errorf("%d %s", gone.status, gone.body)
	}
	if missing := r.call("GET", "/files/"+id, "", onMock...); missing.status != 404 || !strings.Contains(missing.body, "No such File object") {
		t.Errorf("%d %s", missing.status, missing.body)
	}
}

func TestFormsAreSentOnWithTheModelThatWasDecidedOn(t *testing.T) {
	t.Parallel()
	r := start(t)
	long := strings.Repeat("sound", 2_000_000) // 10 MB: streamed through
	for _, c := range []struct {
		name, body string
		headers    []string
	}{
		{"model first", form("model", "@mock/whisper-1", "response_format", "json", "file", "a.mp3:sound"), formType},
		{"model behind the file", form("file", "a.mp3:sound", "model", "@mock/whisper-1"), formType},
		{"long, model first", form("model", "@mock/whisper-1", "file", "a.mp3:"+long), formType},
		{"long, model behind the file", form("file", "a.mp3:"+long, "model", "whisper-1"), formOnMock},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.call("POST", "/audio/transcriptions", c.body, c.headers...)
			if got.status != 200 || !strings.Contains(got.body, "bytes.") {
				t.Fatalf("%d %s", got.status, got.body)
			}
			_, path, sent, header := r.last()
			if want := strings.Replace(c.body, "@mock/", "", 1); sent != want || path != "/v1/audio/transcriptions" || header.Get("Content-Type") != formType[1] {
				t.Errorf("%s: sent %d bytes with %q, want %d", path, len(sent), header.Get("Content-Type"), len(want))
			}
		})
	}
	for _, rec := range r.records(4) {
		if rec.Endpoint != "createTranscription" || rec.Usage.N(pricing.Seconds) == 0 {
			t.Errorf("record %+v", rec)
		}
	}
}

//lane:standard
func TestBrokenFormsAreRefusedBeforeTheProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	whole := form("model", "@mock/whisper-1", "file", "a.mp3:sound")
	for _, c := range []struct{ name, path, kind, body, param string }{
		{"JSON", "/files", "application/json", `{}`, "content-type"},
		{"no content type", "/files", "text/plain", "x", "content-type"},
		{"no boundary", "/files", "multipart/form-data", whole, "content-type"},
		{"odd boundary", "/files", "multipart/form-data; boundary=\"a<b\"", whole, "content-type"},
		{"long boundary", "/files", "multipart/form-data; boundary=" + strings.Repeat("b", 71), whole, "content-type"},
		{"another boundary", "/files", "multipart/form-data; boundary=other", whole, "body"},
		{"empty", "/files", formType[1], "", "body"},
		{"cut in the file", "/files", formType[1], whole[:len(whole)-30], "body"},
		{"cut in a header", "/files", formType[1], whole[:40], "body"},
		{"no purpose", "/files", formType[1], form("file", "a:b"), "purpose"},
		{"no file", "/files", formType[1], form("purpose", "batch"), "file"},
		{"no model", "/audio/transcriptions", formType[1], form("file", "a:b"), "model"},
		{"model twice", "/audio/transcriptions", formType[1], form("model", "a", "model", "b", "file", "a:b"), "model"},
		{"model not UTF-8", "/audio/transcriptions", formType[1], form("model", "a\xff", "file", "a:b"), "model"},
		{"no provider in the model", "/audio/transcriptions", formType[1], form("model", "@mock", "file", "a:b"), "model"},
		{"stream of another kind", "/audio/transcriptions", formType[1], form("model", "a", "stream", "yes", "file", "a:b"), "stream"},
		{"temperature", "/audio/transcriptions", formType[1], form("model", "a", "temperature", "hot", "file", "a:b"), "temperature"},
		{"no prompt", "/images/edits", formType[1], form("image", "a:b"), "prompt"},
		{"n", "/images/variations", formType[1], form("n", "0", "image", "a:b"), "n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.call("POST", c.path, c.body, "Content-Type", c.kind, "X-Gateway-Provider", "@mock")
			if got.status != 400 || member(got.json(t), "error/param") != c.param {
				t.Errorf("%d %s, want 400 naming %s", got.status, got.body, c.param)
			}
		})
	}
	for path, bodies := range map[string]map[string]string{
		"/moderations":        {`{}`: "input", `{"input":1}`: "input", `{"input":[]}`: "input", `{"input":"x","model":""}`: "model"},
		"/images/generations": {`{}`: "prompt", `{"prompt":"x","n":0}`: "n", `{"prompt":"x","n":"2"}`: "n", `{"prompt":"x","response_format":5}`: "response_format", `{"prompt":"x","stream":1}`: "stream"},
		"/audio/speech": {`{"model":"tts-1","voice":"alloy"}`: "input", `{"model":"tts-1","input":"x"}`: "voice", `{"input":"x","voice":"a"}`: "model",
			`{"model":"t","voice":"a","input":""}`: "input", `{"model":"t","voice":"a","input":"x","speed":"fast"}`: "speed"},
		"/batches": {`{}`: "input_file_id", `{"input_file_id":"f","endpoint":"x","completion_window":"24h"}`: "endpoint", `{"input_file_id":"f","endpoint":"/v1/x"}`: "completion_window",
			`{"input_file_id":"f","endpoint":"/v1/x","completion_window":"24h","metadata":{"` + strings.Repeat("k", 65) + `":"v"}}`:  "metadata",
			`{"input_file_id":"f","endpoint":"/v1/x","completion_window":"24h","metadata":{"k":"` + strings.Repeat("v", 513) + `"}}`: "metadata.k",
			`{"input_file_id":"f","endpoint":"/v1/x","completion_window":"24h","metadata":` + pairs(17) + `}`:                        "metadata"},
		"/fine_tuning/jobs": {`{"model":"m"}`: "training_file", `{"model":"m","training_file":"f","hyperparameters":7}`: "hyperparameters", `{"training_file":"f"}`: "model"},
		"/rerank":           {`{"model":"m","query":"q"}`: "documents", `{"model":"m","query":"q","documents":[]}`: "documents", `{"model":"m","query":"q","documents":["d"],"top_n":0}`: "top_n"},
		"/ocr":              {`{"model":"m"}`: "document", `{"model":"m","document":{}}`: "document.type"},
	} {
		for body, param := range bodies {
			got := r.call("POST", path, body, onMock...)
			if got.status != 400 || member(got.json(t), "error/param") != param {
				t.Errorf("%s %.80s: %d %s, want 400 naming %s", path, body, got.status, got.body, param)
			}
		}
	}
	if n := len(r.mock.Requests(100)); n != 0 {
		t.Errorf("%d refused requests reached the provider", n)
	}
}

func pairs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `%c"k%d":"v"`, "{,"[min(i, 1)], i)
	}
	return b.String() + "}"
}

// TestALongUploadIsNotHeldInMemory: what is uploaded continues as it comes.
// In a row: it measures the heap of this process.
//
//lane:standard
func TestALongUploadIsNotHeldInMemory(t *testing.T) {
	const size = 64 << 20
	var got atomic.Int64
	sum := sha256.New()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(sum, req.Body)
		got.Store(n)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"file-1","object":"file"}`))
	}))
	defer provider.Close()
	r := start(t)
	head := "--the-boundary\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--the-boundary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n"
	tail := "\r\n--the-boundary--\r\n"
	for _, announced := range []bool{true, false} {
		sum.Reset()
		var most atomic.Uint64
		body := io.MultiReader(strings.NewReader(head), &generated{left: size, peak: &most}, strings.NewReader(tail))
		req, err := http.NewRequest("POST", r.base+"/files", body)
		if err != nil {
			t.Fatal(err)
		}
		if announced {
			req.ContentLength = size + int64(len(head)+len(tail))
		}
		for i := 0; i+1 < len(formType); i += 2 {
			req.Header.Set(formType[i], formType[i+1])
		}
		for name, v := range map[string]string{"X-Gateway-Api-Key": workspaceKey, "X-Gateway-Provider": "openai", "Authorization": "Bearer mock-own", "X-Gateway-Custom-Host": provider.URL} {
			req.Header.Set(name, v)
		}
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || got.Load() != size+int64(len(head)+len(tail)) {
			t.Fatalf("announced %v: %d %s, %d bytes arrived", announced, resp.StatusCode, answer, got.Load())
		}
		want := sha256.New()
		_, _ = io.Copy(want, io.MultiReader(strings.NewReader(head), &generated{left: size}, strings.NewReader(tail)))
		if !bytes.Equal(want.Sum(nil), sum.Sum(nil)) {
			t.Error("other bytes arrived")
		}
		if grown := int64(most.Load()) - int64(before.HeapAlloc); grown > 40<<20 {
			t.Errorf("announced %v: the heap grew by %d MiB", announced, grown>>20)
		}
	}
}

// generated is a body that is made as it is read; it looks at the heap now and
// then.
type generated struct {
	left, read int64
	peak       *atomic.Uint64
}

func (g *generated) Read(p []byte) (int, error) {
	if g.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), g.left))
	for i := range p[:n] {
		p[i] = byte(g.read+int64(i)) | 1
	}
	if g.peak != nil && g.read>>22 != (g.read+int64(n))>>22 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		g.peak.Store(max(g.peak.Load(), m.HeapAlloc))
	}
	g.left, g.read = g.left-int64(n), g.read+int64(n)
	return n, nil
}

// TestACutUploadNeverLooksWhole: the provider must not keep half a file.
//
//lane:standard
func TestACutUploadNeverLooksWhole(t *testing.T) {
	t.Parallel()
	var whole atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := io.Copy(io.Discard, req.Body); err == nil {
			whole.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"file-1","object":"file"}`))
	}))
	defer provider.Close()
	r := start(t)
	long := form("purpose", "batch", "file", "a.jsonl:"+strings.Repeat("row\n", 3<<20))
	cut := long[:len(long)-100]
	for _, chunked := range []bool{false, true} {
		req, err := http.NewRequest("POST", r.base+"/files", struct{ io.Reader }{strings.NewReader(cut)})
		if err != nil {
			t.Fatal(err)
		}
		if !chunked {
			req.ContentLength = int64(len(cut))
		}
		for name, v := range map[string]string{formType[0]: formType[1], "X-Gateway-Api-Key": workspaceKey, "X-Gateway-Provider": "openai", "Authorization": "Bearer mock-own", "X-Gateway-Custom-Host": provider.URL} {
			req.Header.Set(name, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 400 || !strings.Contains(string(answer), `"param":"body"`) {
			t.Errorf("chunked %v: %d %s", chunked, resp.StatusCode, answer)
		}
	}
	if whole.Load() != 0 {
		t.Error("the provider took a cut body for whole")
	}
}

//lane:standard
func TestSpeechIsPassedOnByteForByte(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/audio/speech", `{"model":"@mock/tts-1","input":"Hello you","voice":"alloy"}`)
	if got.status != 200 || got.header.Get("Content-Type") != "audio/mpeg" || len(got.body) != 36 || got.body[1] != 7 || got.body[35] != byte(35*7) {
		t.Errorf("%d %v %d bytes", got.status, got.header, len(got.body))
	}
	sse := r.call("POST", "/audio/speech", `{"model":"@mock/gpt-4o-mini-tts","input":"Hello you","voice":"alloy","stream_format":"sse"}`)
	if all := events(sse.body); sse.status != 200 || len(all) != 3 || !strings.Contains(all[2], "speech.audio.done") || !strings.HasPrefix(sse.header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("%d %v %s", sse.status, sse.header, sse.body)
	}
	text := r.call("POST", "/audio/transcriptions", form("model", "@mock/whisper-1", "response_format", "text", "file", "a.mp3:sound"), formType...)
	if text.status != 200 || text.body != "The sound has 5 bytes.\n" || !strings.HasPrefix(text.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v %q", text.status, text.header, text.body)
	}
	stream := r.call("POST", "/audio/transcriptions", form("model", "@mock/whisper-1", "stream", "true", "file", "a.mp3:sound"), formType...)
	if !strings.Contains(stream.body, "transcript.text.done") {
		t.Errorf("%s", stream.body)
	}
	by := map[string]usage.Record{}
	for _, rec := range r.records(4) {
		by[fmt.Sprint(rec.Model, len(by))] = rec
		switch rec.Model {
		case "tts-1":
			if rec.Usage.N(pricing.Characters) != 9 || rec.Usage.Estimated || rec.Cost != 135_000 {
				t.Errorf("%+v %d", rec.Usage, rec.Cost)
			}
		case "gpt-4o-mini-tts":
			if rec.Usage.N(pricing.AudioOut) != 9 || rec.Usage.N(pricing.Input) != 3 || rec.Usage.Estimated {
				t.Errorf("%+v", rec.Usage)
			}
		case "whisper-1":
			if rec.Usage.N(pricing.Seconds) != 1 || rec.Cost != 100_000 {
				t.Errorf("%+v %d", rec.Usage, rec.Cost)
			}
		}
	}
	broken := r.call("POST", "/audio/speech", `{"model":"@mock/tts-1","input":"mock: status=429","voice":"alloy"}`)
	if broken.status != 429 || member(broken.json(t), "error/type") == nil {
		t.Errorf("%d %s", broken.status, broken.body)
	}
}

func TestABatchFromItsRowsToItsOutput(t *testing.T) {
	t.Parallel()
	r := start(t)
	id := aBatch(r)
	early := r.call("GET", "/batches/"+id+"/output", "", onMock...)
	if early.status != 404 || !strings.Contains(early.body, "no output") {
		t.Errorf("%d %s", early.status, early.body)
	}
	var batch map[string]any
	for range 4 {
		batch = r.call("GET", "/batches/"+id, "", onMock...).json(t)
	}
	if batch["status"] != "completed" || batch["object"] != "batch" || batch["created_at"].(float64) > 1e11 {
		t.Fatalf("%v", batch)
	}
	out := r.call("GET", "/batches/"+id+"/output", "", onMock...)
	lines := strings.Split(strings.TrimSpace(out.body), "\n")
	if out.status != 200 || len(lines) != 2 {
		t.Fatalf("%d %s", out.status, out.body)
	}
	for i, want := range []string{"one", "two"} {
		var row struct {
			CustomID string `json:"custom_id"`
			Response struct {
				Status int `json:"status_code"`
			}
		}
		if err := json.Unmarshal([]byte(lines[i]), &row); err != nil || row.CustomID != want || row.Response.Status != 200 {
			t.Errorf("%s: %v", lines[i], err)
		}
	}
	// What the rows cost is recorded once, with the request that saw the end first.
	paid := 0
	for _, rec := range r.records(8) {
		if rec.Usage.TotalTokens() == 0 {
			continue
		}
		paid++
		if total := r.mock.Bill().Total; int64(rec.Cost) != total.NanoDollars || rec.Usage.N(pricing.Input) != total.Input || rec.Usage.N(pricing.Output) != total.Output || rec.Cost == 0 {
			t.Errorf("our books %+v %d, the bill %+v", rec.Usage, rec.Cost, total)
		}
	}
	if paid != 1 {
		t.Errorf("the batch was booked %d times", paid)
	}
	stopped := aBatch(r)
	if got := r.call("POST", "/batches/"+stopped+"/cancel", "", onMock...); got.status != 200 || got.json(t)["status"] != "cancelling" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if _, _, body, header := r.last(); body != "" || header.Get("Content-Type") != "" {
		t.Errorf("cancel was sent with a body: %q %v", body, header)
	}
}

func TestAssistantsArePassedThrough(t *testing.T) {
	t.Parallel()
	r := start(t)
	beta := append([]string{"X-Gateway-Openai-Beta", "assistants=v2"}, onMock...)
	assistant := r.id("POST", "/assistants", `{"model":"gpt-4o-mini","name":"one"}`, beta...)
	thread := r.id("POST", "/threads", "", beta...)
	if _, _, body, _ := r.last(); body != "" {
		t.Errorf("an empty body became %q", body)
	}
	r.id("POST", "/threads/"+thread+"/messages", `{"role":"user","content":"Hello"}`, beta...)
	run := r.call("POST", "/threads/"+thread+"/runs", fmt.Sprintf(`{"assistant_id":%q,"stream":true}`, assistant), beta...)
	if all := events(run.body); run.status != 200 || all[len(all)-1] != "[DONE]" {
		t.Errorf("%d %s", run.status, run.body)
	}
	made := r.id("POST", "/threads/"+thread+"/runs", fmt.Sprintf(`{"assistant_id":%q}`, assistant), beta...)
	if got := r.call("POST", "/threads/"+thread+"/runs/"+made+"/cancel", "", beta...); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.call("GET", "/assistants", "", onMock...); got.status != 400 || !strings.Contains(got.body, "OpenAI-Beta") {
		t.Errorf("without the header: %d %s", got.status, got.body)
	}
	for _, rec := range r.records(7) {
		if rec.Endpoint != "proxy" {
			t.Errorf("%s: request type %s", rec.Path, rec.Endpoint)
		}
		if strings.HasSuffix(rec.Path, "/runs") && rec.Stream && (rec.Usage.N(pricing.Input) != 12 || rec.Usage.N(pricing.Output) != 5) {
			t.Errorf("the run was metered as %+v", rec.Usage)
		}
	}
}

func TestAModelOfASavedProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	for path, headers := range map[string][]string{"/models/gpt-4o-mini": onMock, "/models/%40mock%2Fgpt-4o-mini": nil} {
		if got := r.call("GET", path, "", headers...); got.status != 200 || got.json(t)["id"] != "gpt-4o-mini" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.call("GET", "/models/no-such-model", "", onMock...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.call("GET", "/models/gpt-4o-mini", ""); got.status != 400 {
		t.Errorf("without a provider: %d %s", got.status, got.body)
	}
}

// A form that is held can be sent again; one that was streamed cannot.
func TestFormsAreRetriedWhenTheyAreHeld(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := []string{"X-Gateway-Config", `{"provider":"@mock","retry":{"attempts":2,"on_status_codes":[503]}}`}
	for _, c := range []struct {
		sound  string
		status int
		calls  int64
	}{{"sound", 200, 2}, {strings.Repeat("sound", 2_000_000), 503, 1}} {
		r.mock.Reset()
		body := form("model", "whisper-1", "prompt", "mock: status=503 times=1", "file", "a.mp3:"+c.sound)
		got := r.call("POST", "/audio/transcriptions", body, append(config, formType...)...)
		if n := r.mock.Bill().Total.Requests; got.status != c.status || n != c.calls {
			t.Errorf("%d bytes: %d after %d calls, want %d after %d: %s", len(body), got.status, n, c.status, c.calls, got.body)
		}
	}
	// Another target gets the model that its config names.
	config[1] = `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","override_params":{"model":"mock-missing"}},{"provider":"@mock"}]}`
	got := r.call("POST", "/audio/transcriptions", form("file", "a.mp3:sound", "model", "whisper-1"), append(config, formType...)...)
	if got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What a budget cannot price is not started; what costs nothing continues.
func TestBudgetsAndStoredObjectsOfProviders(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	mine := append([]string{"X-Gateway-Api-Key", key}, onMock...)
	file := r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+batchRows), append(mine, formType...)...)
	unpriced := r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+rowsFor("nobody-knows-this-model")), append(mine, formType...)...)
	got := r.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, unpriced), mine...)
	if got.status != 412 || !strings.Contains(got.body, "unpriced_model") {
		t.Errorf("a batch of a model without a price: %d %s", got.status, got.body)
	}
	for _, path := range []string{"/files", "/files/" + file, "/batches"} {
		if got := r.call("GET", path, "", mine...); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	before := r.mock.Bill().Total.NanoDollars
	r.call("POST", "/images/generations", `{"model":"dall-e-3","prompt":"A fox"}`, mine...)
	r.call("POST", "/audio/speech", `{"model":"tts-1","input":"Hello","voice":"alloy"}`, mine...)
	eventually(t, func() error { return usageIs(r, key, r.mock.Bill().Total.NanoDollars-before) })
}
