package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
)

var completionVerb = Verb{Name: "completion", Args: "bash|zsh|fish", Summary: "Print a completion script for a shell", Words: []string{"bash", "zsh", "fish"}, Run: completion}

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
		return e.Fail(Usagef("completion: %s is no shell that is supported; use bash, zsh or fish", shown(args[0])))
	}
	return ExitDone
}

// bashCompletion completes verbs, their fixed words and flags, and otherwise files.
func bashCompletion(w io.Writer) {
	fmt.Fprintf(w, "_gateway() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=%q\n  else\n    case \"${COMP_WORDS[1]}\" in\n", strings.Join(names(), " "))
	for _, v := range listed {
		if len(v.Words) > 0 {
			fmt.Fprintf(w, "      %s) words=%q ;;\n", v.Name, strings.Join(v.Words, " "))
		}
	}
	fmt.Fprint(w, "    esac\n    words=\"$words --json --help\"\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _gateway gateway\n")
}

func fishCompletion(w io.Writer) {
	for _, v := range listed {
		fmt.Fprintf(w, "complete -c gateway -n __fish_use_subcommand -f -a %s -d %q\n", v.Name, v.Summary)
	}
	for _, v := range listed {
		if len(v.Words) > 0 {
			fmt.Fprintf(w, "complete -c gateway -n '__fish_seen_subcommand_from %s' -a %q\n", v.Name, strings.Join(v.Words, " "))
		}
	}
	fmt.Fprint(w, "complete -c gateway -l json -d 'print JSON'\ncomplete -c gateway -l help -d 'show the usage'\n")
}
