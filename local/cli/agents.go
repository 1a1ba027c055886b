package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gateway/local/cli/settings"
)

// agent is a coding agent with settings that setup can write.
type agent struct {
	name   string
	file   func(Env) string // its settings file
	prefer []string         // beginnings of model names, best first
	edit   func(src []byte, s *setting) ([]byte, error)
	// Try is the small request that verifies a setup, in the wire format of the agent.
	tryPath string
	tryBody func(model string) map[string]any
	header  []string // of the small request
}

// setting contains the values written into an agent's settings.
type setting struct {
	base    string // of the gateway, without /v1
	key     string
	keyFile string // where a file that holds the key can be; written only if usesKeyFile is set
	model   string
	small   string // for work in the background

	usesKeyFile bool
}

var agents = []agent{
	{
		name: "claude-code", file: in("CLAUDE_CONFIG_DIR", ".claude", "settings.json"), edit: editClaudeCode,
		prefer:  []string{"claude-sonnet-4-5", "claude-sonnet", "claude-opus", "claude", "gpt-4o-mini", "gpt"},
		tryPath: "/messages", header: []string{"Anthropic-Version", "2023-06-01"},
		tryBody: func(model string) map[string]any {
			return map[string]any{"model": model, "max_tokens": 16, "messages": []map[string]string{{"role": "user", "content": "Say OK."}}}
		},
	},
	{
		name: "codex", file: in("CODEX_HOME", ".codex", "config.toml"), edit: editCodex,
		prefer:  []string{"gpt-5.1-codex", "gpt-5-codex", "gpt-5", "gpt-4o-mini", "gpt", "claude-sonnet", "claude"},
		tryPath: "/responses",
		tryBody: func(model string) map[string]any {
			return map[string]any{"model": model, "max_output_tokens": 16, "input": "Say OK."}
		},
	},
	{
		name: "opencode", file: in("XDG_CONFIG_HOME", ".config", "opencode", "opencode.json"), edit: editOpencode,
		prefer:  []string{"claude-sonnet-4-5", "gpt-5", "gpt-4o-mini", "claude-sonnet", "gpt", "claude"},
		tryPath: "/chat/completions",
		tryBody: func(model string) map[string]any {
			return map[string]any{"model": model, "max_tokens": 16, "messages": []map[string]string{{"role": "user", "content": "Say OK."}}}
		},
	},
}

func findAgent(name string) (*agent, bool) {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == name })
	if i < 0 {
		return nil, false
	}
	return &agents[i], true
}

func agentNames() []string {
	list := make([]string, len(agents))
	for i := range agents {
		list[i] = agents[i].name
	}
	return list
}

// in returns a file below the folder that a variable of the agent names, or else below a
// folder of the home.
func in(variable, folder string, path ...string) func(Env) string {
	return func(e Env) string {
		root := e.Getenv(variable)
		if root == "" {
			root = filepath.Join(e.Home, folder)
		}
		return filepath.Join(append([]string{root}, path...)...)
	}
}

