package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"gateway/shared/wire/release"
)

// Exit codes of every verb.
const (
	ExitDone        = 0
	ExitRefused     = 1 // rejected by the gateway, the input or a check
	ExitUsage       = 2 // the command line is wrong
	ExitUnreachable = 3 // no gateway answers
)

// Env is everything a verb may use of the process that runs it.
type Env struct {
	Args           []string // after the verb
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Home           string // folder of the user; "" if unknown
	Host           string // name of this machine
	Terminal       bool   // Stdin is a terminal that can answer a question

	// Keyring is the key store of the system. Nil: there is none.
	Keyring Keyring
	// Sleep replaces the pauses of login in tests. May be nil.
	Sleep func(time.Duration)

	// Browse opens an address in the browser of the user. Nil: there is no browser.
	Browse func(address string) error
}

// Verb is one command.
type Verb struct {
	Name    string
	Args    string // the usage after the name, such as "<file>"
	Summary string // one imperative phrase
	Path    []string
	Run     func(context.Context, Env) int
}

// UsageError is a mistake in the command line: exit code 2.
type UsageError struct{ Text string }

func (e UsageError) Error() string { return e.Text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// errRejected ends a verb that has already printed why it failed.
var errRejected = errors.New("refused")

// Fail prints err, if there is one, and returns the exit code that belongs to it.
func (e Env) Fail(err error) int {
	var usage UsageError
	var away Unreachable
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitDone
	case errors.Is(err, errRejected):
		return ExitRefused
	}
	fmt.Fprintln(e.Stderr, "gateway:", err)
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &away):
		return ExitUnreachable
	}
	return ExitRefused
}

// Flags returns an empty set of flags for a verb. Parse adds --json and --help.
func Flags(verb string) *flag.FlagSet {
	fs := flag.NewFlagSet(verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

// Parse reads the arguments of a verb. Flags may be anywhere among the positional arguments;
// everything after "--" is positional. It returns the positional arguments, of which there must
// be at least least and at most most (no limit below 0), and whether --json was given. After
// --help it prints the usage and returns flag.ErrHelp.
func (e Env) Parse(fs *flag.FlagSet, least, most int) (args []string, asJSON bool, err error) {
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	rest := e.Args
	for {
		if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
			e.usage(fs)
			return nil, false, err
		} else if err != nil {
			return nil, false, Usagef("%s: %v; see gateway %s --help", fs.Name(), err, fs.Name())
		}
		left := fs.Args()
		used := rest[:len(rest)-len(left)]
		if len(used) > 0 && used[len(used)-1] == "--" {
			args = append(args, left...)
			break
		}
		if len(left) == 0 {
			break
		}
		args, rest = append(args, left[0]), left[1:]
	}
	switch {
	case len(args) < least:
		return nil, false, Usagef("%s: an argument is missing; see gateway %s --help", fs.Name(), fs.Name())
	case most >= 0 && len(args) > most:
		return nil, false, Usagef("%s: unexpected argument %s; see gateway %s --help", fs.Name(), shown(args[most]), fs.Name())
	}
	return args, asJSON, nil
}

// shown quotes an argument for a message. It hides what may be a key: people paste them.
func shown(arg string) string {
	if len(arg) > 24 || strings.Contains(arg, "-key") || strings.HasPrefix(arg, "sk-") {
		return "(not repeated: a key is never an argument)"
	}
	return fmt.Sprintf("%q", arg)
}

func (e Env) usage(fs *flag.FlagSet) {
	v, ok := find(fs.Name())
	if !ok {
		v = Verb{Name: fs.Name()}
	}
	fmt.Fprintf(e.Stdout, "usage: gateway %s\n", strings.TrimSpace(v.Name+" "+v.Args))
	if v.Summary != "" {
		fmt.Fprintf(e.Stdout, "\n%s.\n", v.Summary)
	}
	fmt.Fprintln(e.Stdout, "\nflags:")
	fs.SetOutput(e.Stdout)
	fs.PrintDefaults()
	fs.SetOutput(io.Discard)
}

// Server holds the verbs that need the stores.
type Server struct {
	Serve, Recover func(context.Context, Env) int
}

// Run runs the verb that the first argument names. Without one, or when it is a flag of
// serve, that is serve.
func Run(ctx context.Context, e Env, s Server) int {
	if len(e.Args) == 0 {
		return s.Serve(ctx, e)
	}
	first := e.Args[0]
	switch {
	case first == "--help" || first == "-help" || first == "-h":
		first = "help"
	case first == "--version" || first == "-version":
		first = "version"
	case strings.HasPrefix(first, "-"):
		return s.Serve(ctx, e)
	}
	e.Args = e.Args[1:]
	v, ok := find(first)
	switch {
	case !ok:
		return e.Fail(Usagef("unknown verb %s; use %s", shown(first), strings.Join(names(), ", ")))
	case first == "serve":
		return s.Serve(ctx, e)
	case first == "recover":
		return s.Recover(ctx, e)
	}
	return v.Run(ctx, e)
}

var versionVerb = Verb{Name: "version", Summary: "Show the version of this program", Run: version}

func version(_ context.Context, e Env) int {
	_, asJSON, err := e.Parse(Flags("version"), 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		commit = commitOf(info.Settings)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]string{"version": release.Version, "commit": commit, "go": runtime.Version(), "platform": platform}))
	}
	if commit != "" {
		commit = ", " + commit
	}
	fmt.Fprintf(e.Stdout, "gateway %s (%s, %s%s)\n", release.Version, runtime.Version(), platform, commit)
	return ExitDone
}

// commitOf returns the commit that the program was built from, with "+changes" if the tree
// had others; "" if it was built outside a repository.
func commitOf(settings []debug.BuildSetting) string {
	commit, changed := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}

var envVerb = Verb{
	Name: "env", Args: "[sdk]", Summary: "Print the variables that point SDKs at the gateway",
	Path: []string{"openai", "anthropic", "gemini", "bedrock", "cohere", "--shell"}, Run: printEnv,
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
