package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// network is what is between a browser and a gateway: it holds, answers and cuts requests.
type network struct {
	at    string // its address
	mu    sync.Mutex
	rules map[string]func(w http.ResponseWriter, next func()) // by the beginning of a path
	serve *httptest.Server
}

func startNetwork(t *testing.T, base string) *network {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{rules: map[string]func(http.ResponseWriter, func()){}}
	// The Host header stays: the gateway compares the Origin with it.
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	n.serve = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		var rule func(http.ResponseWriter, func())
		for prefix, f := range n.rules {
			if strings.HasPrefix(r.URL.Path, prefix) {
				rule = f
			}
		}
		n.mu.Unlock()
		next := func() { forward.ServeHTTP(w, r) }
		if rule == nil {
			next()
		} else {
			rule(w, next)
		}
	}))
	n.at = n.serve.URL
	t.Cleanup(func() {
		n.serve.CloseClientConnections()
		n.serve.Close()
	})
	return n
}

// rule sets what happens to requests of a path; nil lets them pass.
func (n *network) rule(prefix string, f func(w http.ResponseWriter, next func())) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f == nil {
		delete(n.rules, prefix)
	} else {
		n.rules[prefix] = f
	}
}

// hold keeps requests of a path until the returned function is called.
func (n *network) hold(prefix string) (release func()) {
	held := make(chan struct{})
	n.rule(prefix, func(_ http.ResponseWriter, next func()) {
		<-held
		next()
	})
	return sync.OnceFunc(func() {
		n.rule(prefix, nil)
		close(held)
	})
}

const rows = "document.querySelectorAll('main > .scroll tbody tr').length"

func TestFaultsOfTheConsole(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	b.size(1440, "light")
	made := must(t, base, adminKey, "POST", "/api-keys/workspace/service", object{"name": "k", "workspace_id": "default", "scopes": []string{"logs.list", "logs.view"}})
	send(t, base, "Hello")
	logged(t, base, 1)
	const at = "/console/logs?ai_model=gpt-4o-mini&range=7d"
	b.open(base + at)
	b.signIn(made["key"].(string))
	b.want("document.querySelectorAll('tbody tr').length===1")

	// Without a connection the page says so, and a button tries again.
	b.do("Network.setBlockedURLs", map[string]any{"urls": []string{"*/v1/logs*"}})
	b.clickOn("Refresh")
	b.want("document.querySelector('[role=alert]')?.innerText.includes('cannot be reached')")
	b.do("Network.setBlockedURLs", map[string]any{"urls": []string{}})
	b.clickOn("Try again")
	b.want("document.querySelectorAll('tbody tr').length===1")

	// A session that ends leads to sign-in, and from there back to the same page.
	must(t, base, adminKey, "DELETE", "/api-keys/"+made["id"].(string), nil)
	until(t, "the end of the session", func() bool {
		b.eval("[...document.querySelectorAll('main button')].find((x) => x.innerText==='Refresh')?.click()")
		return b.eval(heading) == "Sign in to the AI gateway"
	})
	b.want("document.getElementById('wrong').innerText.includes('session has ended')")
	b.signIn(adminKey)
	b.want("location.pathname+location.search===" + fmt.Sprintf("%q", at) + " && document.querySelectorAll('tbody tr').length===1")

	// An error of the API shows code, field and trace id.
	b.open(base + "/console/budgets/new")
	b.fill("[name=credit_limit]", "-1")
	b.clickOn("Create")
	b.want("document.querySelector('[role=alert]')?.innerText.includes('credit_limit')")
	for _, word := range []string{"Code", "Field", "Trace id"} {
		if !slices.Contains(strings.Fields(b.eval("document.querySelector('[role=alert]').innerText")), strings.Fields(word)[0]) {
			t.Errorf("the error does not show %s", word)
		}
	}
}

// startLogs signs in over a network at the logs of a gateway with one request.
func startLogs(t *testing.T) (b *browser, base string, n *network) {
	t.Helper()
	b, base = startBrowser(t), startGateway(t)
	n = startNetwork(t, base)
	b.size(1440, "light")
	send(t, base, "Hello")
	logged(t, base, 1)
	b.open(n.at + "/console/logs")
	b.signIn(adminKey)
	b.want(rows + "===1")
	return b, base, n
}

