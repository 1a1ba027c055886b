package mockprovider

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// wire is an operation of a host with its own wire format, as a file of wires.txtar describes
// it. The name of the file is the path, in which * stands for the rest of it; it consists of
// directives, one a line, and the template of the response:
//
//	body RULES              the body; form CONTAINS: of models with such a name, the fields of a form
//	model FIELD             the model; else it is the field model, or the * of the path
//	check NAME              further checks
//	embed FIELD base64=FIELD   texts to embed; encoded if the other field is base64
//	rank FIELD              documents to rank, and the number of results
//	complete PROMPT MAX ALL the prompt, the limit of tokens, and what is counted
//	draw PROMPT COUNT       images
//	count FIELD             the number of items of other operations
//	bytes WHEN              an image is sent as bytes: if the model contains WHEN, if the client does
//	                        not accept "json", or if the request does not have -FIELD
//	refused STATUS MESSAGE  the error if the model refuses
//	item JSON               one of <items>; vectors have $i and $v
//	chunk JSON, last JSON   events of a stream, which the request or a path without template has
type wire struct {
	head, tail     string
	any            bool // the path has a *
	rules          *rules
	does, check    string
	args           []string
	form           *string
	encoded, count string
	model, bytes   string
	refused        *apiError
	item           string
	chunk, last    template
	object         template
}

//go:embed wires.txtar
var wiresFile string

var wires = sync.OnceValue(func() (all []*wire) {
	for f := range strings.SplitSeq(wiresFile, "\n-- ") {
		if path, data, ok := strings.Cut(f, " --\n"); ok {
			all = append(all, parseWire(path, data))
		}
	}
	return all
})

func parseWire(path, s string) *wire {
	w := &wire{model: "model"}
	w.head, w.tail, w.any = strings.Cut(path, "*")
	for line := range strings.Lines(s) {
		if strings.IndexByte("{<[", line[0]) >= 0 { // the template is the rest of the file
			w.object = parseTemplate(s[strings.Index("\n"+s, "\n"+line):])
			break
		}
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch key {
		case "body":
			w.rules = parseRules(rest)
		case "form":
			w.form = &rest
		case "model":
			w.model = rest
		case "check":
			w.check = rest
		case "embed", "rank", "complete", "draw":
			w.does, w.args = key, words
			if key == "embed" && len(words) > 1 {
				_, w.encoded, _ = strings.Cut(words[1], "=")
			}
			if key == "draw" && len(words) > 1 {
				w.count = words[1]
			}
		case "count":
			w.count = rest
		case "bytes":
			w.bytes = rest
		case "refused":
			status, _ := strconv.Atoi(words[0])
			w.refused = &apiError{status: status, message: strings.Join(words[1:], " ")}
		case "item":
			w.item = rest
		case "chunk":
			w.chunk = parseTemplate(rest)
		case "last":
			w.last = parseTemplate(rest)
		default:
			panic(path + ": unknown directive " + key)
		}
	}
	return w
}

// wireHost is where a host looks for the key, and its errors.
type wireHost struct {
	key   func(x *exchange) string
	error template
}

func bearer(x *exchange) string { return authorization(x, "Bearer ") }

func authorization(x *exchange, scheme string) string {
	key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), scheme)
	return key
}

var wireHosts = map[string]wireHost{}

func init() {
	api := func(x *exchange) string { return x.r.Header.Get("X-Api-Key") }
	detail := `{"detail":[{"loc":["body"],"msg":<message>,"type":"value_error"}]}`
	cloudflare := `{"success":false,"result":null,"messages":[],"errors":[{"code":5006,"message":<message>}]}`
	mistral := `{"object":"error","message":<message>,"type":"invalid_request_error","code":"1500"}`
	for name, h := range map[string]struct {
		key   func(x *exchange) string
		error string
	}{
		"jina": {bearer, `{"detail":<message>}`}, "voyage": {bearer, `{"detail":<message>}`}, "ai21": {bearer, `{"detail":<message>}`},
		"nomic": {bearer, detail}, "mistral": {bearer, mistral}, "azure": {bearer, mistral},
		"reka":   {api, `{"detail":<message>}`},
		"palm":   {func(x *exchange) string { _, key, _ := strings.Cut(x.query, "key="); return key }, `{"error":{"code":<status>,"message":<message>,"status":"INVALID_ARGUMENT"}}`},
		"triton": {bearer, `{"error":<message>}`}, "workers": {bearer, cloudflare},
		"bytez": {func(x *exchange) string { return authorization(x, "Key ") }, `{"error":<message>}`},
		"oci": {func(x *exchange) string {
			if strings.HasPrefix(x.r.Header.Get("Authorization"), "Signature ") {
				return "mock-"
			}
			return ""
		}, `{"code":"InvalidParameter","message":<message>}`},
		"images-of/workers":     {bearer, cloudflare},
		"images-of/siliconflow": {bearer, `<?status=401><message><:>{"code":20015,"message":<message>,"data":null}</>`},
		"images-of/hyperbolic":  {bearer, detail}, "images-of/fal": {func(x *exchange) string { return authorization(x, "Key ") }, detail},
		"images-of/segmind":   {api, `{"error":<message>}`},
		"images-of/fireworks": {bearer, `{"fault":{"faultstring":<message>,"detail":{"errorcode":"steps.request.Failed"}}}`},
		"images-of/stability": {bearer, `{"id":"4c31","name":<name>,<?one>"message":<message><:>"errors":[<message>]</>}`},
	} {
		wireHosts[name] = wireHost{h.key, parseTemplate(h.error)}
	}
}

