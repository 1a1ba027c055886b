package mockprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
)

// Credentials that are valid here. The session is the one that AssumeRole returns.
const (
	bedrockKey           = "AKIDMOCK"
	bedrockSecret        = "mock-secret"
	bedrockSessionKey    = "ASIAMOCK"
	bedrockSessionSecret = "mock-session-secret"
	bedrockSessionToken  = "mock-session-token"
)

func awsRejection(kind, message string) *apiError {
	return &apiError{status: http.StatusForbidden, typ: kind, message: message}
}

// awsAuthenticate checks a version 4 signature against the request as it arrived, or a
// bearer key.
func awsAuthenticate(x *exchange) *apiError {
	auth := x.r.Header.Get("Authorization")
	if strings.HasPrefix(auth, "Bearer ") {
		if e := x.authenticate(); e != nil {
			kind := map[int]string{429: "ThrottlingException", 500: "InternalServerException", 403: "AccessDeniedException"}[e.status]
			if kind == "" {
				return awsRejection("UnrecognizedClientException", "The security token included in the request is invalid.")
			}
			return &apiError{status: e.status, typ: kind, message: e.message, retryAfter: e.retryAfter}
		}
		return nil
	}
	rest, ok := strings.CutPrefix(auth, "AWS4-HMAC-SHA256 ")
	if !ok {
		return awsRejection("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, val, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = val
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return awsRejection("IncompleteSignatureException", "Credential must have exactly 5 slash-delimited elements")
	}
	secret := ""
	switch scope[0] {
	case bedrockKey:
		secret = bedrockSecret
	case bedrockSessionKey:
		if secret = bedrockSessionSecret; x.r.Header.Get("X-Amz-Security-Token") != bedrockSessionToken {
			return awsRejection("ExpiredTokenException", "The security token included in the request is expired")
		}
	default:
		return awsRejection("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	if want := awsService(x); scope[3] != want {
		return awsRejection("InvalidSignatureException", "Credential should be scoped to correct service: '"+want+"'.")
	}
	date := x.r.Header.Get("X-Amz-Date")
	if at, err := time.Parse("20060102T150405Z", date); err != nil || at.Sub(x.s.opts.Now()).Abs() > 15*time.Minute || !strings.HasPrefix(date, scope[1]) {
		return awsRejection("InvalidSignatureException", "Signature expired: "+date+" is not within 15 minutes")
	}
	if !hmac.Equal([]byte(fields["Signature"]), []byte(awsSignature(x, secret, fields["SignedHeaders"], date, scope[1:]))) {
		return awsRejection("InvalidSignatureException", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

// awsService is the service name for which a request must be signed.
func awsService(x *exchange) string {
	switch path := bedrockPath(x.path); {
	case path == "/sts/" || path == "/": // AWS itself uses the path "/"
		return "sts"
	case strings.HasPrefix(path, mockBucket):
		return "s3"
	case strings.HasPrefix(path, "/endpoints/"):
		return "sagemaker"
	}
	return "bedrock"
}

// awsSignature computes the expected signature. Except for S3, the path is escaped once
// more than it arrived.
func awsSignature(x *exchange, secret, signed, date string, scope []string) string {
	var path strings.Builder
	for i := range len(x.path) {
		c := x.path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 || scope[2] == "s3" {
			path.WriteByte(c)
		} else {
			path.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	params := strings.Split(x.query, "&")
	for i, p := range params {
		if p != "" && !strings.Contains(p, "=") {
			params[i] = p + "="
		}
	}
	sort.Strings(params)
	var headers strings.Builder
	for name := range strings.SplitSeq(signed, ";") {
		val := strings.Join(x.r.Header.Values(name), ",")
		switch name {
		case "host":
			val = x.r.Host
		case "content-length":
			val = x.r.Header.Get("Content-Length")
			if val == "" {
				val = itoa(x.r.ContentLength)
			}
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(val), " ") + "\n")
	}
	sum := func(b []byte) string {
		h := sha256.Sum256(b)
		return hex.EncodeToString(h[:])
	}
	canonical := strings.Join([]string{x.r.Method, path.String(), strings.Join(params, "&"), headers.String(), signed, sum(x.body)}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", date, strings.Join(scope, "/"), sum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range append(append([]string{}, scope...), toSign) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

// nativeShape serves what Bedrock's runtime offers besides Converse: chat completions and
// Responses below /openai/v1, and Messages at /anthropic/v1/messages. Requests are signed
// like others to the host; the body names the model. Errors of the models have the format
// of the path, errors of the front door have AWS's format.
var nativeShape = &shape{name: "bedrock-native", match: nativeMatch, authenticate: nativeAuthenticate, reject: nativeReject}

const (
	nativeOpenAI    = "/openai/v1/"
	nativeAnthropic = "/anthropic/v1/"
)

// nativeRoute is a path of the host with the models that it serves, by the beginning of
// their ids without the group of regions.
type nativeRoute struct {
	handle func(*exchange) *apiError
	models []string
}

var nativeRoutes = map[string]nativeRoute{
	nativeOpenAI + "chat/completions": {chatCompletion, []string{"openai.gpt-oss", "openai.gpt-5.6", "openai.gpt-6", "xai.grok-4.6", "qwen.qwen3"}},
	nativeOpenAI + "responses":        {response, []string{"openai.gpt-5.6", "openai.gpt-6", "xai.grok-4.6"}},
	nativeAnthropic + "messages":      {message, []string{"anthropic.claude-opus-4-8", "anthropic.claude-opus-5", "anthropic.claude-sonnet-5", "anthropic.claude-haiku-5", "anthropic.claude-fable-5"}},
}

func nativeMatch(x *exchange) func(*exchange) *apiError {
	if !strings.HasPrefix(x.path, nativeOpenAI) && !strings.HasPrefix(x.path, nativeAnthropic) {
		return nil
	}
	x.anthropic = strings.HasPrefix(x.path, nativeAnthropic)
	return func(x *exchange) *apiError {
		route, ok := nativeRoutes[x.path]
		if !ok || x.r.Method != http.MethodPost {
			return unknownOperation(x)
		}
		v, e := parseBody(x)
		if e != nil {
			return e
		}
		id := v.get("model").s
		switch {
		case strings.Contains(id, "-no-path"): // as on a host that is older
			return unknownOperation(x)
		case strings.Contains(id, "-no-route"):
			return badRequest("", "", "model '"+id+"' isn't supported on this route")
		case strings.Contains(id, "-no-api"):
			return badRequest("", "", "The model '"+id+"' does not support the '"+x.path+"' API")
		}
		for _, group := range []string{"us.", "eu.", "apac.", "au.", "ca.", "jp.", "global.", "us-gov."} {
			id = strings.TrimPrefix(id, group)
		}
		if !slices.ContainsFunc(route.models, func(name string) bool { return strings.HasPrefix(id, name) }) {
			return &apiError{status: http.StatusNotFound, message: "The model doesn't exist or doesn't support this API"}
		}
		if e := nativeBody(v, x.anthropic, id); e != nil {
			return e
		}
		return route.handle(x)
	}
}

// nativeBody refuses fields that the makers' own hosts accept and this host does not.
func nativeBody(v value, anthropic bool, model string) *apiError {
	if !anthropic {
		if strings.HasPrefix(model, "openai.") && v.get("max_tokens").given() {
			return badRequest("max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		}
		if v.get("background").yes {
			return badRequest("background", "", "background is not supported for this request")
		}
		return nil
	}
	if v.get("output_config").get("format").given() {
		return invalid("output_config.format: Extra inputs are not permitted")
	}
	for _, name := range []string{"inference_geo", "fallbacks", "service_tier"} {
		if v.get(name).given() {
			return invalid("%s: Extra inputs are not permitted", name)
		}
	}
	for i, tool := range v.get("tools").arr {
		if tool.get("strict").given() {
			return invalid("tools.%d.custom.strict: Extra inputs are not permitted", i)
		}
	}
	return nil
}

// unknownOperation is the host's response for a path that it does not have.
func unknownOperation(x *exchange) *apiError {
	x.row, x.hasRow = x.s.bill.begin(x.path, "", x.newID("aws-", 0), false), true
	body := []byte(`{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`)
	x.w.Header()["Content-Type"] = []string{"application/json"}
	x.row.close(http.StatusOK, Usage{}, x.gone(), "")
	_, _ = x.w.Write(body)
	return nil
}

// nativeAuthenticate does what awsAuthenticate does. A request may have Anthropic's own key
// header instead, but not both.
func nativeAuthenticate(x *exchange) *apiError {
	if x.r.Header.Get("X-Api-Key") == "" {
		return frontDoorError(awsAuthenticate(x))
	}
	if x.r.Header.Get("Authorization") != "" || !x.anthropic {
		return frontDoorError(awsRejection("AccessDeniedException", "x-api-key and Authorization exclude each other"))
	}
	return x.authenticate()
}

// frontDoorError marks an error of the front door, which has AWS's format.
func frontDoorError(e *apiError) *apiError {
	if e != nil && e.typ == "" {
		e.typ = "AccessDeniedException"
	}
	return e
}

func nativeReject(x *exchange, e *apiError) {
	if strings.HasSuffix(e.typ, "Exception") {
		bedrockReject(x, e)
		return
	}
	plain := *x
	plain.shape = nil
	plain.reject(e)
}
