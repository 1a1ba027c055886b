package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/wire/release"
)

var doctorVerb = Verb{Name: "doctor", Summary: "Check the connection to the gateway, the key and every provider; each failure has a fix", Path: []string{"--no-requests"}, Run: doctor}

// Results of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn" // works, but not for everything
	checkFail = "fail"
	checkSkip = "skip"
)

// diagnosis is one line.
type diagnosis struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
	Repair string `json:"repair,omitempty"`
	Cost   string `json:"cost_usd,omitempty"`
}

// examiner makes the diagnoses and prints them as they come.
type examiner struct {
	env   Env
	base  string
	url   *url.URL
	plain Client // without a key, does not follow redirects
	keyed Client

	json bool
	all  []diagnosis
}

func doctor(ctx context.Context, e Env) int {
	fs := Flags("doctor")
	noRequests := fs.Bool("no-requests", false, "send no request to a provider: nothing is charged")
	_, asJSON, err := e.Parse(fs, 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	base, err := e.Address()
	if err != nil {
		return e.Fail(err)
	}
	x := &examiner{env: e, base: base, plain: newClient(base), json: asJSON}
	if x.url, err = url.Parse(base); err != nil {
		return e.Fail(Usagef("%s: %v", EnvURL, err))
	}
	x.plain.HTTP.Timeout = 30 * time.Second
	reached := x.checkConnection(ctx)
	if reached {
		x.redirects(ctx)
		if x.key(ctx) && !*noRequests {
			x.providers(ctx)
		}
		x.protocols(ctx)
	}
	failed := slices.ContainsFunc(x.all, func(d diagnosis) bool { return d.Result == checkFail })
	if asJSON {
		if err := json.NewEncoder(e.Stdout).Encode(map[string]any{"url": base, "ok": !failed, "checks": x.all}); err != nil {
			return e.Fail(err)
		}
	}
	switch {
	case !reached:
		return ExitUnreachable
	case failed:
		return ExitRefused
	}
	return ExitDone
}

func (x *examiner) add(d diagnosis) {
	x.all = append(x.all, d)
	if x.json {
		return
	}
	line := fmt.Sprintf("%-4s  %-22s %s", d.Result, d.Check, plain(d.Detail))
	if d.Repair != "" {
		line += "\n      repair: " + plain(d.Repair)
	}
	fmt.Fprintln(x.env.Stdout, line)
}

func (x *examiner) report(check, result, detail, repair string) {
	x.add(diagnosis{Check: check, Result: result, Detail: detail, Repair: repair})
}

// checkConnection checks everything up to the first response. It reports whether a gateway answers.
func (x *examiner) checkConnection(ctx context.Context) bool {
	host := x.url.Hostname()
	proxy := x.proxy()
	if proxy == "" {
		if names, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
			x.report("DNS", checkFail, "the name "+host+" does not resolve", "correct "+EnvURL+", or the DNS server of this machine")
			return false
		} else {
			x.report("DNS", checkOK, host+" is "+strings.Join(names[:min(3, len(names))], ", "), "")
		}
		if x.url.Scheme == "https" {
			if !x.tls(ctx) {
				return false
			}
		}
	}
	if x.url.Scheme == "http" {
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			x.report("TLS", checkSkip, "plain HTTP on this machine", "")
		} else {
			x.report("TLS", checkWarn, "plain HTTP: keys and prompts can be read on the way", "serve the gateway with TLS and use https:// in "+EnvURL)
		}
	}
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.base+"/healthz", nil)
	if err != nil {
		x.report("gateway", checkFail, err.Error(), "correct "+EnvURL)
		return false
	}
	resp, err := x.plain.HTTP.Do(req)
	if err != nil {
		repair := "start the gateway, or correct " + EnvURL + " and the firewall between"
		if proxy != "" {
			repair = "check the proxy " + proxy + ", or exempt the gateway with NO_PROXY"
		}
		x.report("gateway", checkFail, cause(err).Error(), repair)
		return false
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	resp.Body.Close()
	elapsed := time.Since(begun)
	version, ours := strings.CutPrefix(strings.TrimSpace(string(body)), "gateway ")
	if resp.StatusCode != http.StatusOK || !ours {
		x.report("gateway", checkFail, fmt.Sprintf("status %d at /healthz from something that is not a gateway", resp.StatusCode), "correct "+EnvURL+": it is the address before /v1")
		return false
	}
	x.report("gateway", checkOK, fmt.Sprintf("version %.40s answers in %d ms", version, elapsed.Milliseconds()), "")
	if version != release.Version {
		x.report("version", checkWarn, fmt.Sprintf("this program is %s", release.Version), "use a command line of the same version")
	}
	x.clock(resp.Header.Get("Date"))
	return true
}

