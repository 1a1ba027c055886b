package mockprovider

import (
	"encoding/base64"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// bedrockShape serves Amazon Bedrock's runtime, the look-up of inference profiles,
// invocations of SageMaker endpoints and, below /sts/, AssumeRole of the token service.
var bedrockShape = &shape{name: "bedrock", match: bedrockMatch, authenticate: awsAuthenticate, reject: bedrockReject}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func bedrockPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1/"); ok {
		return "/" + rest
	}
	return path
}

func bedrockMatch(x *exchange) func(*exchange) *apiError {
	path := bedrockPath(x.path)
	switch {
	case path == "/sts/":
		return assumeRole
	case path == "/rerank" && strings.Contains(string(x.body), `"rerankingConfiguration"`):
		return bedrockRerank
	}
	rest, ok := strings.CutPrefix(path, "/model/")
	if !ok {
		return nil
	}
	id, op, _ := strings.Cut(rest, "/")
	if strings.Contains(op, "/") {
		return nil // the slashes of a model id must be escaped
	}
	handle := map[string]func(*exchange) *apiError{
		"converse":                    func(x *exchange) *apiError { return converse(x, false) },
		"converse-stream":             func(x *exchange) *apiError { return converse(x, true) },
		"invoke":                      invoke,
		"invoke-with-response-stream": invokeStream,
		"count-tokens":                bedrockCount,
	}[op]
	if handle == nil {
		return nil
	}
	return func(x *exchange) *apiError {
		if x.r.Method != http.MethodPost {
			return &apiError{status: http.StatusMethodNotAllowed, typ: "ValidationException", message: "Method not allowed"}
		}
		name, err := url.PathUnescape(id)
		if err != nil || name == "" {
			return bedrockInvalid("The provided model identifier is invalid.")
		}
		if name, err = splitModel(name, &x.st); err != nil {
			return bedrockInvalid(err.Error())
		}
		if x.model = name; name == "mock-missing" || strings.Contains(name, "does-not-exist") {
			return &apiError{status: http.StatusNotFound, typ: "ResourceNotFoundException", message: "Could not resolve the foundation model from the provided model identifier."}
		}
		return handle(x)
	}
}

func bedrockInvalid(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "ValidationException", message: message}
}

// bedrockErrors are the exceptions for statuses.
var bedrockErrors = map[int]string{
	400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException",
	424: "ModelErrorException", 429: "ThrottlingException", 503: "ServiceUnavailableException",
}

func bedrockReject(x *exchange, e *apiError) {
	kind := firstOf(e.typ, firstOf(bedrockErrors[e.status], "InternalServerException"))
	h := x.w.Header()
	id := x.newID("aws-", uint32(e.status))
	h["X-Amzn-Requestid"] = []string{id}
	h["X-Amzn-Errortype"] = []string{kind + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}
	body := fill(`{"message":$}`, e.message)
	if bedrockPath(x.path) == "/sts/" {
		h["Content-Type"] = []string{"text/xml"}
		body = []byte(`<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>` + kind + `</Code><Message>refused</Message></Error></ErrorResponse>`)
	}
	x.sendError(e, id, body)
}

// assumeRole returns the only session of the mock. A role with "denied" in its name is
// rejected; one with "external" needs the external id "mock".
func assumeRole(x *exchange) *apiError {
	form, err := url.ParseQuery(string(x.body))
	role := form.Get("RoleArn")
	if err != nil || form.Get("Action") != "AssumeRole" || form.Get("Version") != "2011-06-15" || !strings.Contains(role, ":role/") || form.Get("RoleSessionName") == "" {
		return bedrockInvalid("not an AssumeRole")
	}
	if strings.Contains(role, "denied") || strings.Contains(role, "external") && form.Get("ExternalId") != "mock" {
		return awsRejection("AccessDenied", "not authorized to perform sts:AssumeRole")
	}
	x.w.Header()["Content-Type"] = []string{"text/xml"}
	until := x.s.opts.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	_, _ = x.w.Write([]byte(`<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser><Arn>` + role +
		`</Arn></AssumedRoleUser><Credentials><AccessKeyId>` + bedrockSessionKey + `</AccessKeyId><SecretAccessKey>` + bedrockSessionSecret +
		`</SecretAccessKey><SessionToken>` + bedrockSessionToken + `</SessionToken><Expiration>` + until + `</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`))
	return nil
}

// bedrockPlain opens a row of the bill and sends a complete body.
func bedrockPlain(x *exchange, body []byte, u Usage) *apiError {
	id, done, e := begin(x, "aws-", string(x.body))
	if done {
		return e
	}
	x.w.Header()["X-Amzn-Requestid"] = []string{id}
	x.plain(id, body, u)
	return nil
}

// messageFrame is one message of the AWS event-stream encoding.
func messageFrame(kind, name string, payload []byte) []byte {
	header := func(b []byte, key, val string) []byte {
		b = append(append(b, byte(len(key))), key...)
		return append(append(b, 7, byte(len(val)>>8), byte(len(val))), val...)
	}
	key := ":event-type"
	if kind == "exception" {
		key = ":exception-type"
	}
	headers := header(header(header(nil, key, name), ":content-type", "application/json"), ":message-type", kind)
	total := 12 + len(headers) + len(payload) + 4
	put := func(b []byte, n uint32) []byte { return append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) }
	b := put(put(make([]byte, 0, total), uint32(total)), uint32(len(headers)))
	b = put(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return put(b, crc32.ChecksumIEEE(b))
}

// startBinary sends the head of a stream of such messages.
func (x *exchange) startBinary(id string, full Usage) *stream {
	h := x.w.Header()
	h["Content-Type"] = []string{"application/vnd.amazon.eventstream"}
	h["X-Amzn-Requestid"] = []string{id}
	x.w.WriteHeader(http.StatusOK)
	return &stream{x: x, out: x.w, full: full, binary: true}
}

// padding is what the service adds to events, so that their length reveals nothing.
const padding = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// binaryFrame writes one event as such a message; a wrong checksum is its garbage.
func (s *stream) binaryFrame(b []byte, name string, data []byte) []byte {
	data = append(data[:len(data)-1:len(data)-1], `,"p":"`+padding[:1+(s.events*7)%len(padding)]+`"}`...)
	if s.invoke {
		data = []byte(`{"bytes":"` + base64.StdEncoding.EncodeToString(data) + `"}`)
	}
	frame := messageFrame("event", name, data)
	if s.x.st.garbage == s.events {
		frame[len(frame)-1] ^= 0xff
	}
	return append(b, frame...)
}
