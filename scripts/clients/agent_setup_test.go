package clients

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// packages is where the packages of the agents are.
const packages = "../agents/node_modules/"

// configured is an agent that gateway setup configures.
type configured struct {
	name    string // of gateway setup
	program string // below packages
	file    string // its settings, below the home
	before  string // what is there before; "": nothing
	args    []string
	stdin   bool   // the request comes on standard input
	call    string // what the mock provider has the agent do, with %s for the file
	env     []string
}

var configuredAgents = []configured{
	{
		name: "claude-code", program: ".bin/" + claudeCode, file: ".claude/settings.json", before: "{\n  \"cleanupPeriodDays\": 20\n}\n",
		args: []string{"--permission-mode", "acceptEdits", "-p"}, call: `call=Write {"file_path":%q,"content":"made by an agent"}`,
		env: []string{"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
	},
	{
		name: "codex", program: ".bin/codex", file: ".codex/config.toml", before: "# mine\n[tui]\nnotifications = false\n",
		args: []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"}, call: `call=exec_command {"cmd":"printf 'made by an agent' > '%s'"}`,
	},
	{
		name: "opencode", program: "opencode-linux-x64/bin/opencode", file: ".config/opencode/opencode.json", before: "{\n  // mine\n  \"share\": \"disabled\",\n}\n",
		args: []string{"run"}, stdin: true, call: `call=write {"filePath":%q,"content":"made by an agent"}`,
		env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
	},
}

// TestSetupAgents installs nothing by hand: after gateway setup each agent edits a file
// through the gateway with its own settings, and after --undo the settings have the bytes
// from before.
func TestSetupAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway and coding agents, which -short leaves out")
	}
	p := startGateway(t)
	for _, a := range configuredAgents {
		t.Run(a.name, func(t *testing.T) { a.edit(t, p) })
	}
}

func (a *configured) edit(t *testing.T, p *process) {
	program, err := filepath.Abs(packages + a.program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		missing(t, a.name+" is not installed: npm ci --ignore-scripts --prefix scripts/agents")
	}
	home, work := t.TempDir(), t.TempDir()
	file := filepath.Join(home, filepath.FromSlash(a.file))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(a.before), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USER=tester"}
	setup := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(p.binary, append([]string{"setup", a.name, "--yes"}, args...)...)
		cmd.Env = append(env, "GATEWAY_URL="+p.url, "GATEWAY_API_KEY="+adminKey)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("setup %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	setup()
	note := filepath.Join(work, "note.txt")
	request := "Write the note.\nmock: " + fmt.Sprintf(a.call, note)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args := a.args
	if !a.stdin {
		args = append(args[:len(args):len(args)], request)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = work, append(env, a.env...)
	cmd.Stdin = strings.NewReader("")
	if a.stdin {
		cmd.Stdin = strings.NewReader(request)
	}
	before := len(p.logs(t))
	out, err := cmd.CombinedOutput()
	if made, readErr := os.ReadFile(note); err != nil || readErr != nil || string(made) != "made by an agent" {
		t.Errorf("%v, the file: %v %q\n%.4000s", err, readErr, made, out)
	}
	// The turns are logged under the key of the agent.
	eventuallyLogged(t, p, before)
	if text := setup("--undo"); !strings.Contains(text, "as it was before") {
		t.Error(text)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != a.before {
		t.Errorf("after undo: %v\n%s", err, after)
	}
	leaked := false
	_ = filepath.WalkDir(filepath.Join(home, ".config", "gateway"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".replaced") {
			leaked = true
		}
		return nil
	})
	if leaked {
		t.Error("undo left files of the setup")
	}
}

func eventuallyLogged(t *testing.T, p *process, before int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		logs := p.logs(t)
		priced := 0
		for _, log := range logs[:max(0, len(logs)-before)] {
			if !bytes.Contains(log, []byte(`"cost":0,`)) {
				priced++
			}
		}
		if priced >= 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d new priced records", priced)
		}
	}
}

// TestQuickstart runs the first ten minutes as a newcomer does.
func TestQuickstart(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway, which -short leaves out")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		missing(t, "bash is not installed")
	}
	binary := filepath.Join(t.TempDir(), "gateway")
	if out, err := goBuild(".", binary, "gateway/local").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "../quickstart.sh")
	cmd.Env = append(os.Environ(), "GATEWAY_BINARY="+binary)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("quickstart: done")) {
		t.Errorf("%v\n%s", err, out)
	}
}
