package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Names of the environment.
const (
	EnvURL = "GATEWAY_URL"
	EnvKey = "GATEWAY_API_KEY"
)

// defaultURL is where a gateway on this machine listens.
const defaultURL = "http://127.0.0.1:8787"

// maxResponse limits a response that is read completely.
const maxResponse = 64 << 20

// Client calls the API of a gateway.
type Client struct {
	Base string // without a slash at the end and without /v1
	Key  string // an API key, or the token of a person
	HTTP *http.Client
}

// Unreachable is returned when no gateway answers: exit code 3.
type Unreachable struct {
	Base string
	Err  error
}

func (e Unreachable) Error() string {
	return fmt.Sprintf("%s is not reachable: %v", e.Base, e.Err)
}
func (e Unreachable) Unwrap() error { return e.Err }

// APIError is a response with a status of 400 or above: exit code 1.
type APIError struct {
	Method, Path string
	Status       int
	Code         string // the header x-gateway-error-code
	Message      string
	Trace        string
}

func (e *APIError) Error() string {
	text := fmt.Sprintf("%s %s: %d", e.Method, e.Path, e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Trace != "" {
		text += " (trace " + e.Trace + ")"
	}
	return text
}

// Address returns the address of the gateway: GATEWAY_URL, else that of the profile, else
// the default of a gateway on this machine.
func (e Env) Address() (string, error) {
	raw := e.Getenv(EnvURL)
	if raw == "" {
		p, err := e.profile()
		if err != nil {
			return "", err
		}
		raw = p.URL
	}
	if raw == "" {
		raw = defaultURL
	}
	return parseAddress(raw)
}

// parseAddress checks the address of a gateway. It accepts one with and without /v1.
func parseAddress(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", Usagef("%s must be an address such as https://gateway.example.com, without user name and query", EnvURL)
	}
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/v1"), nil
}

// Client returns a client of the gateway that GATEWAY_URL and GATEWAY_API_KEY name, or
// that the profile of login names. The key of a profile goes only to the address of the
// profile.
func (e Env) Client(ctx context.Context) (Client, error) {
	base, err := e.Address()
	if err != nil {
		return Client{}, err
	}
	c := newClient(base)
	if c.Key = e.Getenv(EnvKey); c.Key == "" {
		if c.Key, err = e.storedToken(ctx, base); err != nil {
			return Client{}, err
		}
	}
	if c.Key == "" {
		return Client{}, Usagef("no key: set %s, or sign in with gateway login", EnvKey)
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Client{}, Usagef("%s must contain only visible ASCII characters", EnvKey)
	}
	return c, nil
}

func newClient(base string) Client {
	return Client{Base: base, HTTP: &http.Client{
		Timeout: 2 * time.Minute,
		// A key goes nowhere but to the address that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do sends a request to a path below /v1 and returns its response, whatever its status. A
// body that is not nil is sent as JSON.
func (c Client) Do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+"/v1"+path, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		req.Header.Set("X-Gateway-Api-Key", c.Key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, Unreachable{c.Base, cause(err)}
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		to := resp.Header.Get("Location")
		resp.Body.Close()
		return nil, Unreachable{c.Base, fmt.Errorf("it redirects to %.200q; set %s to the address that answers", to, EnvURL)}
	}
	return resp, nil
}

// Call sends a request and decodes the JSON of its response into out, unless that is nil. A
// status of 400 or above is an *APIError.
func (c Client) Call(ctx context.Context, method, path string, body, out any, header ...string) error {
	resp, err := c.Do(ctx, method, path, body, header...)
	if err != nil {
		return err
	}
	return c.read(method, path, resp, out)
}

// read reads and closes a response, as Call does.
func (c Client) read(method, path string, resp *http.Response, out any) error {
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return Unreachable{c.Base, cause(err)}
	}
	if resp.StatusCode >= 400 {
		return c.failed(method, path, resp, raw)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return Unreachable{c.Base, fmt.Errorf("%s %s: the response is not the JSON of a gateway: %w", method, pathOnly(path), err)}
	}
	return nil
}

// failed returns the error of a response. One that no gateway wrote reports that none is
// reachable.
func (c Client) failed(method, path string, resp *http.Response, raw []byte) error {
	e := &APIError{Method: method, Path: pathOnly(path), Status: resp.StatusCode, Code: resp.Header.Get("X-Gateway-Error-Code"), Trace: resp.Header.Get("X-Gateway-Trace-Id")}
	var body struct {
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	}
	parsed := json.Unmarshal(raw, &body) == nil
	for _, text := range []string{body.Error.Message, body.Data.Message, body.Message} {
		if e.Message == "" {
			e.Message = text
		}
	}
	if !parsed && e.Code == "" || resp.StatusCode >= 502 && resp.StatusCode <= 504 && e.Code == "" {
		return Unreachable{c.Base, fmt.Errorf("%s %s: status %d from something that is not a gateway", method, pathOnly(path), resp.StatusCode)}
	}
	return e
}

func pathOnly(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// cause is the error of a request without its address, which the message names already.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return fmt.Errorf("the name %s does not resolve", dns.Name)
	}
	return err
}