// proxy returns the proxy of the environment without its credentials; "" if there is none.
func (x *examiner) proxy() string {
	req := &http.Request{URL: x.url}
	u, err := http.ProxyFromEnvironment(req)
	switch {
	case err != nil:
		x.report("proxy", checkFail, "the proxy of the environment is not a valid address", "correct HTTPS_PROXY and HTTP_PROXY")
		return ""
	case u == nil:
		return ""
	}
	at := u.Scheme + "://" + u.Host
	x.report("proxy", checkOK, "requests go through "+at, "")
	return at
}

// certificateWarning is how long before its end a certificate is reported.
const certificateWarning = 14 * 24 * time.Hour

func (x *examiner) tls(ctx context.Context) bool {
	port := x.url.Port()
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(x.url.Hostname(), port))
	var bad *tls.CertificateVerificationError
	switch {
	case errors.As(err, &bad):
		x.report("TLS", checkFail, bad.Err.Error(), "install a certificate for "+x.url.Hostname()+", or trust its issuer on this machine (SSL_CERT_FILE)")
		return false
	case err != nil:
		x.report("TLS", checkFail, cause(err).Error(), "start the gateway, or correct "+EnvURL+" and the firewall between")
		return false
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	ends := state.PeerCertificates[0].NotAfter
	if left := time.Until(ends); left < certificateWarning {
		x.report("TLS", checkWarn, fmt.Sprintf("the certificate ends in %d days", int(left.Hours()/24)), "renew the certificate")
	} else {
		x.report("TLS", checkOK, tls.VersionName(state.Version)+", certificate until "+ends.Format("2006-01-02"), "")
	}
	return true
}

// clockSkew is how far the clocks may be apart: signatures and tokens depend on them.
const clockSkew = 30 * time.Second

func (x *examiner) clock(date string) {
	at, err := http.ParseTime(date)
	if err != nil {
		x.report("clock", checkSkip, "the gateway sends no time", "")
		return
	}
	if skew := time.Since(at).Round(time.Second); skew.Abs() > clockSkew {
		x.report("clock", checkFail, fmt.Sprintf("the clocks of this machine and of the gateway differ by %s", skew.Abs()), "synchronize the clock (NTP)")
	} else {
		x.report("clock", checkOK, "the clocks agree", "")
	}
}

// redirects checks that no address that clients use redirects: many send their body or their
// key only once.
func (x *examiner) redirects(ctx context.Context) {
	for _, path := range []string{"/", "/v1"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.base+path, nil)
		if err != nil {
			continue
		}
		resp, err := x.plain.HTTP.Do(req)
		if err != nil {
			x.report("redirects at "+path, checkFail, cause(err).Error(), "try again")
			continue
		}
		resp.Body.Close()
		if resp.StatusCode >= 300 && resp.StatusCode < 400 {
			x.report("redirects at "+path, checkFail, fmt.Sprintf("status %d to %.200s", resp.StatusCode, resp.Header.Get("Location")), "set "+EnvURL+" to the address that answers itself")
		} else {
			x.report("redirects at "+path, checkOK, "none", "")
		}
	}
}

// key checks the key and its scopes. It reports whether providers can be tried.
func (x *examiner) key(ctx context.Context) bool {
	var err error
	if x.keyed, err = x.env.Client(ctx); err != nil {
		x.report("key", checkFail, err.Error(), "set "+EnvKey+" to a key of the workspace, or sign in with gateway login")
		return false
	}
	usable := false
	for _, c := range []struct{ scope, path, use string }{
		{"models.list", "/models", "setup and the tests of providers"},
		{"logs.list", "/logs?page_size=0", "logs tail, explain by trace, and costs"},
		{"virtual_keys.list", "/virtual-keys?page_size=1", "export"},
	} {
		err := x.keyed.Call(ctx, http.MethodGet, c.path, nil, nil)
		var refused *APIError
		switch {
		case err == nil:
			x.report("scope "+c.scope, checkOK, "allowed", "")
			usable = usable || c.scope == "models.list"
		case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
			x.report("key", checkFail, "the gateway does not accept the key: "+refused.Message, "create a key in the console or with POST /v1/api-keys, and set "+EnvKey)
			return false
		case errors.As(err, &refused) && refused.Status < 500:
			x.report("scope "+c.scope, checkWarn, "not allowed, but needed for "+c.use, "add the scope "+c.scope+" to the key, or use a key of a workspace")
		default:
			x.report("scope "+c.scope, checkFail, err.Error(), "check the log of the gateway")
		}
	}
	return usable
}

// small are beginnings of names of models that cost little, best first.
var small = []string{"gpt-4o-mini", "gpt-4.1-nano", "gpt-5-nano", "claude-haiku", "claude-3-haiku", "gemini-2.5-flash-lite", "gemini-2.5-flash", "gemini", "mistral-small", "command-r", "llama", "claude", "gpt"}

// triesPerProvider is how many requests are sent to a provider at most.
const triesPerProvider = 3

