package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"gateway/shared/wire/release"
)

// shellOf is an Env whose output a test reads.
type shell struct {
	Env
	out, err bytes.Buffer
}

func newShell(t *testing.T, vars map[string]string, args ...string) *shell {
	t.Helper()
	s := &shell{}
	s.Env = Env{Args: args, Stdin: strings.NewReader(""), Stdout: &s.out, Stderr: &s.err, Home: t.TempDir(), Host: "box",
		Getenv: func(name string) string { return vars[name] }}
	return s
}

// server stands for the verbs that start a gateway.
func server(ran *string) Server {
	verb := func(name string) func(context.Context, Env) int {
		return func(_ context.Context, e Env) int {
			*ran = strings.Join(append([]string{name}, e.Args...), " ")
			return ExitDone
		}
	}
	return Server{Serve: verb("serve"), Recover: verb("recover")}
}

func TestRunDispatchesByTheFirstArgument(t *testing.T) {
	for _, c := range []struct {
		args   string
		code   int
		ran    string // what the server was asked for
		output string // on stdout or stderr
	}{
		{"", 0, "serve", ""},
		{"-addr :0 -mock=false", 0, "serve -addr :0 -mock=false", ""},
		{"--data x", 0, "serve --data x", ""},
		{"serve -addr :0", 0, "serve -addr :0", ""},
		{"--help", 0, "", "completion"},
		{"-h", 0, "", "completion"},
		{"help version", 0, "", "usage: gateway version"},
		{"help serve", 0, "", "usage: gateway serve"},
		{"help nothing", 2, "", `unknown verb "nothing"`},
		{"--version", 0, "", "gateway " + release.Version},
		{"version", 0, "", "gateway " + release.Version},
		{"version --json", 0, "", `"version":"` + release.Version + `"`},
		{"version --help", 0, "", "usage: gateway version"},
		{"version -x", 2, "", "not defined: -x"},
		{"version more", 2, "", `unexpected argument "more"`},
		{"completion", 2, "", "an argument is missing"},
		{"completion tcsh", 2, "", "use bash, zsh or fish"},
		{"servee", 2, "", "unknown verb"},
		{"sk-abcdef", 2, "", "a key is never an argument"},
	} {
		t.Run(c.args, func(t *testing.T) {
			s, ran := newShell(t, nil, strings.Fields(c.args)...), ""
			code := Run(t.Context(), s.Env, server(&ran))
			if output := s.out.String() + s.err.String(); code != c.code || ran != c.ran || !strings.Contains(output, c.output) || strings.Contains(output, "abcdef") {
				t.Errorf("code %d, ran %q: %s", code, ran, output)
			}
			if code != 0 && s.out.Len() > 0 || code == 0 && s.err.Len() > 0 {
				t.Errorf("code %d: stdout %q, stderr %q", code, s.out.String(), s.err.String())
			}
		})
	}
}

func TestHelpAndCompletionNameEveryVerb(t *testing.T) {
	for _, args := range []string{"help", "help --json", "completion bash", "completion zsh", "completion fish"} {
		s, ran := newShell(t, nil, strings.Fields(args)...), ""
		if code := Run(t.Context(), s.Env, server(&ran)); code != 0 {
			t.Fatalf("%s: %d %s", args, code, s.err.String())
		}
		for _, name := range names() {
			if !strings.Contains(s.out.String(), name) {
				t.Errorf("%s does not name %s", args, name)
			}
		}
		if strings.HasSuffix(args, "json") && !json.Valid(s.out.Bytes()) {
			t.Errorf("%s: %s", args, s.out.String())
		}
	}
}

func TestEveryVerbHasUsageAndRejectsUnknownFlags(t *testing.T) {
	for _, v := range listed {
		if v.Run == nil {
			continue
		}
		s, ran := newShell(t, nil, v.Name, "--help"), ""
		if code := Run(t.Context(), s.Env, server(&ran)); code != 0 || !strings.HasPrefix(s.out.String(), "usage: gateway "+v.Name) || !strings.Contains(s.out.String(), "-json") {
			t.Errorf("%s --help: %d %s %s", v.Name, code, s.out.String(), s.err.String())
		}
		s = newShell(t, nil, v.Name, "--no-such-flag")
		if code := Run(t.Context(), s.Env, server(&ran)); code != ExitUsage || !strings.Contains(s.err.String(), "no-such-flag") {
			t.Errorf("%s --no-such-flag: %d %s", v.Name, code, s.err.String())
		}
	}
}