var explainVerb = Verb{Name: "explain", Args: "<log id|trace id>", Summary: "Explain why a request went where it went", Path: []string{"--workspace"}, Run: explain}

// maxExplained limits how many logs of one trace are explained.
const maxExplained = 50

// explanation is the response of GET /logs/{id}/explain.
type explanation struct {
	LogID  string `json:"log_id"`
	Status int    `json:"status"`
	Steps  []struct {
		Step      string   `json:"step"`
		Text      string   `json:"text"`
		Start     *float64 `json:"start_ms"`
		ElapsedMS *float64 `json:"took_ms"`
		Waited    *float64 `json:"waited_ms"`
	} `json:"steps"`
	USD    json.Number `json:"cost_usd"`
	Timing struct {
		Total     float64  `json:"total_ms"`
		FirstByte float64  `json:"first_byte_ms"`
		Gateway   float64  `json:"gateway_ms"`
		FirstCall *float64 `json:"first_call_ms"`
	} `json:"timing"`
}

func explain(ctx context.Context, e Env) int {
	fs := Flags("explain")
	workspace := fs.String("workspace", "", "id or slug of a workspace, for keys of the organization")
	args, asJSON, err := e.Parse(fs, 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	if args[0] == "" || len(args[0]) > 255 {
		return e.Fail(Usagef("explain: the id of a log or of a trace has 1 to 255 characters"))
	}
	client, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	query := url.Values{}
	if *workspace != "" {
		query.Set("workspace_slug", *workspace)
	}
	found, err := client.explanations(ctx, args[0], query)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]any{"object": "list", "data": found}))
	}
	for i, raw := range found {
		var x explanation
		if err := json.Unmarshal(raw, &x); err != nil {
			return e.Fail(Unreachable{client.Base, err})
		}
		if i > 0 {
			fmt.Fprintln(e.Stdout)
		}
		e.printExplanation(&x)
	}
	return ExitDone
}

// explanations returns those of the log with an id, or else of all logs of the trace.
func (c Client) explanations(ctx context.Context, id string, query url.Values) (found []json.RawMessage, err error) {
	one := func(id string) error {
		var x json.RawMessage
		err := c.Call(ctx, http.MethodGet, "/logs/"+url.PathEscape(id)+"/explain?"+query.Encode(), nil, &x)
		if err == nil {
			found = append(found, x)
		}
		return err
	}
	missing := one(id)
	var refused *APIError
	if missing == nil || !errors.As(missing, &refused) || refused.Status != http.StatusNotFound && refused.Status != http.StatusBadRequest {
		return found, missing
	}
	q := url.Values{"trace_id": {id}, "page_size": {fmt.Sprint(maxExplained)}}
	for name, v := range query {
		q[name] = v
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := c.Call(ctx, http.MethodGet, "/logs?"+q.Encode(), nil, &list); err != nil {
		return nil, err
	}
	if len(list.Data) == 0 {
		return nil, fmt.Errorf("no log and no trace has the id %.255q; logs appear about a second after their request ended", id)
	}
	for i := len(list.Data) - 1; i >= 0; i-- { // oldest first
		if err := one(list.Data[i].ID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (e Env) printExplanation(x *explanation) {
	fmt.Fprintf(e.Stdout, "log %s: status %d, %s USD, %.1f ms (%.1f ms in the gateway, first byte after %.1f ms)\n", plain(x.LogID), x.Status, x.USD, x.Timing.Total, x.Timing.Gateway, x.Timing.FirstByte)
	for i, s := range x.Steps {
		fmt.Fprintf(e.Stdout, "%3d. %-11s %s", i+1, plain(s.Step), plain(s.Text))
		if s.Start != nil {
			fmt.Fprintf(e.Stdout, " (at %.1f ms)", *s.Start)
		}
		if s.Waited != nil && *s.Waited > 0 {
			fmt.Fprintf(e.Stdout, " (waited %.1f ms)", *s.Waited)
		}
		fmt.Fprintln(e.Stdout)
	}
}
