package mockprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// wiresShape serves providers with their own wire formats, each below a path with its name:
// /jina, /voyage, /nomic, /mistral, /azure, /ai21, /reka, /palm, /triton, /workers, /bytez
// and /oci, followed by the provider's own paths.
var wiresShape = &shape{name: "wires", match: wiresMatch, refuse: wiresRefuse}

// wires are the handlers, by the beginning and the end of their paths.
var wires = []struct {
	head, tail string
	handle     func(*exchange) *apiError
}{
	{"/jina/", "/embeddings", jinaEmbed}, {"/jina/", "/rerank", jinaRerank},
	{"/voyage/", "/embeddings", voyageEmbed}, {"/voyage/", "/rerank", voyageRerank},
	{"/nomic/", "/embedding/text", nomicEmbed},
	{"/mistral/", "/ocr", mistralOCR}, {"/azure/", "/ocr", azureOCR},
	{"/ai21/", "/complete", ai21Complete}, {"/ai21/", "/embed", ai21Embed},
	{"/reka/", "/chat", rekaChat}, {"/palm/", ":generateMessage", palmChat},
	{"/palm/", ":generateText", palmText}, {"/palm/", ":embedText", palmEmbed},
	{"/triton/", "/generate", tritonGenerate}, {"/triton/", "/generate_stream", tritonStream},
	{"/workers/", "", workersRun}, {"/bytez/", "", bytezChat},
	{"/oci/", "/20231130/actions/chat", ociChat},
}