// wireHostOf is the host that a path begins with, and its name.
func wireHostOf(path string) (wireHost, bool) {
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 3)
	if parts[0] == "images-of" && len(parts) > 1 {
		parts[0] += "/" + parts[1]
	}
	h, ok := wireHosts[parts[0]]
	return h, ok
}

// wiresShape serves the hosts of wires.txtar, each below its name, or below /images-of/ and its
// name.
var wiresShape = &shape{name: "wires", match: wiresMatch, authenticate: wiresKey, reject: wiresReject}

func wiresMatch(x *exchange) func(*exchange) *apiError {
	if _, ok := wireHostOf(x.path); !ok {
		return nil
	}
	handle := map[string]func(*exchange) *apiError{"mistral": mistralOCR, "azure": azureOCR, "oci": ociChat}[strings.SplitN(x.path, "/", 3)[1]]
	if handle != nil && !strings.HasSuffix(x.path, "/ocr") && !strings.HasSuffix(x.path, "/20231130/actions/chat") {
		return nil
	}
	for _, w := range wires() {
		fits := strings.HasPrefix(x.path, w.head) && strings.HasSuffix(x.path, w.tail) && (w.any || x.path == w.head)
		if fits && handle == nil {
			middle := x.path[len(w.head):max(len(w.head), len(x.path)-len(w.tail))]
			handle = func(x *exchange) *apiError { return w.serve(x, middle) }
		}
	}
	return func(x *exchange) *apiError {
		if x.r.Method != http.MethodPost {
			return &apiError{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"}
		}
		if handle == nil {
			return &apiError{status: http.StatusNotFound, message: "404 page not found"}
		}
		return handle(x)
	}
}

func wiresKey(x *exchange) *apiError {
	host, _ := wireHostOf(x.path)
	switch key := host.key(x); {
	case key == "mock-limited":
		return &apiError{status: http.StatusTooManyRequests, message: "Too many requests", retryAfter: "1"}
	case !strings.HasPrefix(key, "mock-"):
		return &apiError{status: http.StatusUnauthorized, message: "Invalid authentication"}
	}
	return nil
}

// wiresReject responds with an error in the provider's format.
func wiresReject(x *exchange, e *apiError) {
	host, _ := wireHostOf(x.path)
	names := map[int]string{401: "unauthorized", 403: "content_moderation", 429: "rate_limit_exceeded"}
	x.sendError(e, "", host.error.fill(nil, values(map[string]any{
		"message": e.message, "status": strconv.Itoa(e.status), "one": strings.Contains(x.path, "/v1/"), "name": firstOf(names[e.status], "bad_request"),
	})))
}

// values returns the values of a template by name.
func values(of map[string]any) func(string) json.RawMessage {
	return func(name string) json.RawMessage {
		v, ok := of[name]
		if !ok {
			panic("a template has the unknown name " + name)
		}
		return appendJSON(nil, v)
	}
}

func wireBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// wireError is the error for a violation.
func wireError(v *violation) *apiError {
	if v == nil {
		return nil
	}
	switch v.what {
	case "missing":
		return wireBad("%s: field required", v.at)
	case "unknown":
		return &apiError{status: http.StatusUnprocessableEntity, message: v.at + ": extra fields not permitted"}
	case "value":
		return wireBad("%s must be one of %s", v.at, strings.Join(v.rule.values, ", "))
	}
	if v.rule.ranged {
		return wireBad("%s must be between %g and %g, in steps of %d", v.at, v.rule.lo, v.rule.hi, max(1, v.rule.step))
	}
	return wireBad("%s is not valid", v.at)
}

// strictBody reads a body by its rules, and its model.
func strictBody(x *exchange, r *rules) (value, *apiError) {
	v, err := parseJSON(string(x.body))
	if err != nil || v.kind != object {
		return v, wireBad("the body is not a JSON object")
	}
	if m := v.get("model"); m.kind == text {
		x.model = m.s
	}
	return v, wireError(r.check(v, ""))
}

// formBody reads a form as an object of texts; files are texts too.
func formBody(x *exchange, r *rules) (value, *apiError) {
	u, e := parseForm(x)
	if e != nil {
		return value{}, e
	}
	v := value{kind: object}
	for name, s := range u.fields {
		v.obj = append(v.obj, member{name, value{kind: text, s: s}})
	}
	for name, content := range u.files {
		v.obj = append(v.obj, member{name, value{kind: text, s: string(content)}})
	}
	if bad := r.check(v, ""); bad != nil && bad.what == "unknown" {
		return v, wireBad("%s: unrecognized field", bad.at)
	} else if bad != nil && !bad.rule.ranged { // numbers are texts
		return v, wireError(bad)
	}
	return v, nil
}

func (w *wire) serve(x *exchange, middle string) *apiError {
	if x.model = middle; strings.HasSuffix(w.head, "/") && w.tail != "" && !strings.Contains(w.head, "images-of") {
		x.model = ""
	}
	if strings.HasPrefix(w.tail, ":") {
		x.model = middle[strings.LastIndexByte(middle, '/')+1:]
	}
	read := strictBody
	if w.form != nil && strings.Contains(middle, *w.form) {
		read = formBody
	}
	v, e := read(x, w.rules)
	if e != nil {
		return e
	}
	if m := v.get(w.model); m.kind == text {
		x.model = m.s
	}
	if check := wireChecks[w.check]; check != nil {
		if e := check(x, v, middle); e != nil {
			return e
		}
	}
	switch w.does {
	case "embed":
		return w.embed(x, v)
	case "rank":
		return w.rank(x, v)
	case "draw":
		return w.draw(x, v)
	}
	return w.complete(x, v)
}
