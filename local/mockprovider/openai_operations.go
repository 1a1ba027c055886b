package mockprovider

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// operation is a route of OpenAI. {name} matches one segment, or its beginning.
type operation struct {
	method, path string
	handle       func(x *exchange) *apiError
}

// operations are the routes of OpenAI and Anthropic.
var operations = sync.OnceValue(func() []operation {
	return append([]operation{
		{"POST", "/chat/completions", chatCompletion},
		{"POST", "/completions", completion},
		{"POST", "/embeddings", embeddings},
		{"POST", "/responses", response},
		{"POST", "/messages", message},
		{"POST", "/messages/count_tokens", countTokens},
		{"POST", "/moderations", moderation},
		{"POST", "/images/generations", imageMade},
		{"POST", "/images/edits", imageEdited},
		{"POST", "/images/variations", imageVaried},
		{"POST", "/audio/speech", speech},
		{"POST", "/audio/transcriptions", transcription},
		{"POST", "/audio/translations", transcription},
		{"POST", "/rerank", rerank},
		{"POST", "/ocr", ocr},
		{"GET", "/realtime", realtime},
		{"GET", "/live/sessions", liveSession},
		{"POST", "/responses/input_tokens", inputTokens},
		{"POST", "/responses/compact", usedByRequest("resp_", `{"id":$,"object":"response.compaction","created_at":$,"model":$,"output":[{"id":"cmp_1","type":"compaction","encrypted_content":"c2hvcnQ="}],"usage":$}`)},
		{"POST", "/decisions", usedByRequest("dec_", `{"id":$,"object":"decision","created_at":$,"model":$,"decision":"yes","usage":$}`)},
		{"POST", "/responses/{id}/cancel", cancelResponse},
		{"GET", "/responses/{id}/input_items", responseInput},
		{"GET", "/chat/completions/{id}/messages", storedMessages},
		{"POST", "/threads/runs", createRun},
		{"POST", "/threads/{id}/runs/{run}/submit_tool_outputs", submitOutputs},
		{"POST", "/vector_stores/{id}/search", searchVectors},
		{"GET", "/vector_stores/{id}/files/{file}/content", vectorFileContent},
		{"GET", "/vector_stores/{id}/file_batches/{batch}/files", listBatchFiles},
		{"GET", "/files/{id}/content", fileContent},
		{"POST", "/uploads/{id}/parts", uploadPart},
		{"POST", "/uploads/{id}/complete", completeUpload},
		{"GET", "/containers/{id}/files/{file}/content", containerFileContent},
		{"POST", "/fine_tuning/jobs/{id}/pause", pauseJob},
		{"POST", "/fine_tuning/jobs/{id}/resume", pauseJob},
	}, routesOf("openai")...)
})

// routed finds the operation of a list that serves the request; known reports whether the
// path exists with any method.
func routed(x *exchange, list []operation, path string) (handle func(*exchange) *apiError, known bool) {
	for _, o := range list {
		vars, ok := matchPath(o.path, path)
		if !ok {
			continue
		}
		known = true
		if o.method == x.r.Method {
			return func(x *exchange) *apiError {
				x.vars = vars
				return o.handle(x)
			}, true
		}
	}
	return nil, known
}

// matchPath returns the variables of a path in their order.
func matchPath(pattern, path string) (vars []string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, w := range want {
		if !strings.HasPrefix(w, "{") {
			if w != got[i] {
				return nil, false
			}
			continue
		}
		_, tail, _ := strings.Cut(w, "}")
		name, ok := strings.CutSuffix(got[i], tail)
		if name, err := url.PathUnescape(name); !ok || name == "" || err != nil || tail == "" && strings.Contains(name, ":") && !strings.HasPrefix(name, "arn:") {
			return nil, false
		}
		if name, err := url.PathUnescape(name); err == nil {
			vars = append(vars, name)
		}
	}
	return vars, true
}

// begin opens the row of an operation and applies the faults that were ordered for it.
func begin(x *exchange, prefix, seed string) (id string, done bool, e *apiError) {
	return x.begin(prefix, seedOf(seed), false)
}

// begin opens the row of a request and applies the faults that precede its response; done
// reports whether it has responded, or e is to be sent.
func (x *exchange) begin(prefix string, seed uint32, stream bool) (id string, done bool, e *apiError) {
	if e := x.settle(seed); e != nil {
		return "", true, e
	}
	id = x.newID(prefix, seed)
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, id, stream), true
	done, e = x.misbehave()
	return id, done, e
}

// uploaded is a multipart body: its fields, its files by name, and the names of the files.
type uploaded struct {
	fields map[string]string
	files  map[string][]byte
	name   string
	parts  int
}

// parseForm reads a multipart body. A field that occurs twice is refused.
func parseForm(x *exchange, files ...string) (*uploaded, *apiError) {
	kind, params, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, badRequest("", "", "Invalid content type. Expected multipart/form-data with a boundary.")
	}
	u := &uploaded{fields: map[string]string{}, files: map[string][]byte{}}
	r := multipart.NewReader(bytes.NewReader(x.body), params["boundary"])
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, badRequest("", "", "Could not parse multipart form: "+err.Error())
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, badRequest("", "", "Could not parse multipart form: "+err.Error())
		}
		name := strings.TrimSuffix(part.FormName(), "[]")
		u.parts++
		if part.FileName() != "" {
			u.files[name], u.name = content, part.FileName()
			continue
		}
		if _, twice := u.fields[name]; twice {
			return nil, badRequest(name, "", "Field '"+name+"' stands twice.")
		}
		u.fields[name] = string(content)
	}
	for _, f := range files {
		if u.files[f] == nil {
			return nil, badRequest(f, "missing_required_parameter", "'"+f+"' is a required property")
		}
	}
	return u, nil
}

// takeFormModel reads the model of a form.
func takeFormModel(x *exchange, u *uploaded, standard string) *apiError {
	model := u.fields["model"]
	if model == "" {
		model = standard
	}
	return takeModel(x, value{kind: object, obj: []member{{"model", value{kind: text, s: model}}}})
}

func notFound(kind, id string) *apiError {
	return &apiError{status: http.StatusNotFound, param: "id", message: "No such " + kind + " object: " + id}
}
