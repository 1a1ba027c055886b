package mockprovider

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
)

var cohereEmbedRules = parseRules(`model texts:a images:a inputs:a input_type!=search_document|search_query|classification|clustering|image embedding_types:a
	output_dimension:256..1536i max_tokens truncate priority`)

// cohereEmbed serves POST /v2/embed.
func cohereEmbed(x *exchange) *apiError {
	v, e := cohereBody(x, cohereEmbedRules)
	if e != nil {
		return e
	}
	given, texts := 0, ""
	var list []string
	for _, name := range []string{"texts", "images", "inputs"} {
		m := v.get(name)
		if !m.given() {
			continue
		}
		given++
		for _, item := range m.arr {
			s := item.s
			if name == "inputs" {
				s = plainText(item.get("content"))
			} else if item.kind != text || name == "images" && !strings.HasPrefix(s, "data:image/") {
				return cohereBad("%s must be a list of strings; images are data URIs.", name)
			}
			list = append(list, s)
			texts += s
		}
	}
	if given != 1 || len(list) == 0 || len(list) > 96 {
		return cohereBad("exactly one of texts, images and inputs must hold 1 to 96 elements.")
	}
	size := 1024
	if n, ok := v.get("output_dimension").integer(); ok {
		if !slices.Contains([]int64{256, 512, 1024, 1536}, n) {
			return cohereBad("output_dimension must be one of 256, 512, 1024, 1536.")
		}
		size = int(n)
	}
	for _, t := range v.get("embedding_types").arr {
		if t.s != "float" && t.s != "base64" {
			return cohereBad("this server gives float and base64 only.")
		}
	}
	if e := steerBy(&x.st, list[len(list)-1]); e != nil {
		return e
	}
	vectors, _ := vectors(list, size, "$v", false)
	tokens := tokensOf(texts)
	return embedded(x, fill(`{"id":"mock","embeddings":{"float":[$]},"response_type":"embeddings_by_type","meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":$}}}`, vectors, tokens), tokens)
}

// unitPrice is the price of a search unit, in nano-dollars. A unit is a query with up to
// 100 documents.
const unitPrice, unitDocuments = 2_000_000, 100

var cohereRerankRules = parseRules("model query!!:s documents!!:a top_n max_tokens_per_doc priority")

// cohereRerank serves POST /v2/rerank: documents that contain more words of the query come
// first.
func cohereRerank(x *exchange) *apiError {
	v, e := cohereBody(x, cohereRerankRules)
	if e != nil {
		return e
	}
	documents, e := rankable(v)
	if e != nil {
		return cohereBad("%s", e.message)
	}
	results, e := ranked(x, v, "top_n", documents)
	if e != nil {
		return e
	}
	if done, e := opened(x, seedOf(v.get("query").s)); done || e != nil {
		return e
	}
	units := int64(len(documents)+unitDocuments-1) / unitDocuments
	x.row.closeAt(200, units*unitPrice)
	x.plain("mock", fmt.Appendf(nil, `{"id":"mock-rerank","results":[%s],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":%d}}}`, strings.Join(results, ","), units), Usage{})
	return nil
}

// opened opens the row of a plain response and applies the faults that come before it.
func opened(x *exchange, seed uint32) (done bool, e *apiError) {
	_, done, e = x.begin("", seed, false)
	return done, e
}

// rankable reads the query and the documents.
func rankable(v value) ([]string, *apiError) {
	if q := v.get("query"); q.kind != text || q.s == "" {
		return nil, badRequest("query", "", "query must be a non-empty string")
	}
	list := v.get("documents")
	if list.kind != array || len(list.arr) == 0 {
		return nil, badRequest("documents", "", "documents must be a non-empty list")
	}
	var out []string
	for _, d := range list.arr {
		if d.kind != text {
			return nil, badRequest("documents", "", "documents must be strings")
		}
		out = append(out, d.s)
	}
	return out, nil
}

// ranked returns the first top results, best first.
func ranked(x *exchange, v value, top string, documents []string) ([]string, *apiError) {
	if e := steerBy(&x.st, v.get("query").s); e != nil {
		return nil, e
	}
	query := strings.Fields(strings.ToLower(withoutDirectives(v.get("query").s)))
	score := make([]int, len(documents))
	order := make([]int, len(documents))
	for i, d := range documents {
		order[i] = i
		for _, w := range query {
			score[i] += strings.Count(strings.ToLower(d), w)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return score[order[a]] > score[order[b]] })
	if n, ok := v.get(top).integer(); ok && n < int64(len(order)) {
		if n < 1 {
			return nil, badRequest(top, "", top+" must be at least 1")
		}
		order = order[:n]
	}
	var out []string
	for _, i := range order {
		out = append(out, fmt.Sprintf(`{"index":%d,"relevance_score":%g}`, i, float64(score[i]+1)/float64(score[i]+2)))
	}
	return out, nil
}

// cohereShape serves Cohere: /v2/chat, /v2/embed and /v2/rerank.
var cohereShape = &shape{name: "cohere", match: cohereMatch, authenticate: cohereAuthenticate, reject: cohereReject}

var cohereHandlers = map[string]func(*exchange) *apiError{
	"/v2/chat":   cohereChat,
	"/v2/embed":  cohereEmbed,
	"/v2/rerank": cohereRerank,
}

func cohereMatch(x *exchange) func(*exchange) *apiError {
	handle := cohereHandlers[x.path]
	if handle == nil {
		return nil
	}
	return func(x *exchange) *apiError {
		if x.r.Method != http.MethodPost {
			return &apiError{status: http.StatusMethodNotAllowed, message: "method not allowed"}
		}
		return handle(x)
	}
}

func cohereAuthenticate(x *exchange) *apiError {
	key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	switch {
	case key == "":
		return &apiError{status: http.StatusUnauthorized, message: "no api key supplied"}
	case key == "mock-limited":
		return &apiError{status: http.StatusTooManyRequests, message: "You are using a Trial key, which is limited to 10 API calls / minute.", retryAfter: "1"}
	case !strings.HasPrefix(key, "mock-"):
		return &apiError{status: http.StatusUnauthorized, message: "invalid api token"}
	}
	return nil
}

// cohereReject responds with {id, message}.
func cohereReject(x *exchange, e *apiError) {
	id := x.newID("", uint32(e.status))
	x.sendError(e, id, fill(`{"id":$,"message":$}`, id, e.message))
}

func cohereBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: "invalid request: " + fmt.Sprintf(format, args...)}
}

// cohereBody reads a body by its rules, and its model.
func cohereBody(x *exchange, r *rules) (value, *apiError) {
	v, e := parseBody(x)
	if e != nil {
		return v, cohereBad("%s", e.message)
	}
	if bad := r.check(v, ""); bad != nil && bad.what == "unknown" {
		return v, &apiError{status: http.StatusUnprocessableEntity, message: "invalid request: json: unknown field " + quoted(bad.at)}
	} else if bad != nil {
		return v, cohereBad("%s", wireError(bad).message)
	}
	m := v.get("model")
	if m.kind != text || m.s == "" {
		return v, cohereBad("model is required")
	}
	name, err := splitModel(m.s, &x.st)
	if err != nil {
		return v, cohereBad("%s", err)
	}
	if x.model = name; strings.Contains(name, "does-not-exist") {
		return v, &apiError{status: http.StatusNotFound, message: "model '" + name + "' not found, make sure the correct model ID was used and that you have access to the model."}
	}
	return v, nil
}
