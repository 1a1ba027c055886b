package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// browser is one page of a headless Chromium, driven by its debugging protocol.
type browser struct {
	t    *testing.T
	at   string // address of the browser's protocol
	conn *websocket.Conn
	id   int

	session string // of the page

	mu       sync.Mutex
	answers  map[int]chan json.RawMessage
	faults   []string // what the page reported since the last take
	requests []string // addresses of requests since the last take
}

// chromium finds the browser: that of the machine, or else that of the npm package which
// `make deps` installs.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	cmd := exec.Command("node", "--input-type=module", "-e", "const {default: c} = await import('@sparticuz/chromium'); console.log(await c.executablePath())")
	cmd.Dir = "../clients"
	path, err := cmd.Output()
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("no Chromium on this machine: run make deps on x86-64, or install Debian's package chromium, to test the console in a browser")
	}
	return strings.TrimSpace(string(path))
}

// startBrowser opens a blank page. It skips the test on machines without Chromium.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	program := chromium(t)
	// Not t.TempDir: helpers of the browser may write after its end, which fails a test.
	profile, err := os.MkdirTemp("", "console-browser")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--remote-debugging-port=0", "--user-data-dir="+profile, "about:blank")
	cmd.Env = append(os.Environ(), "LANG=en_US.UTF-8", "LC_ALL=en_US.UTF-8") // Chromium has no valid language for the locale POSIX
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its helpers
		_ = cmd.Wait()
		until(t, "the profile to be removed", func() bool { return os.RemoveAll(profile) == nil })
	})
	var port, path string
	until(t, "the browser", func() bool {
		raw, _ := os.ReadFile(filepath.Join(profile, "DevToolsActivePort"))
		port, path, _ = strings.Cut(strings.TrimSpace(string(raw)), "\n")
		return path != ""
	})
	return attach(t, "ws://127.0.0.1:"+port+path)
}

// tab opens another blank page, which has the same cookies.
func (b *browser) tab() *browser {
	b.t.Helper()
	return attach(b.t, b.at)
}

// attach opens a blank page of the browser at an address.
func attach(t *testing.T, at string) *browser {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, at: at, conn: conn, answers: map[int]chan json.RawMessage{}}
	t.Cleanup(func() { _ = conn.Close() })
	go b.read()
	var target struct{ TargetID, SessionID string }
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.do(domain+".enable", nil)
	}
	return b
}

func (b *browser) read() {
	for {
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if b.conn.ReadJSON(&m) != nil {
			return
		}
		b.mu.Lock()
		if answer := b.answers[m.ID]; m.ID != 0 && answer != nil {
			if m.Error != nil {
				m.Result, _ = json.Marshal(map[string]string{"protocolError": m.Error.Message})
			}
			answer <- m.Result
			delete(b.answers, m.ID)
		}
		b.note(m.Method, m.Params)
		b.mu.Unlock()
	}
}

// note records faults of a page, and its requests.
func (b *browser) note(method string, params json.RawMessage) {
	var p struct {
		Type    string
		Entry   struct{ Level, Text, URL string }
		Request struct{ URL string }
	}
	_ = json.Unmarshal(params, &p)
	switch {
	case method == "Runtime.exceptionThrown", method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning"):
		b.faults = append(b.faults, string(params))
	case method == "Log.entryAdded" && p.Entry.Level == "error":
		b.faults = append(b.faults, p.Entry.Text+" "+p.Entry.URL)
	case method == "Network.requestWillBeSent":
		b.requests = append(b.requests, p.Request.URL)
	}
}

// take returns the faults and requests since the last take.
func (b *browser) take() (faults, requests []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults, requests = b.faults, b.requests
	b.faults, b.requests = nil, nil
	return faults, requests
}

func (b *browser) call(session, method string, params map[string]any, out any) {
	b.t.Helper()
	answer := make(chan json.RawMessage, 1)
	b.mu.Lock()
	b.id++
	b.answers[b.id] = answer
	m := map[string]any{"id": b.id, "method": method, "params": params}
	if session != "" {
		m["sessionId"] = session
	}
	err := b.conn.WriteJSON(m)
	b.mu.Unlock()
	if err != nil {
		b.t.Fatal(err)
	}
	select {
	case raw := <-answer:
		if out != nil {
			if err := json.Unmarshal(raw, out); err != nil {
				b.t.Fatal(method, err)
			}
		}
		if strings.Contains(string(raw), "protocolError") {
			b.t.Fatalf("%s: %s", method, raw)
		}
	case <-time.After(patience):
		b.t.Fatal("no answer to", method)
	}
}

func (b *browser) do(method string, params map[string]any) {
	b.t.Helper()
	b.call(b.session, method, params, nil)
}

// eval returns the value of an expression in the page as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call(b.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, out.ExceptionDetails)
	}
	return fmt.Sprint(out.Result.Value)
}

func (b *browser) open(address string) {
	b.t.Helper()
	b.do("Page.navigate", map[string]any{"url": address})
}

// want waits until an expression of the page is true.
func (b *browser) want(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); b.eval("!!("+expression+")") != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			faults, _ := b.take()
			b.t.Fatalf("waited in vain for %s; the page reports %q and shows %s", expression, faults, b.eval("document.body?.innerText.slice(0, 500)"))
		}
	}
}

// press types a key, such as Tab or Enter.
func (b *browser) press(key string, code int, text string) {
	b.t.Helper()
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": code, "text": text})
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})
}

func (b *browser) size(width int, scheme string) {
	b.t.Helper()
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false})
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// shoot stores a picture of the page in the folder CONSOLE_SCREENSHOTS, where it is set.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("CONSOLE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var out struct{ Data string }
	b.call(b.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	raw, err := base64.StdEncoding.DecodeString(out.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// patience is how long to wait for something that must happen, such as the start of a browser
// beside other tests on a slow machine.
const patience = 3 * time.Minute

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for ", what)
		}
	}
}
