package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// agents is the folder of the coding agents' packages.
const agents = "../agents/node_modules/.bin/"

// claudeCode is its program: the package that would choose it runs a script to do so, and requires a
// later Node.
const claudeCode = "../@anthropic-ai/claude-code-linux-x64/claude"

// session is one run of an agent: it is asked to have a file written, calls its tool for
// that, sends the result of the tool and says how it went.
type session struct {
	name    string
	program string
	tool    string // call=, with %s for the file
	args    []string
	env     []string
	log     string // the records of the session tell so
}

// TestCodingAgents runs real coding agents, without a terminal, against the gateway and the
// strict mock provider: each with its own API, to providers of the same shape and of
// another.
func TestCodingAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a gateway and coding agents, which -short leaves out")
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing(t, "node is not installed")
	}
	for _, name := range []string{claudeCode, "pi", "gemini", "qwen", "copilot-linux-x64", "cline"} {
		if _, err := os.Stat(agents + name); err != nil {
			missing(t, "the npm packages are not installed: npm ci --ignore-scripts --prefix scripts/agents")
		}
	}
	p := startGateway(t)
	root := strings.TrimSuffix(p.url, "/v1")
	claude := []string{"ANTHROPIC_AUTH_TOKEN=" + workspaceKey, "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	claudeArgs := []string{"--permission-mode", "acceptEdits", "--output-format", "json", "-p"}
	with := func(env []string, more ...string) []string { return append(append([]string{}, env...), more...) }
	const writeFile = `call=write_file {"file_path":%q,"content":"made by an agent"}`
	gemini := []string{"GEMINI_API_KEY=" + workspaceKey, "GOOGLE_GEMINI_BASE_URL=" + root}
	geminiArgs := []string{"--approval-mode", "yolo", "--skip-trust", "-m"}
	geminiArgs = geminiArgs[:len(geminiArgs):len(geminiArgs)]
	copilot := []string{"COPILOT_PROVIDER_API_KEY=" + workspaceKey, "COPILOT_PROVIDER_BASE_URL=" + p.url}
	copilotArgs := []string{"--allow-all-tools", "--allow-all-paths", "--disable-client-telemetry", "-p"}
	const create = `call=create {"path":%q,"file_text":"made by an agent"}`
	cline := []string{"CLINE_SESSION_BACKEND_MODE=local"} // otherwise it leaves a daemon running
	clineArgs := func(provider, model string) []string { return []string{"-P", provider, "-m", model} }
	const command = `call=run_commands {"commands":["printf 'made by an agent' > '%s'"]}`
	const write = `call=Write {"file_path":%q,"content":"made by an agent"}`
	for _, s := range []session{
		{"messages", claudeCode, write, claudeArgs, with(claude, "ANTHROPIC_BASE_URL="+root, "ANTHROPIC_CUSTOM_HEADERS=x-gateway-provider: @mock-anthropic", "ANTHROPIC_MODEL=claude-sonnet-4-5"), `"session_id"`},
		{"messages, the version twice, by a key in x-api-key", claudeCode, write, claudeArgs, with(claude[1:], "ANTHROPIC_API_KEY="+workspaceKey, "ANTHROPIC_BASE_URL="+p.url, "ANTHROPIC_CUSTOM_HEADERS=x-gateway-provider: @mock-anthropic", "ANTHROPIC_MODEL=claude-sonnet-4-5"), `"session_id"`},
		{"messages to OpenAI's shape", claudeCode, write, claudeArgs, with(claude, "ANTHROPIC_BASE_URL="+root, "ANTHROPIC_MODEL=@mock/gpt-4o-mini", "ANTHROPIC_SMALL_FAST_MODEL=@mock/gpt-4o-mini"), `"session_id"`},
		{"responses", "pi", `call=write {"path":%q,"content":"made by an agent"}`, []string{"--provider", "responses", "--model", "@mock/gpt-4o-mini", "-p"}, nil, `gpt-4o-mini`},
		{"chat", "pi", `call=write {"path":%q,"content":"made by an agent"}`, []string{"--provider", "chat", "--model", "@mock/gpt-4o-mini", "-p"}, nil, `gpt-4o-mini`},
		{"messages of another agent", "pi", `call=write {"path":%q,"content":"made by an agent"}`, []string{"--provider", "messages", "--model", "@mock-anthropic/claude-sonnet-4-5", "-p"}, nil, `claude-sonnet-4-5`},
		{"responses to Anthropic's shape", "pi", `call=write {"path":%q,"content":"made by an agent"}`, []string{"--provider", "responses", "--model", "@mock-anthropic/claude-sonnet-4-5", "-p"}, nil, `claude-sonnet-4-5`},
		{"Gemini's shape to OpenAI's", "gemini", writeFile, append(geminiArgs, "@mock/gpt-4o-mini", "-p"), gemini, `gpt-4o-mini`},
		{"Gemini's shape to Anthropic's", "gemini", writeFile, append(geminiArgs, "@mock-anthropic/claude-sonnet-4-5", "-p"), gemini, `claude-sonnet-4-5`},
		{"chat of another agent", "qwen", writeFile, []string{"--auth-type", "openai", "--approval-mode", "yolo", "-p"}, []string{"OPENAI_API_KEY=" + workspaceKey, "OPENAI_BASE_URL=" + p.url, "OPENAI_MODEL=@mock/gpt-4o-mini"}, `gpt-4o-mini`},
		{"Copilot CLI by chat", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_MODEL=@mock/gpt-4o-mini"), `gpt-4o-mini`},
		{"Copilot CLI by chat to Anthropic's shape", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_MODEL=@mock-anthropic/claude-sonnet-4-5"), `claude-sonnet-4-5`},
		{"Copilot CLI by Responses", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_MODEL=@mock/gpt-5-mini", "COPILOT_PROVIDER_WIRE_API=responses"), `gpt-5-mini`},
		{"Copilot CLI by Responses on a WebSocket", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_MODEL=@mock/gpt-5-mini", "COPILOT_PROVIDER_WIRE_API=responses", "COPILOT_PROVIDER_TRANSPORT=websockets"), `gpt-5-mini`},
		{"Copilot CLI by Responses to Anthropic's shape", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_MODEL=@mock-anthropic/claude-sonnet-4-5", "COPILOT_PROVIDER_WIRE_API=responses"), `claude-sonnet-4-5`},
		{"Copilot CLI by Messages", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_PROVIDER_BASE_URL="+root, "COPILOT_MODEL=@mock-anthropic/claude-sonnet-4-5", "COPILOT_PROVIDER_TYPE=anthropic"), `claude-sonnet-4-5`},
		{"Copilot CLI by Messages to OpenAI's shape", "copilot-linux-x64", create, copilotArgs, with(copilot, "COPILOT_PROVIDER_BASE_URL="+root, "COPILOT_MODEL=@mock/gpt-4o-mini", "COPILOT_PROVIDER_TYPE=anthropic"), `gpt-4o-mini`},
		{"Cline by chat", "cline", command, clineArgs("openai-compatible", "@mock/gpt-4o-mini"), cline, `gpt-4o-mini`},
		{"Cline by chat to Anthropic's shape", "cline", command, clineArgs("openai-compatible", "@mock-anthropic/claude-sonnet-4-5"), cline, `claude-sonnet-4-5`},
		{"Cline by Responses", "cline", command, clineArgs("openai-native", "@mock/gpt-5-mini"), cline, `gpt-5-mini`},
		{"Cline by Responses to Anthropic's shape", "cline", command, clineArgs("openai-native", "@mock-anthropic/claude-sonnet-4-5"), cline, `claude-sonnet-4-5`},
		{"Cline by Messages", "cline", command, clineArgs("anthropic", "@mock-anthropic/claude-sonnet-4-5"), cline, `claude-sonnet-4-5`},
		{"Cline by Messages to OpenAI's shape", "cline", command, clineArgs("anthropic", "@mock/gpt-4o-mini"), cline, `gpt-4o-mini`},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, p, root) })
	}
}

func (s *session) run(t *testing.T, p *process, root string) {
	home, work := settingsOfAgents(t, root, workspaceKey), t.TempDir()
	program, err := filepath.Abs(agents + s.program)
	if err != nil {
		t.Fatal(err)
	}
	before := len(p.logs(t))
	note := filepath.Join(work, "note.txt")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(s.args, "Write the note.\nmock: "+fmt.Sprintf(s.tool, note))...)
	cmd.Dir = work
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"}, s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("The tool says: ")) {
		t.Errorf("%v\n%.3000s", err, out)
	}
	if made, err := os.ReadFile(note); err != nil || string(made) != "made by an agent" {
		t.Errorf("the file: %v %q\n%.3000s", err, made, out)
	}
	// Both turns stand in the log, priced, the agent's session with them.
	var event struct {
		Session string `json:"session_id"`
	}
	_ = json.Unmarshal(out, &event)
	want := s.log
	if event.Session != "" {
		want = `"session_id":"` + event.Session + `"`
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		found := 0
		logs := p.logs(t)
		for _, log := range logs[:max(0, len(logs)-before)] {
			if bytes.Contains(log, []byte(want)) && !bytes.Contains(log, []byte(`"cost":0,`)) {
				found++
			}
		}
		if found >= 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d new records say %s", found, len(logs)-before, want)
		}
	}
}