// TestSlowAndBrokenResponses puts a network between the browser and the gateway.
func TestSlowAndBrokenResponses(t *testing.T) {
	b, _, n := startLogs(t)
	nav := func(name string) {
		t.Helper()
		b.eval("[...document.querySelectorAll('nav a')].find((x) => x.innerText==='" + name + "').click()")
	}

	// A slow response: the page says that it loads, and other pages can be opened. A response
	// that arrives after its page was left does not replace what is shown.
	release := n.hold("/v1/api-keys")
	defer release()
	nav("Keys")
	b.want("document.querySelector('.loading[role=status]')?.innerText.includes('Loading')")
	b.shoot("slow-1440-light")
	nav("Logs")
	b.want(rows + "===1")
	nav("Keys")
	b.want(heading + "==='Who may call the gateway?' && document.querySelector('.loading')")
	release()
	b.want(rows + ">=2")

	// An error of the gateway, a page of a proxy, and a response that ends early are reported in
	// words, and a button tries again.
	for name, c := range map[string]struct {
		message string
		rule    func(w http.ResponseWriter, next func())
	}{
		"500": {"Something failed", func(w http.ResponseWriter, _ func()) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Gateway-Trace-Id", "trace-of-the-error")
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"success":false,"error":{"message":"Something failed","code":"AB00"}}`))
		}},
		"502": {"status 502", func(w http.ResponseWriter, _ func()) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(502)
			_, _ = w.Write([]byte(hostileName))
		}},
		"html": {"is not JSON", func(w http.ResponseWriter, _ func()) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(hostileName))
		}},
		"cut": {"ended early", func(w http.ResponseWriter, _ func()) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"data":[`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	} {
		n.rule("/v1/configs", c.rule)
		nav("Configs")
		b.want(fmt.Sprintf("document.querySelector('[role=alert]')?.innerText.includes(%q)", c.message))
		if name == "500" {
			b.want("document.querySelector('[role=alert]').innerText.includes('trace-of-the-error')")
			b.shoot("fault-1440-light")
		}
		n.rule("/v1/configs", nil)
		b.clickOn("Try again")
		b.want("document.querySelector('.empty')?.innerText.includes('There is no config yet')")
		nav("Logs")
		b.want(rows + "===1")
	}

	// A part of the console that cannot be loaded.
	n.rule("/console/assets/details-", func(w http.ResponseWriter, _ func()) { w.WriteHeader(404) })
	b.open(n.at + "/console/guardrails/verdicts")
	b.want("document.querySelector('[role=alert]')?.innerText.includes('cannot be loaded')")
	n.rule("/console/assets/details-", nil)
	b.clickOn("Try again")
	b.want(heading + "==='What was denied?' && document.querySelector('.tiles')")
	if title := b.eval("document.title"); title == "owned" {
		t.Error("a page of a proxy became markup")
	}
}

// TestACutTailReconnects cuts and rejects the connection of the live log.
func TestACutTailReconnects(t *testing.T) {
	b, base, n := startLogs(t)
	const live = "document.querySelector('section[aria-label=Live]')"
	b.clickOn("Live")
	b.want(live + "?.innerText.includes('0 new requests') && " + live + ".querySelector('.badge.good')")

	release := n.hold("/v1/logs/tail")
	defer release()
	n.serve.CloseClientConnections()
	b.want(live + ".querySelector('.badge.wait')")
	send(t, base, "While it is cut")
	release()
	b.want(live + ".querySelector('.badge.good') && " + live + ".querySelectorAll('tbody tr').length===1")

	n.rule("/v1/logs/tail", func(w http.ResponseWriter, _ func()) { w.WriteHeader(http.StatusServiceUnavailable) })
	n.serve.CloseClientConnections()
	b.want(live + ".querySelector('.badge.wait')")
	n.rule("/v1/logs/tail", nil)
	b.want(live + ".querySelector('.badge.good')")
	send(t, base, "After it was refused")
	b.want(live + ".querySelectorAll('tbody tr').length===2")
}

