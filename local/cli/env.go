package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

var envVerb = Verb{
	Name: "env", Args: "[sdk]", Summary: "Print the variables that point SDKs at the gateway",
	Words: []string{"openai", "anthropic", "gemini", "bedrock", "cohere", "--shell"}, Run: printEnv,
}

// sdk is a family of client libraries: which variables it reads.
type sdk struct {
	name  string
	url   []string // variables of the base URL
	path  string   // appended to the address of the gateway
	key   []string // variables of the key
	unset []string // variables that would take precedence
}

var sdks = []sdk{
	{name: "openai", url: []string{"OPENAI_BASE_URL"}, path: "/v1", key: []string{"OPENAI_API_KEY"}},
	{name: "anthropic", url: []string{"ANTHROPIC_BASE_URL"}, key: []string{"ANTHROPIC_AUTH_TOKEN"}, unset: []string{"ANTHROPIC_API_KEY"}},
	{name: "gemini", url: []string{"GOOGLE_GEMINI_BASE_URL"}, key: []string{"GEMINI_API_KEY"}, unset: []string{"GOOGLE_API_KEY"}}, //nolint:misspell // names of Google's SDKs
	{name: "bedrock", url: []string{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"}, path: "/v1", key: []string{"AWS_BEARER_TOKEN_BEDROCK"}},
	{name: "cohere", url: []string{"CO_API_URL"}, path: "/v1", key: []string{"CO_API_KEY"}},
}

// shells maps a shell to its lines: a text is assigned literally, the key by reference.
var shells = map[string]struct{ text, key, unset string }{
	"sh":         {"export %s='%s'\n", "export %s=\"$%s\"\n", "unset %s\n"},
	"fish":       {"set -gx %s '%s'\n", "set -gx %s \"$%s\"\n", "set -e %s\n"},
	"powershell": {"$env:%s = '%s'\n", "$env:%s = $env:%s\n", "Remove-Item -ErrorAction SilentlyContinue Env:%s\n"},
}

func printEnv(_ context.Context, e Env) int {
	fs := Flags("env")
	shell := fs.String("shell", "", "sh, fish or powershell; default: by the variable SHELL")
	args, asJSON, err := e.Parse(fs, 0, 1)
	if err != nil {
		return e.Fail(err)
	}
	if *shell == "" {
		*shell = shellOf(e)
	}
	lines, ok := shells[*shell]
	if !ok {
		return e.Fail(Usagef("env: --shell must be sh, fish or powershell"))
	}
	list := sdks
	if len(args) == 1 {
		i := slices.IndexFunc(sdks, func(s sdk) bool { return s.name == args[0] })
		if i < 0 {
			return e.Fail(Usagef("env: unknown sdk %s; use %s", shown(args[0]), strings.Join(sdkNames(), ", ")))
		}
		list = sdks[i : i+1]
	}
	base, err := e.Address()
	if err != nil {
		return e.Fail(err)
	}
	if strings.Contains(base, "'") {
		return e.Fail(Usagef("%s must not contain a quote", EnvURL))
	}
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(envJSON(list, base)))
	}
	for _, s := range list {
		for _, name := range s.unset {
			fmt.Fprintf(e.Stdout, lines.unset, name)
		}
		for _, name := range s.url {
			fmt.Fprintf(e.Stdout, lines.text, name, base+s.path)
		}
		for _, name := range s.key {
			fmt.Fprintf(e.Stdout, lines.key, name, EnvKey)
		}
	}
	if e.Getenv(EnvKey) == "" {
		fmt.Fprintf(e.Stderr, "gateway: %s is not set: set it to an API key before these lines are used\n", EnvKey)
	}
	return ExitDone
}

// envJSON maps each variable to its value; a key is named by its variable.
func envJSON(list []sdk, base string) map[string]any {
	set, from, unset := map[string]string{}, map[string]string{}, []string{}
	for _, s := range list {
		for _, name := range s.url {
			set[name] = base + s.path
		}
		for _, name := range s.key {
			from[name] = EnvKey
		}
		unset = append(unset, s.unset...)
	}
	return map[string]any{"set": set, "set_from": from, "unset": unset}
}

func sdkNames() []string {
	list := make([]string, len(sdks))
	for i := range sdks {
		list[i] = sdks[i].name
	}
	return list
}

// shellOf returns the kind of the user's shell.
func shellOf(e Env) string {
	name := e.Getenv("SHELL")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	switch {
	case strings.HasPrefix(name, "fish"):
		return "fish"
	case strings.HasPrefix(name, "pwsh"), name == "" && runtime.GOOS == "windows":
		return "powershell"
	}
	return "sh"
}
