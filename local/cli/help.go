package cli

import (
	"context"
	"encoding/json"
	"fmt"
)

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
