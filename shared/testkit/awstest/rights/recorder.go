package rights

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"sync"

	"gateway/shared/testkit/standin"
)

// Grant is one right of a policy: an action on a resource, under the conditions of
// its statement.
type Grant struct {
	Action, Resource string
	Condition        string
}

// Recorder records what each function used.
type Recorder struct {
	policies map[string][]standin.Statement // the key is the access key, which is the function's name
	keyARN   string

	mu      sync.Mutex
	used    map[string]map[Grant]int
	actions map[string]map[string]int
	refused []string
	calls   int
	fronts  []*httptest.Server
}

// Record puts itself in front of services, given as variables with their endpoints, and
// returns the variables that point to it instead. A caller without a known policy may do
// anything and is not recorded.
func Record(endpoints map[string]string, policies map[string][]standin.Statement, keyARN string) (*Recorder, map[string]string, error) {
	r := &Recorder{policies: policies, keyARN: keyARN, used: map[string]map[Grant]int{}, actions: map[string]map[string]int{}}
	led := map[string]string{}
	for name, endpoint := range endpoints {
		service := map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "dynamodb", "AWS_ENDPOINT_URL_SQS": "sqs", "AWS_ENDPOINT_URL_S3": "s3", "AWS_ENDPOINT_URL_KMS": "kms"}[name]
		to, err := url.Parse(endpoint)
		if err != nil || service == "" {
			r.Close()
			return nil, nil, fmt.Errorf("rights: no service at %s=%s: %w", name, endpoint, err)
		}
		front := httptest.NewServer(r.front(service, to))
		r.fronts = append(r.fronts, front)
		led[name] = front.URL
	}
	return r, led, nil
}

// Close ends the recorder.
func (r *Recorder) Close() {
	for _, f := range r.fronts {
		f.CloseClientConnections()
		f.Close()
	}
}

var credential = regexp.MustCompile(`Credential=([^/]+)/`)

func (r *Recorder) front(service string, to *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = to.Host },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		m := credential.FindStringSubmatch(req.Header.Get("Authorization"))
		if m == nil || r.policies[m[1]] == nil {
			proxy.ServeHTTP(w, req)
			return
		}
		body, err := io.ReadAll(req.Body)
		if err == nil {
			req.Body = io.NopCloser(bytes.NewReader(body))
			err = r.check(m[1], service, req, body)
		}
		if err != nil {
			deny(w, service, err)
			return
		}
		proxy.ServeHTTP(w, req)
	})
}

// check records what a request uses. It returns an error for the first use that is not
// allowed.
func (r *Recorder) check(who, service string, req *http.Request, body []byte) error {
	uses, err := Uses(service, req, body, r.keyARN)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if err != nil {
		r.refused = append(r.refused, fmt.Sprintf("%s: %v", who, err))
		return err
	}
	policy := r.policies[who]
	for _, u := range uses {
		by, err := Allowed(policy, u)
		if err == nil && len(by) == 0 {
			err = fmt.Errorf("%s may not %s", who, u)
		}
		if err != nil {
			r.refused = append(r.refused, err.Error())
			return err
		}
		if r.actions[who] == nil {
			r.actions[who] = map[string]int{}
		}
		r.actions[who][u.Action]++
		for _, i := range by {
			r.note(who, policy[i], u)
		}
	}
	return nil
}

func (r *Recorder) note(who string, s standin.Statement, u Use) {
	if r.used[who] == nil {
		r.used[who] = map[Grant]int{}
	}
	for _, action := range s.Action {
		for _, resource := range s.Resource {
			if like(action, u.Action) && like(resource, u.Resource) {
				r.used[who][Grant{action, resource, condition(s)}]++
			}
		}
	}
}

// condition writes a statement's conditions as one text.
func condition(s standin.Statement) string {
	if len(s.Condition) == 0 {
		return ""
	}
	return fmt.Sprint(s.Condition) // maps print in the order of their keys
}

// Refused are the uses that were not allowed.
func (r *Recorder) Refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}

// Calls counts the requests of functions.
func (r *Recorder) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// Actions counts what a function did, by action.
func (r *Recorder) Actions(who string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.actions[who])
}

// Unused are the rights of a function that nothing used.
func (r *Recorder) Unused(who string) (out []Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range Grants(r.policies[who]) {
		if r.used[who][g] == 0 {
			out = append(out, g)
		}
	}
	return out
}

// Grants splits a policy into single rights.
func Grants(policy []standin.Statement) (out []Grant) {
	for _, s := range policy {
		for _, action := range s.Action {
			for _, resource := range s.Resource {
				out = append(out, Grant{action, resource, condition(s)})
			}
		}
	}
	return out
}

// deny answers as the service does to a caller without the right.
func deny(w http.ResponseWriter, service string, why error) {
	switch service {
	case "s3":
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%v</Message></Error>", why)
	case "sqs":
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#AccessDeniedException","message":%q}`, why.Error())
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"__type":"AccessDeniedException","message":%q}`, why.Error())
	}
}
