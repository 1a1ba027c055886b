package mockprovider

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// azureShape serves Azure OpenAI below /azure-openai: the operations of OpenAI
// under deployments or /v1, and the token endpoint of Entra.
var azureShape = &shape{name: "azure-openai", match: azureMatch, authenticate: azureKey, reject: azureReject}

const azureHead = "/azure-openai"

// AzureSecret is the client secret that the token endpoint knows. The tokens that it issues
// begin with azureTokenHead.
const (
	AzureSecret    = "mock-secret"
	azureTokenHead = "entra-mock-"
)

// azureOperations are found below a deployment.
var azureOperations = map[string]func(*exchange) *apiError{
	"/chat/completions": chatCompletion, "/completions": completion, "/embeddings": embeddings,
	"/images/generations": imageMade,
}

var azureVersion = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-preview)?$`)

func azureMatch(x *exchange) func(*exchange) *apiError {
	path, ok := strings.CutPrefix(x.path, azureHead+"/")
	if !ok {
		return nil
	}
	path = "/" + path
	return func(x *exchange) *apiError {
		if x.r.Method != http.MethodPost {
			return &apiError{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"}
		}
		if tenant, ok := strings.CutSuffix(path, "/oauth2/v2.0/token"); ok {
			return entraToken(x, strings.TrimPrefix(tenant, "/"))
		}
		return azureOperation(x, path)
	}
}

// azureKey looks for a key in api-key, or for a token of Entra.
func azureKey(x *exchange) *apiError {
	if strings.HasSuffix(x.path, "/oauth2/v2.0/token") {
		return nil
	}
	token, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	if strings.HasPrefix(token, azureTokenHead) || token == "" && strings.HasPrefix(x.r.Header.Get("Api-Key"), "mock-") {
		return nil
	}
	return &apiError{status: http.StatusUnauthorized, code: "401", message: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."}
}

func azureOperation(x *exchange, path string) *apiError {
	query, _ := url.ParseQuery(x.query)
	version := query["api-version"]
	rest, dated := strings.CutPrefix(path, "/deployments/")
	deployment := ""
	if dated {
		name, operation, _ := strings.Cut(rest, "/")
		deployment, _ = url.PathUnescape(name)
		path = "/" + operation
	} else {
		path = strings.TrimPrefix(path, "/v1")
	}
	handle := azureOperations[path]
	switch {
	case handle == nil, dated && deployment == "", !dated && !strings.HasPrefix(x.path, azureHead+"/v1/"):
		return &apiError{status: http.StatusNotFound, code: "404", message: "Resource not found"}
	case dated && (len(version) != 1 || !azureVersion.MatchString(version[0])):
		return &apiError{status: http.StatusNotFound, code: "404", message: "Resource not found"}
	case !dated && len(version) > 0:
		return badRequest("", "BadRequest", "api-version query parameter is not allowed when using /v1 path")
	case strings.Contains(deployment, "unknown"):
		return &apiError{status: http.StatusNotFound, code: "DeploymentNotFound", message: "The API deployment for this resource does not exist."}
	}
	if path == "/chat/completions" || path == "/completions" {
		x.w = &annotated{ResponseWriter: x.w}
	}
	return handle(x)
}

// annotated sends Azure's verdict on the prompt before the first event of a stream.
type annotated struct {
	http.ResponseWriter
	begun bool
}

const promptAnnotation = `data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}` + "\n\n"

// Write implements http.ResponseWriter.
func (a *annotated) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		if strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream") {
			if _, err := a.ResponseWriter.Write([]byte(promptAnnotation)); err != nil {
				return 0, err
			}
		}
	}
	return a.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (a *annotated) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// entraToken serves the token endpoint of a tenant.
func entraToken(x *exchange, tenant string) *apiError {
	form, err := url.ParseQuery(string(x.body))
	kind, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";")
	w := x.w
	w.Header().Set("Content-Type", "application/json")
	fail := func(status int, code, message string) *apiError {
		w.WriteHeader(status)
		_, _ = w.Write(fill(`{"error":$,"error_description":$}`, code, message))
		return nil
	}
	switch {
	case err != nil, kind != "application/x-www-form-urlencoded", form.Get("grant_type") != "client_credentials", form.Get("client_id") == "",
		!slices.Contains([]string{"https://cognitiveservices.azure.com/.default", "https://ai.azure.com/.default"}, form.Get("scope")):
		return fail(http.StatusBadRequest, "invalid_request", "AADSTS900144: The request body is wrong.")
	case tenant != "mock-tenant":
		return fail(http.StatusBadRequest, "invalid_request", "AADSTS90002: Tenant '"+tenant+"' not found.")
	case form.Get("client_secret") != AzureSecret:
		return fail(http.StatusUnauthorized, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
	}
	token := x.newID(azureTokenHead, seedOf(form.Get("client_id")))
	_, _ = w.Write(fill(`{"token_type":"Bearer","expires_in":3599,"ext_expires_in":3599,"access_token":$}`, token))
	return nil
}

// azureReject responds with {error: {code, message}}; when the content filter refused, an
// innererror is added.
func azureReject(x *exchange, e *apiError) {
	b := fill(`{"error":{"message":$,"type":null,"param":$,"code":$`, e.message, orNull(e.param), orNull(e.code))
	if e.code == "content_filter" {
		b = append(b, `,"status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"},"jailbreak":{"filtered":false,"detected":false}}}`...)
	}
	x.sendError(e, "", append(b, `}}`...))
}