// TestALiveLogLimitsItsMemory follows the log for many more requests than the table holds. With
// CONSOLE_TAIL, such as 30m, they are spread over that time, one a second.
func TestALiveLogLimitsItsMemory(t *testing.T) {
	b, base, _ := startLogs(t)
	requests, pause := 300, time.Duration(0)
	if spread := os.Getenv("CONSOLE_TAIL"); spread != "" {
		d, err := time.ParseDuration(spread)
		if err != nil {
			t.Fatal(err)
		}
		requests, pause = int(d/time.Second), time.Second
	}
	const live = "document.querySelector('section[aria-label=Live]')"
	b.clickOn("Live")
	b.want(live + "?.querySelector('.badge.good')")
	sent := 0
	follow := func(n int) (bytes, nodes float64) {
		for i := range n {
			send(t, base, "Hello")
			time.Sleep(pause)
			if sent++; i%25 == 24 {
				b.want(fmt.Sprintf("%s.innerText.replaceAll(/[^0-9a-z ]/g, '').includes(' %d new requests')", live, sent))
			}
		}
		b.do("HeapProfiler.collectGarbage", nil)
		var heap struct{ UsedSize float64 }
		b.call(b.session, "Runtime.getHeapUsage", nil, &heap)
		var counted struct{ Nodes float64 }
		b.call(b.session, "Memory.getDOMCounters", nil, &counted)
		return heap.UsedSize, counted.Nodes
	}
	heap, nodes := follow(150)
	later, more := follow(requests)
	t.Logf("after 150 requests %.2f MB, %.0f nodes; after %d more %.2f MB, %.0f nodes", heap/1e6, nodes, requests, later/1e6, more)
	if later > heap+1e6 || more > nodes+500 {
		t.Errorf("the page grew from %.0f to %.0f bytes and from %.0f to %.0f nodes", heap, later, nodes, more)
	}
}

// TestTwoTabsShareASession signs out and in again in one tab while another one is open.
func TestTwoTabsShareASession(t *testing.T) {
	one := startBrowser(t)
	base := startGateway(t)
	policy := must(t, base, adminKey, "POST", "/configs", object{"name": "Shared", "workspace_id": "default", "config": object{"provider": "@mock"}})["slug"].(string)
	at := base + "/console/configs/" + policy
	one.open(at)
	one.signIn(adminKey)
	one.want("document.querySelector('.tree')")
	two := one.tab()
	two.open(at)
	two.clickOn("Versions") // with the last call of the page
	two.want("document.querySelector('[aria-label=Versions]')")

	// A session that ends in one tab ends in both; the other one returns to its page.
	one.clickOn("Sign out")
	one.want(heading + "==='Sign in to the AI gateway'")
	two.eval("[...document.querySelectorAll('nav a')].find((x) => x.innerText==='Keys').click()")
	two.want("document.getElementById('wrong')?.innerText.includes('session has ended')")
	two.signIn(adminKey)
	two.want(heading + "==='Who may call the gateway?' && location.pathname==='/console/keys'")

	// The first tab has the token of the session before. Its changes continue with the new one.
	one.open(at)
	one.clickOn("Versions")
	one.want("document.querySelector('[aria-label=Versions]')")
	two.clickOn("Sign out")
	two.signIn(adminKey)
	one.clickOn("JSON")
	one.fill("#config", `{"provider":"@mock","retry":{"attempts":2}}`)
	one.clickOn("Save as a new version")
	one.want("document.querySelector('.tree')?.innerText.includes('attempts')")
	one.clickOn("Versions")
	one.want("document.querySelectorAll('[aria-label=Versions] tbody tr').length===2")

	// Someone else's session changes nothing for the first tab.
	two.clickOn("Sign out")
	two.signIn(workspaceKey)
	one.clickOn("JSON")
	one.fill("#config", `{"provider":"@mock"}`)
	one.clickOn("Save as a new version")
	one.want("document.body.innerText.includes('You may not see this page')")
	if config := fmt.Sprint(must(t, base, adminKey, "GET", "/configs/"+policy+"?workspace_id=default", nil)); !strings.Contains(config, "attempts") {
		t.Error("the config was changed with the rights of another session: ", config)
	}
}

// TestAWrongClockShowsTheSameRequests opens the console on a machine whose clock is a day slow.
func TestAWrongClockShowsTheSameRequests(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	send(t, base, "Hello")
	logged(t, base, 1)
	b.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `{ const Real = Date, wrong = 36 * 3600_000;
		Date = class extends Real { constructor(...a) { super(...(a.length ? a : [Real.now() - wrong])); } static now() { return Real.now() - wrong; } }; }`})
	b.open(base + "/console/logs")
	b.signIn(adminKey)
	b.want(rows + "===1")
}
