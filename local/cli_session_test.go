package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Doctor finds nothing on a sound gateway, tries each provider and says what it cost.
func TestDoctorPassesOnASoundGateway(t *testing.T) {
	t.Parallel()
	r := start(t)
	d := r.cliUser(workspaceKey)
	out := d.wants(0, "provider @mock", "doctor")
	for _, want := range []string{"ok    DNS", "ok    gateway", "ok    clock", "ok    redirects at /v1", "ok    scope logs.list", "ok    MCP", "ok    realtime", "that cost 0.0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := len(r.records(2)); n > 6 {
		t.Errorf("%d requests for two providers", n)
	}
	var result struct {
		OK     bool
		Checks []struct{ Check, Result, Repair string }
	}
	if err := json.Unmarshal([]byte(d.wants(0, "", "doctor", "--json", "--no-requests")), &result); err != nil || !result.OK || len(result.Checks) < 8 {
		t.Errorf("%v %+v", err, result)
	}
	for _, c := range result.Checks {
		if strings.HasPrefix(c.Check, "provider") {
			t.Errorf("--no-requests tried %s", c.Check)
		}
	}
	// A key of the organization asks no provider, and doctor says so.
	r.cliUser(adminKey).wants(0, "repair: add the scope models.list", "doctor")
}

// Each fault has exit code 1 and a repair.
func TestDoctorNamesFaultsWithTheirRepair(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`))
	}))
	defer host.Close()
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"bad","slug":"bad","provider":"openai","key":"sk-wrong","workspace_id":"default","customHost":%q}`, host.URL))
	d := r.cliUser(workspaceKey)
	out := d.wants(1, "fail  provider @bad", "doctor")
	if !strings.Contains(out, "credential of @bad is rejected") || !strings.Contains(out, "ok    provider @mock ") {
		t.Errorf("%s", out)
	}
	d.vars["GATEWAY_API_KEY"] = "no-such-key"
	d.wants(1, "does not accept the key", "doctor")
	d.vars["GATEWAY_API_KEY"] = ""
	d.wants(1, "sign in with gateway login", "doctor")
	d.vars["GATEWAY_URL"] = "http://127.0.0.1:1"
	d.wants(3, "start the gateway", "doctor")
	d.vars["GATEWAY_URL"] = "http://no-such-host.invalid"
	d.wants(3, "does not resolve", "doctor")
	d.vars["GATEWAY_URL"] = "gateway"
	d.wants(2, "must be an address", "doctor")
	d.wants(2, "unexpected argument", "doctor", "more")

	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		if req.URL.Path == "/healthz" {
			_, _ = w.Write([]byte("gateway 0.0.1\n"))
			return
		}
		http.Redirect(w, req, "https://elsewhere.example.com/", http.StatusMovedPermanently)
	}))
	defer odd.Close()
	d.vars["GATEWAY_URL"], d.vars["GATEWAY_API_KEY"] = odd.URL, "k"
	out = d.wants(1, "synchronize the clock", "doctor")
	for _, want := range []string{"fail  redirects at /v1", "warn  version", "https://elsewhere.example.com/"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	d.vars["GATEWAY_URL"] = page.URL
	d.wants(3, "not a gateway", "doctor")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	d.vars["GATEWAY_URL"] = secure.URL
	d.wants(3, "SSL_CERT_FILE", "doctor")
}

var shownCode = regexp.MustCompile(`enter the code (\S+)`)

// A person signs in by a browser of this machine or by a code elsewhere. The token is
// stored for the user alone, opens this gateway and no other, and ends with login --out.
func TestLoginStoresASession(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	allow := func(address string) error {
		l.sendForm(l.visit(address, l.session), l.session, "allow")
		return nil
	}
	for _, way := range []string{"browser", "code", "keyring"} {
		t.Run(way, func(t *testing.T) {
			d := l.cliUser("")
			d.t = t
			args := []string{"login"}
			switch way {
			case "code":
				args = append(args, "--no-browser")
				d.sleep = func(text string) {
					if m := shownCode.FindStringSubmatch(text); m != nil {
						_ = allow(l.base + "/oauth/device?user_code=" + m[1])
					}
				}
			case "keyring":
				d.keyring = keyring{}
				fallthrough
			default:
				d.browse = allow
			}
			d.wants(2, "sign in with gateway login", "explain", "nothing")
			out := d.wants(0, "as bea@example.com", args...)
			dir := filepath.Join(d.home, ".config", "gateway")
			files, err := filepath.Glob(filepath.Join(dir, "token-*"))
			if err != nil || (len(files) == 1) != (way != "keyring") || way == "keyring" && len(d.keyring) != 1 {
				t.Fatalf("%v %v", err, files)
			}
			token := d.keyring[strings.TrimSuffix(l.base, "/v1")]
			if len(files) == 1 {
				info, _ := os.Stat(files[0])
				raw, err := os.ReadFile(files[0])
				if token = string(raw); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v %v", err, info.Mode())
				}
			}
			if token == "" || strings.Contains(out, token) {
				t.Errorf("token %q in %s", token, out)
			}
			d.wants(1, "no log and no trace", "explain", "nothing", "--workspace", "default")
			// Another gateway gets nothing.
			other := *d
			other.vars = map[string]string{"GATEWAY_URL": "http://127.0.0.1:1"}
			other.wants(2, "no key", "explain", "nothing")
			if len(files) == 1 {
				if err := os.Chmod(files[0], 0o644); err != nil {
					t.Fatal(err)
				}
				d.wants(1, "can be read by others", "explain", "nothing")
				_ = os.Chmod(files[0], 0o600)
			}
			d.wants(0, "Signed out", "login", "--out")
			d.wants(2, "sign in with gateway login", "explain", "nothing")
			d.wants(1, "no user is signed in", "login", "--out")
			if got := l.as(token, "GET", "/auth/self", ""); got.status != 401 {
				t.Errorf("the session goes on: %d %s", got.status, got.body)
			}
		})
	}
}

