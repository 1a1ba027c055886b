package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The programs of the key stores get the token on their input, never as an argument.
func TestCommandKeyringsPassTheTokenByInput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: needs a shell script")
	}
	const token = "token-of-the-test"
	for name, make := range map[string]func(string) Keyring{"secret-tool": secretService, "security": keychain} {
		dir := t.TempDir()
		program := filepath.Join(dir, name)
		script := "#!/bin/sh\necho \"$@\" >> " + dir + "/args\ncase \"$*\" in\n*store*|*-i*) cat > " + dir + "/kept ;;\n*lookup*|*find*) [ -s " + dir + "/kept ] || { echo could not be found >&2; exit 1; }; echo " + token + " ;;\n*) rm -f " + dir + "/kept ;;\nesac\n"
		script = strings.Replace(script, "could not be found", map[string]string{"secret-tool": "", "security": "could not be found"}[name], 1)
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		k := make(program)
		if got, err := k.Get(t.Context(), "https://gw"); got != "" || err != nil {
			t.Errorf("%s: an empty store has %q %v", name, got, err)
		}
		if err := k.Set(t.Context(), "https://gw", token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if stored, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || !strings.Contains(string(stored), token) {
			t.Errorf("%s: the input was %q %v", name, stored, err)
		}
		if got, err := k.Get(t.Context(), "https://gw"); got != token || err != nil {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if err := k.Delete(t.Context(), "https://gw"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if args, err := os.ReadFile(filepath.Join(dir, "args")); err != nil || strings.Contains(string(args), token) {
			t.Errorf("%s: the arguments were %s %v", name, args, err)
		}
	}
}

func TestKeyringFailuresAreErrors(t *testing.T) {
	k := secretService(filepath.Join(t.TempDir(), "no-such-program"))
	if err := k.Set(t.Context(), "https://gw", "t"); err == nil || strings.Contains(err.Error(), `"t"`) {
		t.Errorf("%v", err)
	}
	file := fileKeyring{t.TempDir()}
	if got, err := file.Get(t.Context(), "https://gw"); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if err := file.Set(t.Context(), "https://gw", "t"); err != nil {
		t.Fatal(err)
	}
	if got, err := file.Get(t.Context(), "https://other"); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if err := file.Delete(t.Context(), "https://gw"); err != nil {
		t.Fatal(err)
	}
}

// Settings files are where each agent looks, with the separators of the system.
func TestAgentFilesFollowTheirVariables(t *testing.T) {
	home := t.TempDir()
	other := t.TempDir()
	for _, c := range []struct {
		agent, variable string
		path            []string
		in              []string
	}{
		{"claude-code", "CLAUDE_CONFIG_DIR", []string{".claude", "settings.json"}, []string{"settings.json"}},
		{"codex", "CODEX_HOME", []string{".codex", "config.toml"}, []string{"config.toml"}},
		{"opencode", "XDG_CONFIG_HOME", []string{".config", "opencode", "opencode.json"}, []string{"opencode", "opencode.json"}},
	} {
		a, ok := findAgent(c.agent)
		if !ok {
			t.Fatal(c.agent)
		}
		vars := map[string]string{}
		e := Env{Home: home, Getenv: func(name string) string { return vars[name] }}
		if got, want := a.file(e), filepath.Join(append([]string{home}, c.path...)...); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		vars[c.variable] = other
		if got, want := a.file(e), filepath.Join(append([]string{other}, c.in...)...); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Paths of Windows stay valid in JSON and TOML.
func TestSettingsHoldPathsOfWindows(t *testing.T) {
	s := &setting{base: "http://h", key: `k"\`, keyFile: `C:\Users\Bea\.config\gateway\keys\opencode`, model: `@a/b"\`, small: "@a/c"}
	for _, a := range agents {
		raw, err := a.edit(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := a.edit(raw, s); err != nil || string(again) != string(raw) && a.name == "codex" {
			t.Errorf("%s: a second edit gives %v\n%s\n%s", a.name, err, raw, again)
		}
	}
}

func TestPickPrefersAndFallsBack(t *testing.T) {
	ids := []string{"@b/zeta", "@a/gpt-4o-mini", "@a/gpt-4o", "@c/claude-sonnet-4-5"}
	for _, c := range []struct{ prefer, want string }{
		{"claude-sonnet gpt", "@c/claude-sonnet-4-5"}, {"gpt-4o", "@a/gpt-4o"}, {"nothing", "@b/zeta"},
	} {
		if got := pick(ids, strings.Fields(c.prefer)); got != c.want {
			t.Errorf("%s: %s", c.prefer, got)
		}
	}
	if pick(nil, []string{"x"}) != "" {
		t.Error("a model of none")
	}
}
