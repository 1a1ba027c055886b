// Package sestest is a strict fake of SES's SendEmail (API version 2) over a real connection.
// It accepts only the documented fields, rejects what SES rejects, checks that requests are
// signed for the service, and stores the accepted mails.
package sestest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"regexp"
	"strings"
	"sync"
)

// Mail is a mail that was accepted.
type Mail struct {
	From, Identity      string
	To                  []string
	Subject, Text, HTML string
}

// Server is a running fake.
type Server struct {
	http *httptest.Server

	mu         sync.Mutex
	identities map[string]bool // verified addresses
	failures   []failure
	sent       []Mail
	calls      int
}

type failure struct {
	status int
	code   string
}

// Start starts a server that takes mails from verified addresses.
func Start(verified ...string) *Server {
	s := &Server{identities: map[string]bool{}}
	for _, v := range verified {
		s.identities[v] = true
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// URL is the endpoint; Close ends it.
func (s *Server) URL() string { return s.http.URL }
func (s *Server) Close()      { s.http.Close() }

// Fail makes the next call fail with a status and a code of the API.
func (s *Server) Fail(status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, failure{status, code})
}

// Mails are the mails that were accepted.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.sent...)
}

// Calls is how often the server was called.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

type content struct {
	Data    *string
	Charset string
}

type request struct {
	FromEmailAddress            string
	FromEmailAddressIdentityArn string
	Destination                 struct{ ToAddresses, CcAddresses, BccAddresses []string }
	Content                     struct {
		Simple *struct {
			Subject *content
			Body    *struct{ Text, Html *content }
		}
	}
}

var (
	signed   = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[A-Za-z0-9]+/\d{8}/[a-z0-9-]+/ses/aws4_request, SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)
	identity = regexp.MustCompile(`^arn:aws:ses:[a-z0-9-]+:\d{12}:identity/.+$`)
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if len(s.failures) > 0 {
		f := s.failures[0]
		s.failures = s.failures[1:]
		reject(w, f.status, f.code)
		return
	}
	if r.Method != http.MethodPost || r.URL.EscapedPath() != "/v2/email/outbound-emails" {
		reject(w, http.StatusNotFound, "UnknownOperationException")
		return
	}
	if !signed.MatchString(r.Header.Get("Authorization")) {
		reject(w, http.StatusForbidden, "InvalidSignatureException")
		return
	}
	var body bytes.Buffer
	_, err := body.ReadFrom(r.Body)
	var in request
	d := json.NewDecoder(&body)
	d.DisallowUnknownFields()
	if err != nil || r.Header.Get("Content-Type") != "application/json" || d.Decode(&in) != nil {
		reject(w, http.StatusBadRequest, "SerializationException")
		return
	}
	if code := s.check(&in); code != "" {
		reject(w, http.StatusBadRequest, code)
		return
	}
	m := in.Content.Simple
	out := Mail{From: in.FromEmailAddress, Identity: in.FromEmailAddressIdentityArn, To: in.Destination.ToAddresses, Subject: *m.Subject.Data, Text: text(m.Body.Text), HTML: text(m.Body.Html)}
	s.sent = append(s.sent, out)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"MessageId": rand.Text()})
}

// check gives the code of a rejection.
func (s *Server) check(in *request) string {
	all := append(append(append([]string(nil), in.Destination.ToAddresses...), in.Destination.CcAddresses...), in.Destination.BccAddresses...)
	if len(all) == 0 || len(all) > 50 {
		return "BadRequestException"
	}
	for _, a := range all {
		if _, err := mail.ParseAddress(a); err != nil {
			return "BadRequestException"
		}
	}
	from, err := mail.ParseAddress(in.FromEmailAddress)
	if err != nil {
		return "BadRequestException"
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	if !s.identities[from.Address] && !s.identities[domain] {
		return "MessageRejected"
	}
	if arn := in.FromEmailAddressIdentityArn; arn != "" && !identity.MatchString(arn) {
		return "BadRequestException"
	}
	m := in.Content.Simple
	if m == nil || m.Subject == nil || m.Subject.Data == nil || m.Body == nil || text(m.Body.Text)+text(m.Body.Html) == "" || strings.ContainsAny(*m.Subject.Data, "\r\n") {
		return "BadRequestException"
	}
	for _, c := range []*content{m.Subject, m.Body.Text, m.Body.Html} {
		if c != nil && c.Charset != "UTF-8" && !ascii(text(c)) {
			return "BadRequestException"
		}
	}
	return ""
}

func text(c *content) string {
	if c == nil || c.Data == nil {
		return ""
	}
	return *c.Data
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0x7e }) < 0
}

func reject(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", code)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": "refused for ann@example.com"})
}
