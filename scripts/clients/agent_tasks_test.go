package clients

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var updateTable = flag.Bool("update-agents", false, "run the agents of the tables, and write the tables into the guide")

// onlyByMake skips a test that make agents runs: it takes minutes, and what an agent does within a
// time depends on the machine.
func onlyByMake(t *testing.T) {
	t.Helper()
	if !*updateTable {
		t.Skip("SKIPPED: make agents runs it")
	}
}

const strictModel = "@strict/deepseek-reasoner"

// toolCall is a call that the strict provider makes.
type toolCall struct {
	name string
	args map[string]any
}

// strictHost speaks chat completions and has the task of seven turns done. As hosts of reasoning models
// do, it rejects a turn that does not return the reasoning of each earlier turn with calls.
type strictHost struct {
	mu      sync.Mutex
	turns   [][]toolCall
	faults  []string          // what a client did wrong
	results map[string]string // by the id of the call
	ended   bool
}

func thought(turn int) string { return fmt.Sprintf("I have to take step %d of 7 now.", turn+1) }

func callID(turn, i int) string { return fmt.Sprintf("call_of_step_%d_%d", turn, i) }

func (h *strictHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Stream   bool
		Messages []struct {
			Role       string
			Content    json.RawMessage
			Reasoning  string                `json:"reasoning_content"`
			ToolCallID string                `json:"tool_call_id"`
			Calls      []struct{ ID string } `json:"tool_calls"`
		}
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil || !strings.HasSuffix(req.URL.Path, "/chat/completions") {
		http.Error(w, `{"error":{"message":"not a chat completion","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	reject := func(format string, args ...any) {
		h.faults = append(h.faults, fmt.Sprintf(format, args...))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": h.faults[len(h.faults)-1], "type": "invalid_request_error"}})
	}
	turn := 0
	answered := map[string]bool{}
	for _, m := range in.Messages {
		switch {
		case m.Role == "tool":
			answered[m.ToolCallID] = true
			h.results[m.ToolCallID] = string(m.Content)
		case m.Role == "assistant" && len(m.Calls) > 0:
			if turn >= len(h.turns) || m.Calls[0].ID != callID(turn, 0) || len(m.Calls) != len(h.turns[turn]) {
				reject("turn %d has the calls %v", turn+1, m.Calls)
				return
			}
			if m.Reasoning != thought(turn) {
				reject("The reasoning_content of turn %d must be passed back: it is %q", turn+1, m.Reasoning)
				return
			}
			turn++
		}
	}
	for i := range turn {
		for j := range h.turns[i] {
			if !answered[callID(i, j)] {
				reject("turn %d lacks the result of call %d", i+1, j+1)
				return
			}
		}
	}
	offered := map[string]bool{}
	for _, t := range in.Tools {
		offered[t.Function.Name] = true
	}
	message := map[string]any{"role": "assistant", "content": "A title"}
	finish := "stop"
	switch {
	case len(in.Tools) == 0 || turn == 0 && len(h.turns) > 0 && !offered[h.turns[0][0].name]: // a side call
	case turn == len(h.turns):
		h.ended = true
		message["content"], message["reasoning_content"] = "All seven steps are done.", "Nothing is left."
	default:
		var calls []map[string]any
		for i, c := range h.turns[turn] {
			args, _ := json.Marshal(c.args)
			calls = append(calls, map[string]any{"index": i, "id": callID(turn, i), "type": "function", "function": map[string]string{"name": c.name, "arguments": string(args)}})
		}
		message["content"], message["reasoning_content"], message["tool_calls"] = nil, thought(turn), calls
		finish = "tool_calls"
	}
	usage := map[string]int{"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
	whole := map[string]any{"id": "x", "created": 1, "model": "deepseek-reasoner", "usage": usage}
	choice := map[string]any{"index": 0, "finish_reason": finish, "message": message}
	if !in.Stream {
		whole["object"], whole["choices"] = "chat.completion", []any{choice}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	whole["object"] = "chat.completion.chunk"
	for _, field := range []string{"reasoning_content", "content", "tool_calls", ""} {
		delta, reason := map[string]any{}, any(nil)
		if field == "" {
			reason = finish
		} else if message[field] == nil {
			continue
		} else {
			delta["role"], delta[field] = "assistant", message[field]
		}
		whole["choices"] = []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}}
		raw, _ := json.Marshal(whole)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", raw)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// tools are those of an agent: each function returns a call.
type tools struct {
	read, picture, run func(string) toolCall
	edit               func(path, before, after string) toolCall
	write              func(path, content string) toolCall
}

func one(name, field string, more ...any) func(string) toolCall {
	return func(s string) toolCall {
		args := map[string]any{field: s}
		for i := 0; i+1 < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return toolCall{name, args}
	}
}

func edits(name, path, before, after string, more ...any) func(string, string, string) toolCall {
	return func(p, b, a string) toolCall {
		c := one(name, path, more...)(p)
		c.args[before], c.args[after] = b, a
		return c
	}
}

func writes(name, path, content string) func(string, string) toolCall {
	return func(p, c string) toolCall { return one(name, path, content, c)(p) }
}

// byCommand has everything done by the tool for commands.
func byCommand(run func(string) toolCall) tools {
	read := func(path string) toolCall { return run("cat '" + path + "'") }
	return tools{
		read: read, picture: read, run: run,
		edit: func(path, before, after string) toolCall {
			return run("sed -i 's/" + before + "/" + after + "/' '" + path + "'")
		},
		write: func(path, content string) toolCall { return run("printf '" + content + "' > '" + path + "'") },
	}
}

var (
	claudeTools = tools{one("Read", "file_path"), one("Read", "file_path"), one("Bash", "command", "description", "Run it"), edits("Edit", "file_path", "old_string", "new_string"), writes("Write", "file_path", "content")}
	geminiTools = tools{one("read_file", "file_path"), one("read_file", "file_path"), one("run_shell_command", "command"), edits("replace", "file_path", "old_string", "new_string", "instruction", "Edit it"), writes("write_file", "file_path", "content")}
	qwenTools   = tools{one("read_file", "file_path"), one("read_file", "file_path"), one("run_shell_command", "command", "is_background", false), edits("edit", "file_path", "old_string", "new_string"), writes("write_file", "file_path", "content")}
	opencode    = tools{one("read", "filePath"), one("read", "filePath"), one("bash", "command", "description", "Run it"), edits("edit", "filePath", "oldString", "newString"), writes("write", "filePath", "content")}
	copilotTool = tools{one("view", "path"), one("view", "path"), one("bash", "command", "description", "Run it"), edits("edit", "path", "old_str", "new_str"), writes("create", "path", "file_text")}
	clineTools  = byCommand(func(command string) toolCall {
		return toolCall{"run_commands", map[string]any{"commands": []string{command}}}
	})
	codexTools = func() tools {
		t := byCommand(one("exec_command", "cmd"))
		t.picture = one("view_image", "path")
		return t
	}()
	piTools = tools{
		one("read", "path"), one("read", "path"), one("bash", "command"),
		func(path, before, after string) toolCall {
			return toolCall{"edit", map[string]any{"path": path, "edits": []map[string]string{{"oldText": before, "newText": after}}}}
		},
		writes("write", "path", "content"),
	}
)

// sevenTurns writes the files of the task into a folder and returns the calls: two parallel reads of
// which one fails, an edit, a file of 200 KB, a picture, a long output, a failing command and a new file.
func sevenTurns(t *testing.T, k tools, work string) [][]toolCall {
	t.Helper()
	picture, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	var large bytes.Buffer
	for i := 0; large.Len() < 200<<10; i++ {
		_, _ = fmt.Fprintf(&large, "line %d of the large file\n", i)
	}
	at := func(name string) string { return filepath.Join(work, name) }
	for name, content := range map[string][]byte{"notes.txt": []byte("alpha\n"), "large.txt": large.Bytes(), "picture.png": picture} {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return [][]toolCall{
		{k.read(at("notes.txt")), k.read(at("missing.txt"))},
		{k.edit(at("notes.txt"), "alpha", "beta")},
		{k.read(at("large.txt"))},
		{k.picture(at("picture.png"))},
		{k.run("seq 1 20000")},
		{k.run("sh -c 'echo broken >&2; exit 3'")},
		{k.write(at("done.txt"), "made by an agent")},
	}
}

// pinned is an agent as the guide names it, with a program, its tools and how it is run.
type pinned struct {
	agent, pkg string // pkg is the npm package
	wire       string
	program    string
	tools      tools
	args       []string // before the request
	stdin      bool
	setup      string // of gateway setup; "" for none
	env        func(root, key string) []string
}

func pinnedAgents() []pinned {
	claude := []string{"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "ANTHROPIC_MODEL=" + strictModel, "ANTHROPIC_SMALL_FAST_MODEL=" + strictModel}
	copilot := func(path string, more ...string) func(root, key string) []string {
		return func(root, key string) []string {
			return append([]string{"COPILOT_PROVIDER_API_KEY=" + key, "COPILOT_PROVIDER_BASE_URL=" + root + path, "COPILOT_MODEL=" + strictModel}, more...)
		}
	}
	copilotArgs := []string{"--allow-all-tools", "--allow-all-paths", "--disable-client-telemetry", "-p"}
	none := func(string, string) []string { return nil }
	clineEnv := func(string, string) []string { return []string{"CLINE_SESSION_BACKEND_MODE=local"} }
	list := []pinned{
		{"Claude Code", "@anthropic-ai/claude-code-linux-x64", "Messages", claudeCode, claudeTools, []string{"--allowedTools", "Bash,Read,Edit,Write", "--permission-mode", "acceptEdits", "-p"}, false, "", func(root, key string) []string {
			return append([]string{"ANTHROPIC_BASE_URL=" + root, "ANTHROPIC_AUTH_TOKEN=" + key}, claude...)
		}},
		{"Codex", "@openai/codex", "Responses", "codex", codexTools, []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"}, false, "codex", none},
		{"opencode", "opencode-linux-x64", "chat", "../opencode-linux-x64/bin/opencode", opencode, []string{"run"}, true, "opencode", func(string, string) []string {
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
		}},
		{"Gemini CLI", "@google/gemini-cli", "Gemini", "gemini", geminiTools, []string{"--approval-mode", "yolo", "--skip-trust", "-m", strictModel, "-p"}, false, "", func(root, key string) []string {
			return []string{"GEMINI_API_KEY=" + key, "GOOGLE_GEMINI_BASE_URL=" + root}
		}},
		{"Qwen Code", "@qwen-code/qwen-code", "chat", "qwen", qwenTools, []string{"--auth-type", "openai", "--approval-mode", "yolo", "-p"}, false, "", func(root, key string) []string {
			return []string{"OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + root + "/v1", "OPENAI_MODEL=" + strictModel}
		}},
		{"Copilot CLI", "@github/copilot-linux-x64", "chat", "copilot-linux-x64", copilotTool, copilotArgs, false, "", copilot("/v1")},
		{"Copilot CLI", "@github/copilot-linux-x64", "Responses", "copilot-linux-x64", copilotTool, copilotArgs, false, "", copilot("/v1", "COPILOT_PROVIDER_WIRE_API=responses")},
		{"Copilot CLI", "@github/copilot-linux-x64", "Messages", "copilot-linux-x64", copilotTool, copilotArgs, false, "", copilot("", "COPILOT_PROVIDER_TYPE=anthropic")},
	}
	for _, w := range [][2]string{{"chat", "openai-compatible"}, {"Responses", "openai-native"}, {"Messages", "anthropic"}} {
		list = append(list, pinned{"Cline", "@cline/cli-linux-x64", w[0], "cline", clineTools, []string{"-P", w[1], "-m", strictModel}, false, "", clineEnv})
	}
	for _, w := range [][2]string{{"chat", "chat"}, {"Responses", "responses"}, {"Messages", "messages"}} {
		list = append(list, pinned{"pi", "@mariozechner/pi-coding-agent", w[0], "pi", piTools, []string{"--provider", w[1], "--model", strictModel, "-p"}, false, "", none})
	}
	return list
}

// start runs the agent with a request, against a gateway at root. It returns what the agent wrote, and
// an error if it failed or was ended.
func (a *pinned) start(t *testing.T, p *process, root, key, work, request string, limit time.Duration) ([]byte, error) {
	t.Helper()
	program, err := filepath.Abs(agents + a.program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		missing(t, a.agent+" is not installed: npm ci --ignore-scripts --prefix scripts/agents")
	}
	home := settingsOfAgents(t, root, key)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USER=tester", "PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"}
	if a.setup != "" {
		cmd := exec.Command(p.binary, "setup", a.setup, "--yes", "--model", strictModel)
		cmd.Env = append(env, "GATEWAY_URL="+p.url, "GATEWAY_API_KEY="+adminKey)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("setup: %v\n%s", err, out)
		}
		a.point(t, home, p, root, key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := a.args[:len(a.args):len(a.args)]
	if !a.stdin {
		args = append(args, request)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = work, append(env, a.env(root, key)...)
	cmd.Stdin = strings.NewReader("")
	if a.stdin {
		cmd.Stdin = strings.NewReader(request)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // some are started by a program that starts another
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.New("it was ended")
	}
	return out, err
}

// point sets another address and key in the settings that gateway setup wrote.
func (a *pinned) point(t *testing.T, home string, p *process, root, key string) {
	t.Helper()
	if a.setup == "codex" {
		file := filepath.Join(home, ".codex", "config.toml")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(raw), `"x-gateway-api-key" = "`)
		_, rest, found := strings.Cut(rest, `"`)
		if !ok || !found {
			t.Fatalf("no key in %s", raw)
		}
		all := strings.ReplaceAll(before+`"x-gateway-api-key" = "`+key+`"`+rest, strings.TrimSuffix(p.url, "/v1"), root)
		if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	file := filepath.Join(home, ".config", "opencode", "opencode.json")
	raw, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), strings.TrimSuffix(p.url, "/v1"), root)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".config", "gateway", "keys", "opencode"), []byte(key), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// saveStrict saves the provider strict, which is at an address.