// editClaudeCode sets variables in the settings. It removes those that choose another host
// or another key: Claude Code prefers them.
func editClaudeCode(src []byte, s *setting) ([]byte, error) {
	var err error
	for _, path := range [][]string{{"apiKeyHelper"}, {"env", "ANTHROPIC_API_KEY"}, {"env", "CLAUDE_CODE_USE_BEDROCK"}, {"env", "CLAUDE_CODE_USE_VERTEX"}} {
		if src, err = settings.DeleteJSON(src, path...); err != nil {
			return nil, err
		}
	}
	for _, v := range [][2]string{
		{"CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1"},
		{"ANTHROPIC_DEFAULT_HAIKU_MODEL", s.small},
		{"ANTHROPIC_MODEL", s.model},
		{"ANTHROPIC_AUTH_TOKEN", s.key},
		{"ANTHROPIC_BASE_URL", s.base},
	} {
		if src, err = settings.SetJSON(src, v[1], "env", v[0]); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// providerID names the gateway in the settings of Codex and opencode.
const providerID = "gateway"

// editCodex adds a provider. The key is a header: Codex reads env_key from the shell alone,
// which setup does not change. Final rejections come as events, since Codex repeats a
// request after every error status.
func editCodex(src []byte, s *setting) ([]byte, error) {
	src, err := settings.SetTOML(src, "model", settings.QuoteTOML(s.model))
	if err != nil {
		return nil, err
	}
	if src, err = settings.SetTOML(src, "model_provider", settings.QuoteTOML(providerID)); err != nil {
		return nil, err
	}
	return settings.SetTableTOML(src, "model_providers."+providerID,
		`name = "Gateway"`,
		`base_url = `+settings.QuoteTOML(s.base+"/v1"),
		`wire_api = "responses"`,
		`http_headers = { "x-gateway-api-key" = `+settings.QuoteTOML(s.key)+`, "x-gateway-refusals" = "event" }`)
}

// editOpencode adds a provider that reads its key from a file of this program.
func editOpencode(src []byte, s *setting) ([]byte, error) {
	s.usesKeyFile = true
	models := map[string]any{s.model: map[string]any{}, s.small: map[string]any{}}
	src, err := settings.SetJSON(src, map[string]any{
		"npm":     "@ai-sdk/openai-compatible",
		"name":    "Gateway",
		"options": map[string]string{"baseURL": s.base + "/v1", "apiKey": "{file:" + filepath.ToSlash(s.keyFile) + "}"},
		"models":  models,
	}, "provider", providerID)
	if err != nil {
		return nil, err
	}
	if src, err = settings.SetJSON(src, providerID+"/"+s.small, "small_model"); err != nil {
		return nil, err
	}
	if src, err = settings.SetJSON(src, providerID+"/"+s.model, "model"); err != nil {
		return nil, err
	}
	// A list of enabled providers, where there is one, must name the new one.
	raw, err := settings.GetJSON(src, "enabled_providers")
	if err != nil || raw == nil {
		return src, err
	}
	var enabled []string
	if json.Unmarshal(raw, &enabled) == nil && !slices.Contains(enabled, providerID) {
		return settings.SetJSON(src, append(enabled, providerID), "enabled_providers")
	}
	return src, nil
}

// pick returns the model of a list that suits an agent best: of the first preferred
// beginning, the shortest name, and of several the one that sorts last.
func pick(ids, prefer []string) string {
	for _, begin := range prefer {
		best := ""
		for _, id := range ids {
			name := id[strings.LastIndexByte(id, '/')+1:]
			if strings.HasPrefix(name, begin) && (best == "" || len(id) < len(best) || len(id) == len(best) && id > best) {
				best = id
			}
		}
		if best != "" {
			return best
		}
	}
	if len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// Keyring stores the token of a person. Get returns "" if there is none.
type Keyring interface {
	Get(ctx context.Context, address string) (string, error)
	Set(ctx context.Context, address, token string) error
	Delete(ctx context.Context, address string) error
}

// keyringTime limits how long a key store of the system may take: it may ask its user.
const keyringTime = 2 * time.Minute

// commandKeyring is a key store accessed by a program. The token never is an argument: other
// users could read it in the list of processes.
type commandKeyring struct {
	program string
	// Get, set and del return the arguments and the input of the program.
	get, set, del func(address, token string) (args []string, input string)
	missing       func(output string) bool // reports whether a failed get means that there is none
}

// secretService is that of Linux desktops, by secret-tool of libsecret.
func secretService(program string) Keyring {
	named := func(verb string, more ...string) func(string, string) ([]string, string) {
		return func(address, token string) ([]string, string) {
			args := append([]string{verb}, more...)
			return append(args, "service", "ai-gateway", "address", address), token
		}
	}
	return &commandKeyring{program: program, get: func(a, _ string) ([]string, string) { return named("lookup")(a, "") },
		set: named("store", "--label=AI gateway"), del: func(a, _ string) ([]string, string) { return named("clear")(a, "") },
		missing: func(output string) bool { return strings.TrimSpace(output) == "" }}
}

// keychain is that of macOS, by the program security, which reads commands from its input.
func keychain(program string) Keyring {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "").Replace(s) + `"`
	}
	return &commandKeyring{program: program,
		get: func(a, _ string) ([]string, string) {
			return []string{"find-generic-password", "-s", "ai-gateway", "-a", a, "-w"}, ""
		},
		set: func(a, token string) ([]string, string) {
			return []string{"-i"}, "add-generic-password -U -s ai-gateway -a " + quote(a) + " -w " + quote(token) + "\n"
		},
		del: func(a, _ string) ([]string, string) {
			return []string{"delete-generic-password", "-s", "ai-gateway", "-a", a}, ""
		},
		missing: func(output string) bool { return strings.Contains(output, "could not be found") }}
}

func (k *commandKeyring) run(ctx context.Context, args []string, input string) (out, errs string, err error) {
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), stderr.String(), fmt.Errorf("the key store of the system (%s) failed: %w", filepath.Base(k.program), err)
	}
	return stdout.String(), stderr.String(), nil
}

func (k *commandKeyring) Get(ctx context.Context, address string) (string, error) {
	args, input := k.get(address, "")
	out, errs, err := k.run(ctx, args, input)
	if err != nil && k.missing(out+errs) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

func (k *commandKeyring) Set(ctx context.Context, address, token string) error {
	args, input := k.set(address, token)
	_, _, err := k.run(ctx, args, input)
	return err
}

func (k *commandKeyring) Delete(ctx context.Context, address string) error {
	args, input := k.del(address, "")
	out, errs, err := k.run(ctx, args, input)
	if err != nil && k.missing(out+errs) {
		return nil
	}
	return err
}

// fileKeyring stores the token in a file that only its user may read.
type fileKeyring struct{ dir string }

func (k fileKeyring) name(address string) string {
	return filepath.Join(k.dir, "token-"+sum([]byte(address))[:16])
}

func (k fileKeyring) Get(_ context.Context, address string) (string, error) {
	name := k.name(address)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !private(info) {
		return "", fmt.Errorf("%s can be read by others: chmod 600 it, and sign in again", name)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	raw, err = unprotect(raw)
	return strings.TrimSpace(string(raw)), err
}

func (k fileKeyring) Set(_ context.Context, address, token string) error {
	raw, err := protect([]byte(token))
	if err != nil {
		return err
	}
	_, err = writeFile(k.name(address), raw, 0o600)
	return err
}

func (k fileKeyring) Delete(_ context.Context, address string) error {
	if err := os.Remove(k.name(address)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
