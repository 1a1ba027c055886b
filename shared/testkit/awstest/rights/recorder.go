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
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gateway/shared/testkit/awsemulator"
)

// Grant is one right of a policy: an action on a resource, under the conditions of
// its statement.
type Grant struct {
	Action, Resource string
	Condition        string
}

// Recorder records what each function used.
type Recorder struct {
	policies map[string][]awsemulator.Statement // the key is the access key, which is the function's name
	keyARN   string

	mu       sync.Mutex
	used     map[string]map[Grant]int
	actions  map[string]map[string]int
	rejected []string
	calls    int
	fronts   []*httptest.Server
}

// Record puts itself in front of services, given as variables with their endpoints, and
// returns the variables that point to it instead. A caller without a known policy may do
// anything and is not recorded.
func Record(endpoints map[string]string, policies map[string][]awsemulator.Statement, keyARN string) (*Recorder, map[string]string, error) {
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
		r.rejected = append(r.rejected, fmt.Sprintf("%s: %v", who, err))
		return err
	}
	policy := r.policies[who]
	for _, u := range uses {
		by, err := Allowed(policy, u)
		if err == nil && len(by) == 0 {
			err = fmt.Errorf("%s may not %s", who, u)
		}
		if err != nil {
			r.rejected = append(r.rejected, err.Error())
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

func (r *Recorder) note(who string, s awsemulator.Statement, u Use) {
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
func condition(s awsemulator.Statement) string {
	if len(s.Condition) == 0 {
		return ""
	}
	return fmt.Sprint(s.Condition) // maps print in the order of their keys
}

// Denied are the uses that were not allowed.
func (r *Recorder) Denied() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.rejected)
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
func Grants(policy []awsemulator.Statement) (out []Grant) {
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

// Use is one action on one resource, as IAM checks it.
type Use struct {
	Action, Resource string
	// Context holds the condition keys of the request; a key with several values holds a set.
	Context map[string][]string
}

func (u Use) String() string { return fmt.Sprintf("%s on %s %v", u.Action, u.Resource, u.Context) }

// Allowed returns the positions of the statements that allow a use.
func Allowed(policy []awsemulator.Statement, u Use) (by []int, err error) {
	for i, s := range policy {
		ok, err := allows(s, u)
		if err != nil {
			return nil, err
		}
		if ok {
			by = append(by, i)
		}
	}
	return by, nil
}

func allows(s awsemulator.Statement, u Use) (bool, error) {
	if !any(s.Action, u.Action) || !any(s.Resource, u.Resource) {
		return false, nil
	}
	for operator, keys := range s.Condition {
		for key, want := range keys {
			ok, err := holds(operator, want, u.Context, key)
			if !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// any reports whether one of the patterns matches.
func any(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return like(p, s) })
}

// like is IAM's StringLike: * matches any text, including slashes, and ? one character.
func like(pattern, s string) bool {
	// path.Match stops at slashes, so slashes are replaced by another character. Its other
	// special characters occur in no policy.
	flat := strings.NewReplacer("/", "\x00", "[", "\x01", "\\", "\x02")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(s))
	return ok && err == nil
}

// holds evaluates one key of a condition, as IAM documents it: an absent key
// fails, except with IfExists and with ForAllValues.
func holds(operator string, want []string, context map[string][]string, key string) (bool, error) {
	have, there := context[key]
	every, plain := false, operator
	if rest, ok := strings.CutPrefix(plain, "ForAllValues:"); ok {
		every, plain = true, rest
	} else if rest, ok := strings.CutPrefix(plain, "ForAnyValue:"); ok {
		plain = rest
	}
	plain, ifExists := strings.CutSuffix(plain, "IfExists")
	var fits func(v string) bool
	switch plain {
	case "StringEquals":
		fits = func(v string) bool { return slices.Contains(want, v) }
	case "StringLike":
		fits = func(v string) bool { return any(want, v) }
	case "Null":
		return len(want) == 1 && (want[0] == "true") == !there, nil
	default:
		return false, fmt.Errorf("rights: no operator %s", operator)
	}
	switch {
	case !there:
		return every || ifExists, nil
	case every:
		return !slices.ContainsFunc(have, func(v string) bool { return !fits(v) }), nil
	}
	return slices.ContainsFunc(have, fits), nil
}