func (p *process) saveStrict(t *testing.T, address string) {
	t.Helper()
	p.admin(t, "POST", "/integrations", fmt.Sprintf(`{"name":"Strict","slug":"strict","ai_provider_id":"deepseek","key":"k","configurations":{"custom_host":%q}}`, address+"/v1"))
	p.admin(t, "PUT", "/integrations/strict/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
}

// admin sends a request of administration.
func (p *process) admin(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-gateway-api-key", adminKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	var got map[string]any
	if err != nil || resp.StatusCode >= 300 || len(raw) > 0 && json.Unmarshal(raw, &got) != nil {
		t.Fatalf("%s %s: %d %v %s", method, path, resp.StatusCode, err, raw)
	}
	return got
}

// TestAgentsReturnReasoning has real coding agents, and programs with SDKs for agents, do a task of seven
// turns at a provider that rejects a turn without the reasoning of the turns before.
func TestAgentsReturnReasoning(t *testing.T) {
	onlyByMake(t)
	host := &switching{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	p := startGateway(t)
	p.saveStrict(t, server.URL)
	rows := agentTable{head: turnsHead}
	for _, a := range append(pinnedAgents(), drivers()...) {
		verdict := "not run"
		t.Run(a.agent+" by "+a.wire, func(t *testing.T) {
			work := t.TempDir()
			h := &strictHost{turns: sevenTurns(t, a.tools, work), results: map[string]string{}}
			host.to(h)
			out, err := a.start(t, p, strings.TrimSuffix(p.url, "/v1"), workspaceKey, work, "Take the seven steps.", 3*time.Minute)
			h.mu.Lock()
			defer h.mu.Unlock()
			verdict = "works"
			fail := func(format string, args ...any) {
				t.Errorf(format, args...)
				verdict = "fails"
			}
			if err != nil || !h.ended || len(h.faults) > 0 {
				fail("%v, ended %v, faults %v, results of %d\n%.4000s", err, h.ended, h.faults, len(h.results), out)
			}
			for file, want := range map[string]string{"notes.txt": "beta\n", "done.txt": "made by an agent"} {
				if got, err := os.ReadFile(filepath.Join(work, file)); err != nil || string(got) != want {
					fail("%s: %v %q", file, err, got)
				}
			}
			for id, want := range map[string]string{callID(0, 0): "alpha", callID(2, 0): "of the large file|too large to read|exceeds maximum allowed", callID(4, 0): "20000|(?i)output too large|exceeds maximum allowed", callID(5, 0): "broken"} {
				if !regexp.MustCompile(want).MatchString(h.results[id]) {
					fail("%s: %.300s", id, h.results[id])
				}
			}
		})
		rows.add(a.agent, versionOf(t, a.pkg), a.wire, time.Now().UTC().Format(time.DateOnly), verdict)
	}
	rows.write(t)
}

// switching is the address of one host after the other.
type switching struct {
	mu  sync.Mutex
	now http.Handler
}

func (s *switching) to(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = h
}

func (s *switching) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	h := s.now
	s.mu.Unlock()
	h.ServeHTTP(w, req)
}
