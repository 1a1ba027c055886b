package sqstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"
)

// failure is an error answer: {"__type","message"} and a query-mode header.
type failure struct {
	status  int
	code    string
	message string
}

func fail(code, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

// signature is the form of a SigV4 header for this service; the signature itself is not
// verified.
var signature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/[a-z0-9-]+/sqs/aws4_request, SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	action, body, f := accept(s, r)
	s.mu.Lock()
	s.calls[action]++
	faults := s.faults
	s.mu.Unlock()
	if f == nil && faults.Request != nil {
		if status := faults.Request(action); status != 0 {
			f = &failure{status: status, code: "InternalError", message: "injected"}
		}
	}
	var answer any
	if f == nil {
		answer, f = s.dispatch(r, action, body)
	}
	if faults.LoseAnswer != nil && faults.LoseAnswer(action) {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("x-amzn-RequestId", "5e2ec6d5-7a3e-5f1c-8f6a-9b1b1a2c3d4e")
	if f != nil {
		h.Set("x-amzn-query-error", queryCode(f.code)+";Sender")
		w.WriteHeader(f.status)
		answer = map[string]string{"__type": "com.amazonaws.sqs#" + f.code, "message": f.message}
	}
	if answer == nil {
		return // actions without a result have an empty body
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

// queryCode is the code of the older query protocol, which the SDK reads too.
func queryCode(code string) string {
	switch code {
	case "QueueDoesNotExist":
		return "AWS.SimpleQueueService.NonExistentQueue"
	case "InvalidMessageContents", "ReceiptHandleIsInvalid", "InvalidAddress", "InvalidAttributeName", "InternalError",
		"InvalidParameterValue", "MissingParameter", "SerializationException", "IncompleteSignature":
		return code
	}
	return "AWS.SimpleQueueService." + code
}

// accept checks everything about a request except its fields.
func accept(s *Server, r *http.Request) (action string, body []byte, f *failure) {
	target := r.Header.Get("X-Amz-Target")
	action, ok := strings.CutPrefix(target, "AmazonSQS.")
	if !ok {
		return "", nil, fail("UnknownOperationException", "target %q", target)
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.URL.RawQuery != "":
		return action, nil, fail("UnknownOperationException", "%s %s", r.Method, r.URL)
	case r.Header.Get("Content-Type") != "application/x-amz-json-1.0":
		return action, nil, fail("UnknownOperationException", "content type %q", r.Header.Get("Content-Type"))
	case !signature.MatchString(r.Header.Get("Authorization")) || r.Header.Get("X-Amz-Date") == "":
		return action, nil, fail("IncompleteSignature", "the request is not signed for sqs")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 16<<20))
	if err != nil || !utf8.Valid(body) {
		return action, nil, fail("SerializationException", "the body is cut off or not UTF-8")
	}
	return action, body, nil
}

// read decodes the body into one action's request; unknown fields are refused.
func read(body []byte, into any) *failure {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fail("SerializationException", "%v", err)
	}
	if d.More() {
		return fail("SerializationException", "bytes behind the object")
	}
	return nil
}

// act reads one action's request and runs it under the lock.
func act[T any](s *Server, body []byte, run func(*Server, *T) (any, *failure)) (any, *failure) {
	var in T
	if f := read(body, &in); f != nil {
		return nil, f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return run(s, &in)
}

func (s *Server) dispatch(r *http.Request, action string, body []byte) (any, *failure) {
	switch action {
	case "SendMessage":
		return act(s, body, (*Server).send)
	case "SendMessageBatch":
		return act(s, body, (*Server).sendBatch)
	case "ReceiveMessage":
		var in receiveRequest
		if f := read(body, &in); f != nil {
			return nil, f
		}
		return s.receive(r.Context(), &in)
	case "DeleteMessage":
		return act(s, body, (*Server).delete)
	case "DeleteMessageBatch":
		return act(s, body, (*Server).deleteBatch)
	case "ChangeMessageVisibility":
		return act(s, body, (*Server).change)
	case "ChangeMessageVisibilityBatch":
		return act(s, body, (*Server).changeBatch)
	case "CreateQueue":
		return act(s, body, (*Server).createQueue)
	case "DeleteQueue":
		return act(s, body, (*Server).deleteQueue)
	case "GetQueueUrl":
		return act(s, body, (*Server).queueURL)
	case "GetQueueAttributes":
		return act(s, body, (*Server).attributes)
	}
	return nil, fail("UnknownOperationException", "%s is not served here", action)
}