// The shells themselves complete with the scripts, where they are installed.
func TestCompletionScriptsWork(t *testing.T) {
	s := newShell(t, nil, "bash")
	if code := completion(t.Context(), s.Env); code != 0 {
		t.Fatal(s.err.String())
	}
	out, err := exec.Command("bash", "-c", s.out.String()+`
COMP_WORDS=(gateway comp); COMP_CWORD=1; _gateway; echo "${COMPREPLY[*]}"
COMP_WORDS=(gateway completion f); COMP_CWORD=2; _gateway; echo "${COMPREPLY[*]}"`).CombinedOutput()
	if err != nil || string(out) != "completion\nfish\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestParseAcceptsFlagsBetweenArguments(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
		yes  bool
		json bool
		fail string
	}{
		{"a b", "a b", false, false, ""},
		{"a --yes b", "a b", true, false, ""},
		{"a b --json", "a b", false, true, ""},
		{"--yes -- a --json", "a --json", true, false, ""},
		{"a -- --yes", "a --yes", false, false, ""},
		{"a", "", false, false, "missing"},
		{"a b c", "", false, false, "unexpected"},
		{"a b --nope", "", false, false, "nope"},
	} {
		s := newShell(t, nil, strings.Fields(c.args)...)
		fs := Flags("try")
		yes := fs.Bool("yes", false, "")
		got, asJSON, err := s.Parse(fs, 2, 2)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: %v", c.args, err)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != c.want || *yes != c.yes || asJSON != c.json {
			t.Errorf("%s: %q %v %v %v", c.args, got, *yes, asJSON, err)
		}
	}
}

func TestAddressAcceptsBaseURLsOnly(t *testing.T) {
	for raw, want := range map[string]string{
		"":                             defaultURL,
		"http://127.0.0.1:1":           "http://127.0.0.1:1",
		"https://gw.example.com/v1":    "https://gw.example.com",
		"https://gw.example.com/v1/":   "https://gw.example.com",
		"https://gw.example.com/a/v1":  "https://gw.example.com/a",
		"gw.example.com":               "!",
		"ftp://gw.example.com":         "!",
		"https://me:pw@gw.example.com": "!",
		"https://gw.example.com?k=v":   "!",
		"http://":                      "!",
		"http://[::1":                  "!",
	} {
		got, err := newShell(t, map[string]string{EnvURL: raw}).Address()
		if want == "!" && (err == nil || newShell(t, nil).Fail(err) != ExitUsage) || want != "!" && (err != nil || got != want) {
			t.Errorf("%q: %q %v", raw, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

// Each kind of failure has its exit code, and the key is in none of the messages.
func TestCallMapsFailuresToExitCodes(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/ok":
			_, _ = w.Write([]byte(`{"a":1}`))
		case "/v1/refused":
			w.Header().Set("X-Gateway-Error-Code", "unauthorized")
			w.WriteHeader(401)
			_, _ = w.Write([]byte(`{"error":{"message":"Invalid API key"}}`))
		case "/v1/refused-by-admin":
			w.Header().Set("X-Gateway-Error-Code", "forbidden")
			w.WriteHeader(403)
			_, _ = w.Write([]byte(`{"success":false,"data":{"message":"no scope"}}`))
		case "/v1/page":
			w.WriteHeader(404)
			_, _ = w.Write([]byte(`<html>`))
		case "/v1/proxy":
			w.WriteHeader(502)
			_, _ = w.Write([]byte(`{}`))
		case "/v1/moved":
			http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusMovedPermanently)
		case "/v1/html":
			_, _ = w.Write([]byte(`<html>`))
		}
	}))
	defer host.Close()
	down := httptest.NewServer(nil)
	down.Close()
	for _, c := range []struct {
		base, path string
		code       int
		message    string
	}{
		{host.URL, "/ok", 0, ""},
		{host.URL, "/refused", 1, "Invalid API key"},
		{host.URL, "/refused-by-admin", 1, "no scope"},
		{host.URL, "/page", 3, "not a gateway"},
		{host.URL, "/proxy", 3, "not a gateway"},
		{host.URL, "/moved", 3, "redirects to"},
		{host.URL, "/html", 3, "not the JSON"},
		{down.URL, "/ok", 3, "not reachable"},
		{"http://no-such-host.invalid", "/ok", 3, "not reachable"},
	} {
		s := newShell(t, map[string]string{EnvURL: c.base, EnvKey: "secret-of-the-test"})
		client, err := s.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		code := s.Fail(client.Call(t.Context(), "GET", c.path, nil, &out))
		if code != c.code || !strings.Contains(s.err.String(), c.message) || strings.Contains(s.err.String(), "secret-of") {
			t.Errorf("%s: code %d: %s", c.path, code, s.err.String())
		}
	}
}

func TestClientNeedsAKey(t *testing.T) {
	for _, key := range []string{"", "with space", "ümlaut", "line\nbreak"} {
		s := newShell(t, map[string]string{EnvKey: key})
		_, err := s.Client(t.Context())
		if code := s.Fail(err); code != ExitUsage || !strings.Contains(s.err.String(), EnvKey) || key != "" && strings.Contains(s.err.String(), key) {
			t.Errorf("%q: %d %s", key, code, s.err.String())
		}
	}
}
