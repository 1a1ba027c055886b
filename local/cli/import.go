package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gateway/local/declare"
	"gateway/local/migrate"
)

var importVerb = Verb{
	Name: "import", Args: "litellm <file> [flags]", Words: []string{"litellm"},
	Summary: "Import the configuration of another gateway; a dry run without --apply", Run: importFrom,
}

// importFlags are the flags of every import.
type importFlags struct {
	apply, inactive bool
	workspace       string
}

// outcome is what an import or an apply prints with --json.
type outcome struct {
	Report    *migrate.Report `json:"report,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Steps     []*declare.Step `json:"steps"`
	Missing   []string        `json:"missing,omitempty"` // variables without a value
	Compared  bool            `json:"compared"`          // with a gateway
	Applied   bool            `json:"applied"`
}

func importFrom(ctx context.Context, e Env) int {
	fs := Flags("import")
	var f importFlags
	fs.BoolVar(&f.apply, "apply", false, "write to the gateway; without it, nothing is written")
	fs.BoolVar(&f.inactive, "inactive", false, "import what lacks a secret without it: it cannot be used until the secret is set")
	fs.StringVar(&f.workspace, "workspace", "", "slug or name of the workspace, which is created if missing; default: that of the key, or the default workspace")
	args, asJSON, err := e.Parse(fs, 1, 2)
	if err != nil {
		return e.Fail(err)
	}
	var result *migrate.Result
	switch {
	case args[0] == "litellm" && len(args) == 2:
		result, err = migrate.LiteLLM(args[1], e.Getenv)
	default:
		err = Usagef("import: name what to import: litellm <file>; see gateway import --help")
	}
	if err != nil {
		return e.Fail(err)
	}
	return e.Fail(e.carryOut(ctx, result, f, asJSON))
}

// carryOut compares the result of an import with the gateway, reports, and writes it if that
// is asked for.
func (e Env) carryOut(ctx context.Context, result *migrate.Result, f importFlags, asJSON bool) error {
	out := &outcome{Report: result.Report, Steps: []*declare.Step{}}
	plan, err := e.importPlan(ctx, result, f, out)
	var away Unreachable
	var usage UsageError
	switch {
	case err == nil:
	case !f.apply && (errors.As(err, &away) || errors.As(err, &usage) && e.Getenv(EnvKey) == ""):
		fmt.Fprintf(e.Stderr, "gateway: not compared with a gateway: %v\n", err)
	default:
		return err
	}
	if plan != nil {
		out.Steps, out.Compared, out.Missing = plan.Steps, true, plan.Missing()
	}
	if !asJSON {
		result.Report.Print(e.Stdout)
		fmt.Fprintln(e.Stdout)
		printPlan(e, plan)
	}
	if f.apply {
		if err := plan.Apply(ctx, e.progress(asJSON)); err != nil {
			return err
		}
		out.Applied = true
	}
	if asJSON {
		return e.printJSON(out)
	}
	switch {
	case f.apply:
		fmt.Fprintf(e.Stdout, "%d steps done\n", len(plan.Steps))
	case plan == nil || len(plan.Steps) > 0:
		fmt.Fprintln(e.Stdout, "nothing was written; add --apply to write")
	}
	return nil
}

func (e Env) importPlan(ctx context.Context, result *migrate.Result, f importFlags, out *outcome) (*declare.Plan, error) {
	c, err := e.Client(ctx)
	if err != nil {
		return nil, err
	}
	w := result.Document.Workspaces[0]
	own := false
	if w.Slug = f.workspace; w.Slug == "" {
		if w.Slug, own, err = declare.DefaultWorkspace(ctx, c); err != nil {
			return nil, err
		}
	} else {
		w.Name = f.workspace
	}
	out.Workspace = w.Slug
	if len(w.Sections["configs"]) > 0 {
		name, err := declare.DefaultConfig(ctx, c, w.Slug)
		if err != nil {
			return nil, err
		}
		if name != "" && name != migrate.ConfigName {
			return nil, fmt.Errorf("the default config of the workspace is %q, and imported models need it to be theirs: import into another workspace with --workspace, or make that config no default", name)
		}
	}
	if f.inactive {
		result.Deactivate()
	}
	return declare.Make(ctx, c, result.Document, declare.Options{Secrets: result.Secrets, OwnWorkspace: own, KeepNames: true})
}

// printPlan prints the steps of a plan, and the variables that have no value.
func printPlan(e Env, plan *declare.Plan) {
	switch {
	case plan == nil:
		return
	case len(plan.Steps) == 0:
		fmt.Fprintln(e.Stdout, "no changes")
		return
	}
	for _, s := range plan.Steps {
		fmt.Fprintln(e.Stdout, s)
	}
	fmt.Fprintln(e.Stdout)
	if missing := plan.Missing(); len(missing) > 0 {
		fmt.Fprintf(e.Stdout, "to do: set %s\n", strings.Join(missing, ", "))
	}
}

// progress reports each step that is done, on standard error if standard output is JSON.
func (e Env) progress(asJSON bool) func(*declare.Step) {
	w := e.Stdout
	if asJSON {
		w = e.Stderr
	}
	return func(s *declare.Step) { fmt.Fprintln(w, "done:", s) }
}

func (e Env) printJSON(v any) error {
	enc := json.NewEncoder(e.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
