// Package kmstest is a strict KMS for tests: GenerateDataKey and Decrypt of
// symmetric keys in the JSON protocol over HTTP, with encryption contexts that
// are authenticated, the errors that AWS documents, and faults on request.
package kmstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const arnPrefix = "arn:aws:kms:eu-west-1:123456789012:key/"

// Server is the service.
type Server struct {
	http *httptest.Server

	mu      sync.Mutex
	keys    map[string]cipher.AEAD // by ARN
	aliases map[string]string      // ARNs by "alias/name"
	status  int
	calls   map[string]int
}

// Start serves on loopback until Close.
func Start() *Server {
	s := &Server{keys: map[string]cipher.AEAD{}, aliases: map[string]string{}, calls: map[string]int{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Close ends the server.
func (s *Server) Close() { s.http.Close() }

// URL is the endpoint.
func (s *Server) URL() string { return s.http.URL }

// CreateKey makes a symmetric key and gives its ARN.
func (s *Server) CreateKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newKey()
}

func (s *Server) newKey() string {
	master := make([]byte, 32)
	_, _ = rand.Read(master) // never fails
	block, err := aes.NewCipher(master)
	if err != nil {
		panic(err) // cannot happen: 32 bytes are a key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	arn := arnPrefix + strings.ToLower(rand.Text())
	s.keys[arn] = aead
	return arn
}

// Fail makes every call answer with status; 0 stops that.
func (s *Server) Fail(status int) {
	s.mu.Lock()
	s.status = status
	s.mu.Unlock()
}

// Calls counts the requests of an action (GenerateDataKey, Decrypt) so far.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

type failure struct {
	status        int
	code, message string
}

func fail(code, format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

var signature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/eu-west-1/kms/aws4_request, SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	answer, f := s.respond(r)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if f != nil {
		w.WriteHeader(f.status)
		answer = map[string]string{"__type": f.code, "message": f.message}
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

func (s *Server) respond(r *http.Request) (any, *failure) {
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	switch {
	case !ok || r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1":
		return nil, fail("UnknownOperationException", "%s %s to %s", r.Method, r.URL, r.Header.Get("X-Amz-Target"))
	case !signature.MatchString(r.Header.Get("Authorization")):
		return nil, fail("IncompleteSignatureException", "the request is not signed for kms in eu-west-1")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<20))
	if err != nil {
		return nil, fail("SerializationException", "the body is cut off")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[action]++
	if s.status != 0 {
		return nil, &failure{s.status, "KMSInternalException", "injected"}
	}
	switch action {
	case "GenerateDataKey":
		return act(body, s.generate)
	case "Decrypt":
		return act(body, s.decrypt)
	case "CreateKey":
		return act(body, s.create)
	case "DescribeKey":
		return act(body, s.describe)
	case "CreateAlias":
		return act(body, s.alias)
	case "ScheduleKeyDeletion":
		return act(body, s.schedule)
	}
	return nil, fail("UnknownOperationException", "%s is not served here", action)
}

// act decodes the body into one action's request; unknown fields are rejected.
func act[T any](body []byte, run func(*T) (any, *failure)) (any, *failure) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var in T
	if err := d.Decode(&in); err != nil {
		return nil, fail("SerializationException", "%v", err)
	}
	return run(&in)
}

// find gives a key by its ARN or id.
func (s *Server) find(id string) (string, cipher.AEAD, *failure) {
	if arn := s.aliases[id]; arn != "" {
		id = arn
	}
	if !strings.HasPrefix(id, "arn:") {
		id = arnPrefix + id
	}
	if k := s.keys[id]; k != nil {
		return id, k, nil
	}
	return "", nil, fail("NotFoundException", "Key '%s' does not exist", id)
}

// authenticated is the encryption context as additional data, independent of its order.
func authenticated(c map[string]string) ([]byte, *failure) {
	total := 0
	var pairs []string
	for k, v := range c {
		if k == "" || v == "" {
			return nil, fail("ValidationException", "an encryption context pair is empty")
		}
		total += len(k) + len(v)
		pairs = append(pairs, fmt.Sprintf("%q=%q", k, v))
	}
	if total > 8192 {
		return nil, fail("ValidationException", "the encryption context is longer than 8,192 characters")
	}
	slices.Sort(pairs)
	return []byte(strings.Join(pairs, ",")), nil
}

func (s *Server) generate(in *struct {
	KeyId             string
	KeySpec           string
	EncryptionContext map[string]string
}) (any, *failure) {
	arn, key, f := s.find(in.KeyId)
	if f != nil {
		return nil, f
	}
	if in.KeySpec != "AES_256" {
		return nil, fail("ValidationException", "KeySpec %q", in.KeySpec)
	}
	aad, f := authenticated(in.EncryptionContext)
	if f != nil {
		return nil, f
	}
	plain := make([]byte, 32)
	_, _ = rand.Read(plain) // never fails
	blob := append([]byte(arn+"\x00"), key.Seal(nil, nil, plain, aad)...)
	return map[string]any{"KeyId": arn, "Plaintext": plain, "CiphertextBlob": blob}, nil
}

func (s *Server) decrypt(in *struct {
	KeyId             string
	CiphertextBlob    []byte
	EncryptionContext map[string]string
}) (any, *failure) {
	if n := len(in.CiphertextBlob); n == 0 || n > 6144 {
		return nil, fail("ValidationException", "CiphertextBlob of %d bytes", n)
	}
	arn, sealed, ok := bytes.Cut(in.CiphertextBlob, []byte{0})
	key := s.keys[string(arn)]
	if !ok || key == nil {
		return nil, fail("InvalidCiphertextException", "")
	}
	if in.KeyId != "" {
		named, _, f := s.find(in.KeyId)
		if f != nil {
			return nil, f
		}
		if named != string(arn) {
			return nil, fail("IncorrectKeyException", "The key ID in the request does not identify a KMS key that can perform this operation.")
		}
	}
	aad, f := authenticated(in.EncryptionContext)
	if f != nil {
		return nil, f
	}
	plain, err := key.Open(nil, nil, sealed, aad)
	if err != nil {
		return nil, fail("InvalidCiphertextException", "")
	}
	return map[string]any{"KeyId": string(arn), "Plaintext": plain, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}, nil
}

type metadata struct {
	KeyId, Arn string
	Enabled    bool
	KeyState   string
}

func described(arn string) any {
	return map[string]any{"KeyMetadata": metadata{KeyId: arn[len(arnPrefix):], Arn: arn, Enabled: true, KeyState: "Enabled"}}
}

func (s *Server) create(*struct{ Description string }) (any, *failure) {
	return described(s.newKey()), nil
}

func (s *Server) describe(in *struct{ KeyId string }) (any, *failure) {
	arn, _, f := s.find(in.KeyId)
	if f != nil {
		return nil, f
	}
	return described(arn), nil
}

var aliasName = regexp.MustCompile(`^alias/[A-Za-z0-9/_-]{1,250}$`)

func (s *Server) alias(in *struct{ AliasName, TargetKeyId string }) (any, *failure) {
	arn, _, f := s.find(in.TargetKeyId)
	switch {
	case f != nil:
		return nil, f
	case !aliasName.MatchString(in.AliasName):
		return nil, fail("InvalidAliasNameException", "%s", in.AliasName)
	case s.aliases[in.AliasName] != "":
		return nil, fail("AlreadyExistsException", "An alias with the name %s already exists", in.AliasName)
	}
	s.aliases[in.AliasName] = arn
	return map[string]any{}, nil
}

func (s *Server) schedule(in *struct {
	KeyId               string
	PendingWindowInDays int
}) (any, *failure) {
	arn, _, f := s.find(in.KeyId)
	if f != nil {
		return nil, f
	}
	delete(s.keys, arn)
	return map[string]any{"KeyId": arn}, nil
}
