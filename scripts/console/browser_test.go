package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const adminKey, workspaceKey = "console-admin-key", "console-workspace-key"

// output is what a program prints.
type output struct {
	mu      sync.Mutex
	printed bytes.Buffer // not embedded: its ReadFrom would pass the lock by
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.printed.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.printed.String()
}

// gateway is the program of ./local, built once for all tests, unless CONSOLE_GATEWAY names
// one.
var gateway struct {
	once sync.Once
	path string
	err  error
}

func built(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("CONSOLE_GATEWAY"); program != "" {
		return program
	}
	gateway.once.Do(func() {
		dir, err := os.MkdirTemp("", "console-test")
		if err != nil {
			gateway.err = err
			return
		}
		gateway.path = filepath.Join(dir, "gateway")
		if out, err := exec.Command("go", "build", "-o", gateway.path, "gateway/local").CombinedOutput(); err != nil {
			gateway.err = fmt.Errorf("%w %s", err, out)
		}
	})
	if gateway.err != nil {
		t.Fatal(gateway.err)
	}
	return gateway.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if gateway.path != "" {
		_ = os.RemoveAll(filepath.Dir(gateway.path))
	}
	os.Exit(code)
}

// startGateway runs ./local and gives the address that it prints for the console.
func startGateway(t *testing.T) string {
	t.Helper()
	program := built(t)
	cmd := exec.Command(program, "-addr", "127.0.0.1:0", "-data", t.TempDir())
	cmd.Env = append(os.Environ(), "GATEWAY_ADMIN_KEY="+adminKey, "GATEWAY_WORKSPACE_KEY="+workspaceKey)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	var at []string
	until(t, "the gateway", func() bool {
		at = regexp.MustCompile(`console on (http://[^/\s]+)/console/\n`).FindStringSubmatch(out.text())
		return at != nil && strings.Contains(out.text(), "gateway ready on")
	})
	return at[1]
}

// hostile is a prompt that must stay text.
const hostile = `<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>`

