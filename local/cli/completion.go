package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

var completionVerb = Verb{Name: "completion", Args: "bash|zsh|fish", Summary: "Print a completion script for a shell", Path: []string{"bash", "zsh", "fish"}, Run: completion}

func completion(_ context.Context, e Env) int {
	args, _, err := e.Parse(Flags("completion"), 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	switch args[0] {
	case "bash":
		bashCompletion(e.Stdout)
	case "zsh":
		fmt.Fprint(e.Stdout, "#compdef gateway\nautoload -U +X bashcompinit && bashcompinit\n")
		bashCompletion(e.Stdout)
	case "fish":
		fishCompletion(e.Stdout)
	default:
		return e.Fail(Usagef("completion: %s is not a supported shell; use bash, zsh or fish", shown(args[0])))
	}
	return ExitDone
}

// bashCompletion completes verbs, their fixed words and flags, and otherwise files.
func bashCompletion(w io.Writer) {
	fmt.Fprintf(w, "_gateway() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=%q\n  else\n    case \"${COMP_WORDS[1]}\" in\n", strings.Join(names(), " "))
	for _, v := range listed {
		if len(v.Path) > 0 {
			fmt.Fprintf(w, "      %s) words=%q ;;\n", v.Name, strings.Join(v.Path, " "))
		}
	}
	fmt.Fprint(w, "    esac\n    words=\"$words --json --help\"\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _gateway gateway\n")
}

func fishCompletion(w io.Writer) {
	for _, v := range listed {
		fmt.Fprintf(w, "complete -c gateway -n __fish_use_subcommand -f -a %s -d %q\n", v.Name, v.Summary)
	}
	for _, v := range listed {
		if len(v.Path) > 0 {
			fmt.Fprintf(w, "complete -c gateway -n '__fish_seen_subcommand_from %s' -a %q\n", v.Name, strings.Join(v.Path, " "))
		}
	}
	fmt.Fprint(w, "complete -c gateway -l json -d 'print JSON'\ncomplete -c gateway -l help -d 'show the usage'\n")
}

var helpVerb = Verb{Name: "help", Args: "[verb]", Summary: "Show all verbs, or one", Run: help}

func help(ctx context.Context, e Env) int {
	args, asJSON, err := e.Parse(Flags("help"), 0, 1)
	if err != nil {
		return e.Fail(err)
	}
	if len(args) == 1 {
		v, ok := find(args[0])
		switch {
		case !ok:
			return e.Fail(Usagef("help: unknown verb %s", shown(args[0])))
		case v.Run == nil: // a verb of the server: its flags are in the reference
			fmt.Fprintf(e.Stdout, "usage: gateway %s %s\n\n%s. gateway %s --help lists the flags.\n", v.Name, v.Args, v.Summary, v.Name)
			return ExitDone
		}
		e.Args = []string{"--help"}
		return v.Run(ctx, e)
	}
	if asJSON {
		type line struct {
			Name    string `json:"name"`
			Args    string `json:"args,omitempty"`
			Summary string `json:"summary"`
		}
		list := make([]line, len(listed))
		for i, v := range listed {
			list[i] = line{v.Name, v.Args, v.Summary}
		}
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]any{"verbs": list}))
	}
	fmt.Fprint(e.Stdout, "usage: gateway <verb> [arguments]\n\n")
	for _, v := range listed {
		fmt.Fprintf(e.Stdout, "  %-11s %s\n", v.Name, v.Summary)
	}
	fmt.Fprint(e.Stdout, `
GATEWAY_URL names the gateway (default http://127.0.0.1:8787) and GATEWAY_API_KEY holds the
key; without them the profile of gateway login is used. Every verb takes --json and --help.
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not reachable.
`)
	return ExitDone
}

// listed holds every verb in the order of the help. Serve and recover come with the Server.
// It is filled in init, because the help and the usage of each verb read it.
var listed []Verb

func init() {
	listed = []Verb{
		{Name: "serve", Args: "[flags]", Summary: "Start the gateway on this machine (the default)"},
		loginVerb,
		setupVerb,
		envVerb,
		logsVerb,
		explainVerb,
		validateVerb,
		importVerb,
		exportVerb,
		applyVerb,
		doctorVerb,
		recoverVerb,
		versionVerb,
		completionVerb,
		helpVerb,
	}
}

func find(name string) (Verb, bool) {
	i := slices.IndexFunc(listed, func(v Verb) bool { return v.Name == name })
	if i < 0 {
		return Verb{}, false
	}
	return listed[i], true
}

func names() []string {
	list := make([]string, len(listed))
	for i, v := range listed {
		list[i] = v.Name
	}
	return list
}

// recoverVerb is listed here; the command brings what it runs, because it opens the stores.
var recoverVerb = Verb{
	Name: "recover", Args: "[-data folder] [--organization id]", Path: []string{"-data", "--organization"},
	Summary: "Make a new admin key from the local files, when the admin key is lost",
}