// After login, setup makes a key of the person, in the default workspace.
func TestSetupAfterLoginMakesAKeyOfThePerson(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	d := l.cliUser("")
	d.browse = func(address string) error { l.sendForm(l.visit(address, l.session), l.session, "allow"); return nil }
	d.wants(0, "as bea@example.com", "login")
	d.wants(1, "workspace_user_api_keys.create", "setup", "codex", "--yes", "--workspace", "default") // members may not
	bea := l.as(l.session, "GET", "/auth/self", "").json(t)["user"].(map[string]any)["id"].(string)
	l.admin("PUT", "/admin/users/"+bea, `{"role":"admin"}`)
	d.wants(0, "now uses", "setup", "codex", "--yes", "--workspace", "default")
	got := l.call("GET", "/api-keys?workspace_id=default", "", "X-Gateway-Api-Key", adminKey)
	if !strings.Contains(got.body, `"name":"codex@box"`) || !strings.Contains(got.body, `"type":"workspace-user"`) {
		t.Errorf("%s", got.body)
	}
	d.wants(0, "as it was before", "setup", "codex", "--undo", "--yes")
}

func TestLoginRefusals(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	d := l.cliUser("")
	d.browse = func(address string) error { l.sendForm(l.visit(address, l.session), l.session, "deny"); return nil }
	d.wants(1, "access_denied", "login")
	if _, err := os.Stat(filepath.Join(d.home, ".config")); !os.IsNotExist(err) {
		t.Error("a refused login wrote")
	}
	d.wants(2, "unexpected argument", "login", "me@example.com")
	d.vars["GATEWAY_URL"] = "http://127.0.0.1:1"
	d.wants(3, "not reachable", "login")
	d.home = ""
	d.wants(1, "HOME", "login")
}

// Whoever has the files of a gateway makes a new admin key from them, while nothing runs.
func TestRecoverMakesAnAdminKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := startIn(t, dir)
	d := r.cliUser("")
	d.vars = nil
	d.wants(1, "", "recover", "-data", dir) // in use
	r.stop()
	d.wants(1, "not the folder of a gateway", "recover", "-data", t.TempDir())
	d.wants(1, "does not exist", "recover", "-data", dir, "--organization", "nobody")
	d.wants(2, "unexpected argument", "recover", "-data", dir, "more")
	var made struct{ Key, ID string }
	if err := json.Unmarshal([]byte(d.wants(0, "", "recover", "-data", dir, "--json")), &made); err != nil || made.Key == "" {
		t.Fatal(err, made)
	}
	d.wants(0, "shown this once", "recover", "-data", dir)
	again := startIn(t, dir)
	if got := again.call("GET", "/workspaces", "", "X-Gateway-Api-Key", made.Key); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := again.call("POST", "/workspaces", `{"name":"made with the new key"}`, "X-Gateway-Api-Key", made.Key); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	again.inAuditLog(`"event":"recovery"`, made.ID)
}

// The verbs that read a file survive hostile ones.
func TestVerbsSurviveHostileProfiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "[]", `{"url": 5}`, `{"url":"ftp://x"}`, `{"url":"http://` + strings.Repeat("x", 1<<20) + `"}`, "\x00\xff"} {
		d := &cliUser{t: t, home: t.TempDir()}
		dir := filepath.Join(d.home, ".config", "gateway")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "profile.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"explain", "x"}, {"logs", "tail"}, {"env"}} {
			if code, out, errs := d.verb(args...); code == 0 && !(args[0] == "env" && strings.Contains(out, "http://x")) || errs == "" {
				t.Errorf("%.30q, %v: %d %.200s %.200s", text, args, code, out, errs)
			}
		}
	}
}

// keyring is a key store of the system in memory.
type keyring map[string]string

func (k keyring) Get(_ context.Context, address string) (string, error) { return k[address], nil }
func (k keyring) Set(_ context.Context, address, token string) error    { k[address] = token; return nil }
func (k keyring) Delete(_ context.Context, address string) error        { delete(k, address); return nil }