// settingsOfAgents returns a home with the settings of agents that read files.
func settingsOfAgents(t *testing.T, root, key string) string {
	t.Helper()
	home := t.TempDir()
	settings := filepath.Join(home, ".pi", "agent")
	if err := os.MkdirAll(settings, 0o700); err != nil {
		t.Fatal(err)
	}
	models := `"models":[{"id":"@mock/gpt-4o-mini"},{"id":"@mock-anthropic/claude-sonnet-4-5"},{"id":"` + strictModel + `","reasoning":true}]`
	file := fmt.Sprintf(`{"providers":{"responses":{"baseUrl":%[1]q,"apiKey":%[2]q,"api":"openai-responses",%[3]s},"chat":{"baseUrl":%[1]q,"apiKey":%[2]q,"api":"openai-completions",%[3]s},"messages":{"baseUrl":%[4]q,"apiKey":%[2]q,"api":"anthropic-messages",%[3]s}}}`,
		root+"/v1", key, models, root)
	if err := os.WriteFile(filepath.Join(settings, "models.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	settings = filepath.Join(home, ".gemini") // of the form of authentication, which it asks for at a terminal
	if err := os.Mkdir(settings, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(settings, "settings.json"), []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	settings = filepath.Join(home, ".cline", "data", "settings")
	if err := os.MkdirAll(settings, 0o700); err != nil {
		t.Fatal(err)
	}
	providers := map[string]any{}
	for _, name := range []string{"openai-compatible", "openai-native", "anthropic"} {
		providers[name] = map[string]any{"settings": map[string]string{"provider": name, "apiKey": key, "baseUrl": root + "/v1"}, "updatedAt": "2026-11-30T00:00:00.000Z", "tokenSource": "manual"}
	}
	raw, err := json.Marshal(map[string]any{"version": 1, "modes": map[string]any{}, "providers": providers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(settings, "providers.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// logs are the newest records.
func (p *process) logs(t *testing.T) []json.RawMessage {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.url+"/logs?page_size=100", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-gateway-api-key", workspaceKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(raw, &list) != nil {
		t.Fatalf("%d %v %.500s", resp.StatusCode, err, raw)
	}
	return list.Data
}
