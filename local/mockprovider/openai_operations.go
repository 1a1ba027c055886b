package mockprovider

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// operation is a route of OpenAI other than a conversation. {id}, {sub} and {leaf} match one
// segment each.
type operation struct {
	method, path string
	handle       func(x *exchange, id, sub string) *apiError
}

// operations are tried when no other route matches the path.
var operations []operation

func init() { // the handlers refer to the table for their links
	operations = slices.Concat(threadOperations(), vectorOperations(), uploadOperations(), keptOperations(), []operation{
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
		{"POST", "/files", upload},
		{"GET", "/files", fileList},
		{"GET", "/files/{id}", fileOne},
		{"DELETE", "/files/{id}", fileGone},
		{"GET", "/files/{id}/content", fileContent},
		{"GET", "/responses/{id}", responseOne},
		{"DELETE", "/responses/{id}", responseGone},
		{"GET", "/responses/{id}/input_items", responseInput},
		{"POST", "/batches", batchMade},
		{"GET", "/batches", batchList},
		{"GET", "/batches/{id}", batchOne},
		{"POST", "/batches/{id}/cancel", batchStopped},
		{"POST", "/fine_tuning/jobs", jobMade},
		{"GET", "/fine_tuning/jobs", jobList},
		{"GET", "/fine_tuning/jobs/{id}", jobOne},
		{"POST", "/fine_tuning/jobs/{id}/cancel", jobStopped},
		{"POST", "/fine_tuning/jobs/{id}/pause", jobPaused},
		{"POST", "/fine_tuning/jobs/{id}/resume", jobPaused},
		{"GET", "/fine_tuning/jobs/{id}/events", jobEvents},
		{"GET", "/fine_tuning/jobs/{id}/checkpoints", jobCheckpoints},
	})
}

// operationAt finds the handler of the request; known reports whether the path exists with any
// method.
func operationAt(x *exchange, path string) (handle func(*exchange) *apiError, known bool) {
	for _, o := range operations {
		id, sub, leaf, ok := matchPath(o.path, path)
		if !ok {
			continue
		}
		known = true
		if o.method == x.r.Method {
			return func(x *exchange) *apiError {
				x.leaf = leaf
				return o.handle(x, id, sub)
			}, true
		}
	}
	return nil, known
}

func matchPath(pattern, path string) (id, sub, leaf string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return "", "", "", false
	}
	for i := range want {
		switch {
		case want[i] == "{id}" && got[i] != "":
			id = got[i]
		case want[i] == "{sub}" && got[i] != "":
			sub = got[i]
		case want[i] == "{leaf}" && got[i] != "":
			leaf = got[i]
		case want[i] != got[i]:
			return "", "", "", false
		}
	}
	return id, sub, leaf, true
}

// begin opens the row of an operation and applies the faults that were ordered for it.
func begin(x *exchange, prefix, seed string) (id string, done bool, e *apiError) {
	if e := x.settle(seedOf(seed)); e != nil {
		return "", true, e
	}
	id = x.newID(prefix, seedOf(seed))
	x.row, x.hasRow = x.s.bill.begin(x.path, x.model, id, false), true
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

// appendInt writes a number between two texts.
func appendInt(b []byte, before string, n int64, after string) []byte {
	return append(strconv.AppendInt(append(b, before...), n, 10), after...)
}