// providers sends each provider a small request, with another model if the first is not one
// for conversations.
func (x *examiner) providers(ctx context.Context) {
	ids, err := x.keyed.models(ctx)
	if err != nil {
		x.report("providers", checkFail, err.Error(), "check the log of the gateway")
		return
	}
	models := map[string][]string{}
	var slugs []string
	for _, id := range ids {
		slug, model, ok := strings.Cut(strings.TrimPrefix(id, "@"), "/")
		if !ok || !strings.HasPrefix(id, "@") {
			continue
		}
		if models[slug] == nil {
			slugs = append(slugs, slug)
		}
		models[slug] = append(models[slug], model)
	}
	if len(slugs) == 0 {
		x.report("providers", checkWarn, "the workspace of the key has no provider with models", "save a provider, in the console or with POST /v1/virtual-keys")
	}
	slices.Sort(slugs)
	for _, slug := range slugs {
		x.add(x.provider(ctx, slug, models[slug]))
	}
}

func (x *examiner) provider(ctx context.Context, slug string, models []string) diagnosis {
	d := diagnosis{Check: "provider @" + slug}
	for try := 0; try < triesPerProvider && len(models) > 0; try++ {
		model := pick(models, small)
		models = slices.DeleteFunc(slices.Clone(models), func(m string) bool { return m == model })
		begun := time.Now()
		body := map[string]any{"model": "@" + slug + "/" + model, "max_tokens": 16, "messages": []map[string]string{{"role": "user", "content": "Say OK."}}}
		cost, elapsed, err := x.request(ctx, body, begun)
		if err == nil {
			d.Result, d.Cost = checkOK, cost
			d.Detail, d.Repair = fmt.Sprintf("%s answers in %d ms%s", model, elapsed.Milliseconds(), costText(cost)), ""
			return d
		}
		d.Result, d.Detail = checkFail, model+": "+err.Error()
		d.Repair = repairOf(err, slug)
		var refused *APIError
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest && refused.Status != http.StatusNotFound {
			return d
		}
	}
	return d
}

func (x *examiner) request(ctx context.Context, body any, begun time.Time) (cost string, elapsed time.Duration, err error) {
	resp, err := x.keyed.Do(ctx, http.MethodPost, "/chat/completions", body)
	if err != nil {
		return "", 0, err
	}
	if err := x.keyed.read(http.MethodPost, "/chat/completions", resp, nil); err != nil {
		return "", 0, err
	}
	elapsed = time.Since(begun)
	return x.keyed.costOf(ctx, resp.Header.Get("X-Gateway-Trace-Id")), elapsed, nil
}

// repairOf names the party at fault.
func repairOf(err error, slug string) string {
	var refused *APIError
	if !errors.As(err, &refused) {
		return "check the log of the gateway"
	}
	switch {
	case refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden:
		return "the credential of @" + slug + " is rejected: correct it with PUT /v1/virtual-keys/" + slug
	case refused.Status == http.StatusPaymentRequired || refused.Status == http.StatusPreconditionFailed:
		return "a budget is used up: raise it, or wait for its reset"
	case refused.Status == http.StatusTooManyRequests:
		return "a rate limit of the provider or of a policy is reached: wait, or raise it"
	case refused.Status >= 500:
		return "the provider or the connection to it fails: gateway explain " + refused.Trace
	}
	return "correct the models of @" + slug + ": gateway explain " + refused.Trace
}

// protocols checks that MCP and WebSockets reach the gateway.
func (x *examiner) protocols(ctx context.Context) {
	status := func(method, path string, header ...string) (int, error) {
		req, err := http.NewRequestWithContext(ctx, method, x.base+path, nil)
		if err != nil {
			return 0, err
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := x.plain.HTTP.Do(req)
		if err != nil {
			return 0, cause(err)
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	code, err := status(http.MethodGet, "/v1/.well-known/oauth-authorization-server")
	switch {
	case err != nil:
		x.report("MCP", checkFail, err.Error(), "let the proxy pass /v1/mcp and /.well-known")
	case code == http.StatusOK:
		x.report("MCP", checkOK, "the authorization server of MCP clients answers", "")
	default:
		x.report("MCP", checkWarn, fmt.Sprintf("status %d at /v1/.well-known/oauth-authorization-server", code), "let the proxy pass /v1/mcp and /.well-known")
	}
	// Without a key the upgrade is rejected with 401, which shows that it arrives; 400 says
	// that something on the way removed it.
	code, err = status(http.MethodGet, "/v1/realtime?model=doctor", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "Z2F0ZXdheSBkb2N0b3IhIQ==")
	switch {
	case err != nil:
		x.report("realtime", checkFail, err.Error(), "let the proxy pass WebSockets")
	case code == http.StatusUnauthorized:
		x.report("realtime", checkOK, "WebSockets reach the gateway", "")
	case code == http.StatusNotImplemented:
		x.report("realtime", checkWarn, "this installation serves no WebSockets", "deploy the container for realtime sessions")
	default:
		x.report("realtime", checkWarn, fmt.Sprintf("an upgrade to WebSocket gets status %d", code), "let the proxy pass the headers Connection and Upgrade")
	}
}
