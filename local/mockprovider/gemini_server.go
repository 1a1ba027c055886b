package mockprovider

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// geminiShape serves Gemini on AI Studio (/v1beta/...) and on Vertex AI (/v1/projects/...),
// where other publishers use Anthropic's and OpenAI's formats, and Google's token endpoint
// (/token).
var geminiShape = &shape{name: "gemini", match: geminiMatch, authenticate: geminiAuthenticate, reject: geminiReject}

// VertexToken is the access token that the token endpoint issues. Vertex paths accept it,
// and keys that begin with mock-.
const VertexToken = "ya29.mock-access-token"

var geminiModels = []string{"gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-embedding-001", "imagen-4.0-generate-001"}

// geminiPath is a path of AI Studio or Vertex AI, split into its parts.
type geminiPath struct {
	vertex                   bool
	publisher, model, method string
}

func geminiParse(path string) (p geminiPath, ok bool) {
	rest := strings.TrimPrefix(path, "/v1")
	if strings.HasPrefix(path, "/v1/v1") {
		rest = strings.TrimPrefix(path, "/v1/v1") // after a base URL that ends in /v1
	}
	for _, v := range []string{"beta1", "beta", "alpha"} {
		if after, found := strings.CutPrefix(rest, v); found {
			rest = after
			break
		}
	}
	p.publisher = "google"
	switch {
	case strings.HasPrefix(path, "/v1") && strings.HasPrefix(rest, "/projects/"):
		p.vertex = true
		parts := strings.Split(strings.TrimPrefix(rest, "/projects/"), "/")
		switch {
		case len(parts) == 7 && parts[1] == "locations" && parts[3] == "publishers" && parts[5] == "models":
			p.publisher, rest = parts[4], parts[6]
		case len(parts) == 7 && parts[1] == "locations" && parts[3] == "endpoints" && parts[5] == "chat" && parts[6] == "completions":
			return geminiPath{vertex: true, publisher: "endpoints", model: parts[4], method: "chat"}, true
		default:
			return p, false
		}
	case (strings.Contains(path, "/v1beta/") || strings.Contains(path, "/v1alpha/")) && strings.HasPrefix(rest, "/models"):
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "/models"), "/")
	default:
		return p, false
	}
	p.model, p.method, _ = strings.Cut(rest, ":")
	if name, err := url.PathUnescape(p.model); err == nil {
		p.model = name
	}
	return p, true
}

func geminiMatch(x *exchange) func(*exchange) *apiError {
	if x.path == "/token" || x.path == "/v1/token" {
		return googleToken
	}
	if strings.HasPrefix(strings.TrimPrefix(x.path, "/v1"), bidiPath) {
		return bidiSession
	}
	p, ok := geminiParse(x.path)
	if !ok {
		return nil
	}
	return func(x *exchange) *apiError { return gemini(x, p) }
}