func wiresMatch(x *exchange) func(*exchange) *apiError {
	for _, w := range wires {
		if strings.HasPrefix(x.path, w.head) && strings.HasSuffix(x.path, w.tail) {
			return func(x *exchange) *apiError {
				if x.r.Method != http.MethodPost {
					return &apiError{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"}
				}
				if e := wiresKey(x); e != nil {
					return e
				}
				return w.handle(x)
			}
		}
	}
	return nil
}

// wiresKey looks for the key where the provider does.
func wiresKey(x *exchange) *apiError {
	auth := x.r.Header.Get("Authorization")
	var ok bool
	switch {
	case strings.HasPrefix(x.path, "/reka/"):
		ok = strings.HasPrefix(x.r.Header.Get("X-Api-Key"), "mock-")
	case strings.HasPrefix(x.path, "/palm/"):
		ok = strings.Contains(x.query, "key=mock-")
	case strings.HasPrefix(x.path, "/bytez/"):
		ok = strings.HasPrefix(auth, "Key mock-")
	case strings.HasPrefix(x.path, "/oci/"):
		ok = strings.HasPrefix(auth, "Signature ")
	default:
		ok = strings.HasPrefix(auth, "Bearer mock-")
	}
	if !ok {
		return &apiError{status: http.StatusUnauthorized, message: "Invalid authentication"}
	}
	return nil
}

// wiresRefuse answers with an error in the provider's shape.
func wiresRefuse(x *exchange, e *apiError) {
	var body any = map[string]any{"detail": e.message}
	switch head := "/" + strings.SplitN(x.path+"/", "/", 3)[1] + "/"; head {
	case "/nomic/":
		body = map[string]any{"detail": []any{map[string]any{"loc": []any{"body"}, "msg": e.message, "type": "value_error"}}}
	case "/mistral/", "/azure/":
		body = map[string]any{"object": "error", "message": e.message, "type": "invalid_request_error", "code": "1500"}
	case "/palm/":
		body = map[string]any{"error": map[string]any{"code": e.status, "message": e.message, "status": "INVALID_ARGUMENT"}}
	case "/triton/", "/bytez/":
		body = map[string]any{"error": e.message}
	case "/workers/":
		body = map[string]any{"success": false, "result": nil, "messages": []any{}, "errors": []any{map[string]any{"code": 5006, "message": e.message}}}
	case "/oci/":
		body = map[string]any{"code": "InvalidParameter", "message": e.message}
	}
	if !x.hasRow {
		x.row = x.s.bill.begin(x.path, x.model, "", false)
	}
	x.row.close(e.status, Usage{}, x.gone(), "")
	x.w.Header().Set("Content-Type", "application/json")
	if e.retryAfter != "" {
		x.w.Header().Set("Retry-After", e.retryAfter)
	}
	x.w.WriteHeader(e.status)
	_ = json.NewEncoder(x.w).Encode(body)
}

func wireBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// strictBody reads a body that has no members other than names; a name that ends in "!" is
// required.
func strictBody(x *exchange, names string) (value, *apiError) {
	v, err := parseJSON(string(x.body))
	if err != nil || v.kind != object {
		return v, wireBad("the body is not a JSON object")
	}
	allowed := strings.Fields(names)
	for i, name := range allowed {
		var needed bool
		if allowed[i], needed = strings.CutSuffix(name, "!"); needed && !v.get(allowed[i]).given() {
			return v, wireBad("%s: field required", allowed[i])
		}
	}
	for _, m := range v.obj {
		if !slices.Contains(allowed, m.name) {
			return v, &apiError{status: http.StatusUnprocessableEntity, message: m.name + ": extra fields not permitted"}
		}
	}
	if m := v.get("model"); m.kind == text {
		x.model = m.s
	}
	return v, nil
}

// says responds to a conversation; last is its last message, all its complete text.
func says(x *exchange, last, all string, maxTokens value) (answer, Usage, bool, *apiError) {
	if e := steerBy(&x.st, last); e != nil {
		return answer{}, Usage{}, true, e
	}
	j := job{model: x.model, st: &x.st, seed: seedOf(all), prompt: tokensOf(all), lastUser: last}
	j.maxTokens, _ = maxTokens.integer()
	if done, e := opened(x, j.seed); done || e != nil {
		return answer{}, Usage{}, true, e
	}
	a := j.answer(0)
	out, _ := a.generated()
	return a, Usage{Input: j.prompt, Output: out}, false, nil
}

// strings returns a list of strings.
func (v value) strings(name string) ([]string, *apiError) {
	list := v.get(name)
	if list.kind != array || len(list.arr) == 0 {
		return nil, wireBad("%s must be a non-empty list", name)
	}
	var out []string
	for _, s := range list.arr {
		if s.kind != text {
			return nil, wireBad("%s must hold strings", name)
		}
		out = append(out, s.s)
	}
	return out, nil
}

// palmModel is the model in the path, before the method.
func palmModel(x *exchange) {
	name := x.path[strings.LastIndexByte(x.path, '/')+1:]
	x.model, _, _ = strings.Cut(name, ":")
}

// palmText serves :generateText. It does not report usage.
func palmText(x *exchange) *apiError {
	v, e := strictBody(x, "prompt! safetySettings stopSequences temperature candidateCount maxOutputTokens topP topK")
	if e != nil {
		return e
	}
	palmModel(x)
	prompt := v.get("prompt").get("text")
	if prompt.kind != text || prompt.s == "" || len(v.get("prompt").obj) != 1 {
		return wireBad("prompt.text must be a non-empty string")
	}
	for _, b := range []struct {
		name      string
		low, high float64
	}{{"temperature", 0, 1}, {"candidateCount", 1, 8}, {"topP", 0, 1}, {"maxOutputTokens", 1, 1 << 20}} {
		if within(v, b.name, b.low, b.high) != nil {
			return wireBad("%s is out of its range", b.name)
		}
	}
	if len(v.get("stopSequences").arr) > 5 {
		return wireBad("stopSequences must have at most 5 elements")
	}
	a, u, done, e := says(x, prompt.s, prompt.s, v.get("maxOutputTokens"))
	if done {
		return e
	}
	if x.st.refuse {
		x.plain("mock", []byte(`{"filters":[{"reason":"SAFETY"}],"safetyFeedback":[]}`), u)
		return nil
	}
	n, _ := count(v, "candidateCount", 8)
	x.plain("mock", []byte(`{"candidates":`+repeated(`{"output":`+spoken(&a)+`,"safetyRatings":[{"category":"HARM_CATEGORY_TOXICITY","probability":"NEGLIGIBLE"}]}`, n)+`}`), u)
	return nil
}

// palmEmbed serves :embedText: one text, one vector.
func palmEmbed(x *exchange) *apiError {
	v, e := strictBody(x, "text! model")
	if e != nil {
		return e
	}
	palmModel(x)
	words := v.get("text")
	if words.kind != text || words.s == "" {
		return wireBad("text must be a non-empty string")
	}
	if e := steered(x, []string{words.s}); e != nil {
		return e
	}
	list, tokens := vectors([]string{words.s}, 8, `{"value":$v}`, false)
	return embedded(x, []byte(`{"embedding":`+string(list)+`}`), tokens)
}