// send sends a request with a prompt, and more headers or other values of those that it has.
func send(t *testing.T, base, content string, header ...string) {
	t.Helper()
	r, err := http.NewRequest("POST", base+"/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"`+content+`"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"x-gateway-api-key": workspaceKey, "x-gateway-provider": "@mock", "content-type": "application/json"} {
		r.Header.Set(k, v)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Body.Close()
	if got.StatusCode != 200 {
		t.Fatal(got.Status)
	}
}

// logged waits until as many requests are in the log: they come there after their responses.
func logged(t *testing.T, base string, n int) {
	t.Helper()
	until(t, "the log", func() bool {
		r, _ := http.NewRequest("GET", base+"/v1/logs?page_size=1", nil)
		r.Header.Set("x-gateway-api-key", adminKey)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer got.Body.Close()
		var text bytes.Buffer
		_, _ = text.ReadFrom(got.Body)
		return strings.Contains(text.String(), fmt.Sprintf(`"total":%d,`, n))
	})
}

const heading = "document.querySelector('h1')?.innerText"

func TestTheConsoleInABrowser(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	b.size(1440, "light")

	// Without requests, a page shows how to send one. Wherever somebody signs in, the same
	// page is shown afterwards; a wrong key is rejected in words.
	b.open(base + "/console/logs?range=7d")
	b.want(heading + "==='Sign in to the AI gateway'")
	b.shoot("signin-1440-light")
	if faults, _ := b.take(); len(faults) > 0 {
		t.Errorf("sign-in: %q", faults)
	}
	enter := func(key string) {
		b.eval("document.getElementById('key').focus()")
		b.do("Input.insertText", map[string]any{"text": key})
		b.press("Enter", 13, "\r")
	}
	enter("wrong")
	b.want("document.getElementById('wrong').innerText.startsWith('This API key is not valid')")
	b.eval("document.getElementById('key').value=''")
	enter(adminKey)
	b.want(heading + "==='Which requests were made?' && document.querySelector('.empty pre')?.innerText.includes('/v1/chat/completions')")
	b.take() // the browser reports the rejected key

	send(t, base, "Hello")
	send(t, base, hostile)
	logged(t, base, 2)
	b.eval("[...document.querySelectorAll('button')].find((x) => x.innerText==='Refresh').click()")
	b.want("document.querySelectorAll('tbody tr').length===2")

	nav := func(name string) string {
		return "[...document.querySelectorAll('nav a')].find((x) => x.innerText==='" + name + "').click()"
	}
	for _, p := range []struct{ name, click, ready string }{
		{"overview", nav("Overview"), heading + "==='What does the gateway do?' && document.querySelectorAll('canvas').length===4 && document.querySelector('.tiles').innerText.includes('$0.00')"},
		{"logs", nav("Logs"), heading + "==='Which requests were made?' && document.querySelectorAll('tbody tr').length===2"},
		{"request", "document.querySelector('tbody a').click()", heading + "==='What happened to this request?' && document.querySelectorAll('.steps li').length>0 && /^\\/console\\/logs\\/.+/.test(location.pathname)"},
		{"usage", nav("Usage"), heading + "==='Who spends what?' && document.querySelector('main > .scroll')?.innerText.includes('gpt-4o-mini')"},
		{"unknown", "history.pushState(null,'','/console/none'); dispatchEvent(new Event('popstate'))", heading + "==='There is no such page'"},
	} {
		b.take()
		b.eval(p.click)
		b.want(p.ready)
		faults, requests := b.take()
		calls := 0
		for _, a := range requests {
			if strings.HasPrefix(a, base+"/v1/") {
				calls++
			} else if !strings.HasPrefix(a, base+"/console/") {
				t.Errorf("%s asks %s", p.name, a)
			}
			if strings.Contains(a, adminKey) {
				t.Errorf("%s: the key is in an address", p.name)
			}
		}
		if calls > 3 || len(faults) > 0 {
			t.Errorf("%s: %d calls, at most 3; faults %q", p.name, calls, faults)
		}
		if p.name == "request" {
			b.want("document.querySelector('pre[aria-label=Request]').innerText.includes('onerror=')")
			b.want("document.querySelector('main').innerText.includes('Usage') && document.querySelector('main').innerText.includes('Open in the playground')")
		}
		for _, look := range []struct {
			width  int
			scheme string
		}{{360, "light"}, {390, "dark"}, {768, "dark"}, {1440, "dark"}, {1440, "light"}} {
			b.size(look.width, look.scheme)
			b.eval("document.body.offsetWidth")
			if wide := b.eval("document.documentElement.scrollWidth - innerWidth"); strings.HasPrefix(wide, "-") == false && wide != "0" {
				t.Errorf("%s at %d pixels is %s pixels too wide", p.name, look.width, wide)
			}
			b.shoot(fmt.Sprintf("%s-%d-%s", p.name, look.width, look.scheme))
		}
		if unnamed := b.eval("[...document.querySelectorAll('button,a,input,select')].filter((x) => !(x.innerText || x.labels?.length || x.ariaLabel)).map((x) => x.outerHTML).join()"); unnamed != "" {
			t.Errorf("%s has controls without a name: %s", p.name, unnamed)
		}
	}
	if title := b.eval("document.title"); title == "owned" || b.eval("document.querySelectorAll('img').length") != "0" {
		t.Error("content of a prompt became markup")
	}
	if state := b.eval("JSON.stringify([{...localStorage},{...sessionStorage},document.cookie,location.href])"); strings.Contains(state, adminKey) {
		t.Error("the key is stored:", state)
	}

	// The address holds the filters; back and the keyboard work.
	b.eval(nav("Logs"))
	b.want("document.querySelectorAll('tbody tr').length===2")
	b.eval("document.querySelector('[name=status_code]').focus()")
	b.do("Input.insertText", map[string]any{"text": "500"})
	b.press("Tab", 9, "")
	b.want("location.search.includes('status_code=500') && document.querySelector('.empty')?.innerText.includes('No request passes')")
	b.eval("document.querySelector('.empty a').click()")
	b.want("location.search==='' && document.querySelectorAll('tbody tr').length===2")
	b.eval("document.activeElement?.blur()")
	b.press("/", 191, "/")
	b.want("document.activeElement.id==='find' && document.activeElement.value===''")
	b.take()
	b.do("Input.insertText", map[string]any{"text": "01NONE"})
	b.press("Enter", 13, "\r")
	b.want("document.querySelector('[role=alert]')?.innerText.includes('Try again') && document.querySelector('[role=alert]').innerText.includes('Code')")
	b.shoot("error-1440-light")
	b.eval("history.back()")
	b.want("location.pathname==='/console/logs' && document.querySelectorAll('tbody tr').length===2")
	b.eval("[...document.querySelectorAll('button')].find((x) => x.innerText==='Sign out').click()")
	b.want(heading + "==='Sign in to the AI gateway' && document.getElementById('key').value===''")
}