func geminiAuthenticate(x *exchange) *apiError {
	bidi := strings.HasPrefix(strings.TrimPrefix(x.path, "/v1"), bidiPath)
	if p, ok := geminiParse(x.path); !ok && !bidi {
		return nil // the token endpoint
	} else if p.vertex {
		key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
		if key == VertexToken || strings.HasPrefix(key, "mock-") && key != "mock-denied" {
			return nil
		}
		return &apiError{status: http.StatusUnauthorized, typ: "UNAUTHENTICATED", message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."}
	}
	key := x.r.Header.Get("X-Goog-Api-Key")
	if q, err := url.ParseQuery(x.query); key == "" && err == nil {
		key = q.Get("key")
	}
	switch {
	case key == "":
		return &apiError{status: http.StatusForbidden, typ: "PERMISSION_DENIED", message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	case key == "mock-limited":
		return &apiError{status: http.StatusTooManyRequests, message: "You exceeded your current quota, please check your plan and billing details.", retryAfter: "1"}
	case !strings.HasPrefix(key, "mock-") && !strings.HasPrefix(key, "sk-"):
		return &apiError{status: http.StatusBadRequest, code: "API_KEY_INVALID", message: "API key not valid. Please pass a valid API key."}
	}
	return nil
}

// geminiStatus is Google's word for a status.
func geminiStatus(status int) string {
	switch status {
	case 400:
		return "INVALID_ARGUMENT"
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}

func geminiErrorOf(status int, word, message, details string) []byte {
	b := fill(`{"error":{"code":$,"message":$,"status":$`, status, message, word)
	if details != "" {
		b = append(append(append(b, `,"details":[`...), details...), ']')
	}
	return append(b, `}}`...)
}

// geminiReject responds with an error in Google's format; the time to wait is in a detail,
// not in a header. Other publishers of Vertex AI have their own format.
func geminiReject(x *exchange, e *apiError) {
	x.w.Header()["Content-Type"] = []string{"application/json; charset=UTF-8"}
	wait, details := e.retryAfter, ""
	e.retryAfter = ""
	if x.anthropic {
		x.sendError(e, "", e.body(true, "req_vertex"))
		return
	}
	switch {
	case wait != "":
		details = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + quoted(wait+"s") + `}`
	case e.code != "":
		details = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":` + quoted(e.code) + `,"domain":"googleapis.com"}`
	}
	b := geminiErrorOf(e.status, firstOf(e.typ, geminiStatus(e.status)), e.message, details)
	if strings.Contains(x.path, ":stream") {
		b = append(append([]byte{'['}, b...), ']')
	}
	x.sendError(e, x.newID("g-", uint32(e.status)), b)
}

// gemini serves one method of one model.
func gemini(x *exchange, p geminiPath) *apiError {
	if p.model == "" && p.method == "" && x.r.Method == http.MethodGet && !p.vertex {
		return geminiModelList(x)
	}
	name, err := splitModel(p.model, &x.st)
	if err != nil {
		return badRequest("", "", err.Error())
	}
	if x.model = name; name == "mock-missing" || strings.Contains(name, "does-not-exist") {
		return &apiError{status: http.StatusNotFound, message: "models/" + name + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
	}
	if x.r.Method == http.MethodGet && p.method == "" && slices.Contains(geminiModels, name) {
		return listed(x, geminiModelOf(name))
	}
	if x.r.Method != http.MethodPost {
		return &apiError{status: http.StatusNotFound, message: "Requested entity was not found."}
	}
	switch p.publisher {
	case "anthropic":
		return vertexAnthropic(x, p)
	case "mistralai", "endpoints":
		if p.publisher == "mistralai" && p.method != "rawPredict" && p.method != "streamRawPredict" {
			return &apiError{status: http.StatusNotFound, message: "Requested entity was not found."}
		}
		return chatCompletion(x)
	}
	switch p.method {
	case "generateContent":
		return generateContent(x, p.vertex, false)
	case "streamGenerateContent":
		return generateContent(x, p.vertex, true)
	case "countTokens":
		return geminiCountTokens(x, p.vertex)
	case "embedContent", "batchEmbedContents":
		if !p.vertex {
			return geminiEmbed(x, p.method == "batchEmbedContents")
		}
		if p.method == "embedContent" && laterEmbedding(x.model) {
			return geminiEmbed(x, false)
		}
	case "predict":
		if p.vertex && laterEmbedding(x.model) {
			return invalid("%s is not supported in the predict API.", x.model)
		}
		return vertexPredict(x)
	}
	return &apiError{status: http.StatusNotFound, message: "Requested entity was not found."}
}

func geminiModelList(x *exchange) *apiError {
	var models []json.RawMessage
	for _, id := range geminiModels {
		models = append(models, geminiModelOf(id))
	}
	return listed(x, fill(`{"models":$}`, list(models)))
}

func geminiModelOf(id string) []byte {
	return fill(`{"name":$,"displayName":$,"inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]}`, "models/"+id, id)
}

// vertexAnthropic serves a publisher's model. The body names the API version; it names the
// model only for counting tokens.
func vertexAnthropic(x *exchange, p geminiPath) *apiError {
	x.anthropic = true
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	counting := p.model == "count-tokens"
	if v.get("anthropic_version").s != "vertex-2023-10-16" {
		return invalid("anthropic_version: Input should be 'vertex-2023-10-16'")
	}
	if !counting && v.get("model").kind != absent {
		return invalid("model: Extra inputs are not permitted")
	}
	if stream := p.method == "streamRawPredict"; stream != v.get("stream").yes {
		return invalid("stream: does not go with %s", p.method)
	}
	b := []byte{'{'}
	for _, m := range v.obj {
		if m.name != "anthropic_version" {
			b = append(appendValue(append(appendString(b, m.name), ':'), m.v), ',')
		}
	}
	if counting {
		b = append(b[:len(b)-1], '}')
	} else {
		b = append(appendString(append(b, `"model":`...), p.model), '}')
	}
	x.body = b
	x.r.Header.Set("Anthropic-Version", "2023-06-01")
	if counting {
		return countTokens(x)
	}
	return message(x)
}

// googleToken is the OAuth 2.0 token endpoint: it accepts a JWT signed with the key of
// Options.ServiceAccount.
func googleToken(x *exchange) *apiError {
	form, err := url.ParseQuery(string(x.body))
	refuse := func(code, description string) *apiError {
		h := x.w.Header()
		h["Content-Type"] = []string{"application/json; charset=utf-8"}
		x.w.WriteHeader(http.StatusBadRequest)
		_, _ = x.w.Write(fill(`{"error":$,"error_description":$}`, code, description))
		return nil
	}
	if err != nil || x.r.Method != http.MethodPost || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return refuse("unsupported_grant_type", "Invalid grant_type")
	}
	if why := checkAssertion(x, form.Get("assertion")); why != "" {
		return refuse("invalid_grant", why)
	}
	return listed(x, []byte(`{"access_token":"`+VertexToken+`","expires_in":3599,"token_type":"Bearer"}`))
}

// checkAssertion returns the fault of a JWT, or "".
func checkAssertion(x *exchange, assertion string) string {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return "Invalid JWT"
	}
	b64 := base64.RawURLEncoding
	var decoded [3]string
	for i, p := range parts {
		raw, err := b64.DecodeString(p)
		if err != nil {
			return "Invalid JWT: not base64url"
		}
		decoded[i] = string(raw)
	}
	head, errHead := parseJSON(decoded[0])
	claims, errClaims := parseJSON(decoded[1])
	if errHead != nil || errClaims != nil || head.get("alg").s != "RS256" || head.get("typ").s != "JWT" {
		return "Invalid JWT: must be RS256"
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if key := x.s.opts.ServiceAccount; key == nil || rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], []byte(decoded[2])) != nil {
		return "Invalid JWT Signature."
	}
	now := x.s.opts.Now().Unix()
	iat, ok1 := claims.get("iat").integer()
	exp, ok2 := claims.get("exp").integer()
	switch {
	case !ok1 || !ok2 || exp-iat > 3600 || exp <= now || iat > now+60:
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
	case !strings.HasSuffix(claims.get("aud").s, "/token"):
		return "Invalid JWT: the audience is not this endpoint"
	case claims.get("iss").s == "" || claims.get("scope").s != "https://www.googleapis.com/auth/cloud-platform":
		return "invalid_scope"
	}
	return ""
}

// geminiErrorStatus is the status for a word of Google's.
func geminiErrorStatus(word string) int {
	for _, status := range []int{400, 401, 403, 404, 429, 500, 503, 504} {
		if geminiStatus(status) == word {
			return status
		}
	}
	return http.StatusInternalServerError
}
