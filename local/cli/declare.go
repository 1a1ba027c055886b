package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
)

var exportVerb = Verb{Name: "export", Summary: "Print the organization as one YAML file, secrets as ${NAME}", Run: export}

var applyVerb = Verb{Name: "apply", Args: "-f <file> [--plan] [--yes] [--prune]", Summary: "Bring the gateway to the state of a file", Run: apply, Words: []string{"-f", "--plan", "--yes", "--prune"}}

func export(ctx context.Context, e Env) int {
	_, asJSON, err := e.Parse(Flags("export"), 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	c, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	raw, secrets, err := declare.Export(ctx, c)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		n, err := document.Parse("export", raw)
		if err != nil {
			return e.Fail(err)
		}
		return e.Fail(e.printJSON(n.Value()))
	}
	if len(secrets) > 0 {
		fmt.Fprintf(e.Stdout, "# gateway apply takes these from the environment where they have to be written:\n# %s\n", strings.Join(secrets, "\n# "))
	}
	_, err = e.Stdout.Write(raw)
	return e.Fail(err)
}

func apply(ctx context.Context, e Env) int {
	fs := Flags("apply")
	file := fs.String("f", "", "the file; - is standard input")
	only := fs.Bool("plan", false, "only show what would be done")
	yes := fs.Bool("yes", false, "write without asking")
	prune := fs.Bool("prune", false, "delete what the file does not have, in the sections that it has")
	_, asJSON, err := e.Parse(fs, 0, 0)
	if err == nil && *file == "" {
		err = Usagef("apply: name the file with -f; see gateway apply --help")
	}
	if err != nil {
		return e.Fail(err)
	}
	d, err := e.readDocument(*file)
	if err != nil {
		return e.Fail(err)
	}
	c, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	plan, err := declare.Make(ctx, c, d, declare.Options{Prune: *prune, Secrets: func(name string) (string, bool) {
		v := e.Getenv(name)
		return v, v != ""
	}})
	if err != nil {
		return e.Fail(err)
	}
	out := &outcome{Steps: plan.Steps, Missing: plan.Missing(), Compared: true}
	if out.Steps == nil {
		out.Steps = []*declare.Step{}
	}
	if !asJSON {
		printPlan(e, plan)
	}
	if !*only && len(plan.Steps) > 0 {
		if err := plan.Check(); err != nil {
			return e.Fail(err)
		}
		if !*yes && !e.Terminal {
			return e.Fail(Usagef("apply: without a terminal, --yes is needed to write; nothing was written"))
		}
		if ok, err := e.confirm(*yes, fmt.Sprintf("Carry out %d steps?", len(plan.Steps))); !ok {
			return e.Fail(err)
		}
		if err := plan.Apply(ctx, progressOf(e, asJSON)); err != nil {
			return e.Fail(err)
		}
		out.Applied = true
	}
	if asJSON {
		return e.Fail(e.printJSON(out))
	}
	return ExitDone
}

// readDocument reads a declared state.
func (e Env) readDocument(path string) (*declare.Document, error) {
	var raw []byte
	var err error
	if path == "-" {
		path = "standard input"
		raw, err = io.ReadAll(io.LimitReader(e.Stdin, document.MaxBytes+1))
	} else {
		raw, err = readLimited(path, document.MaxBytes)
	}
	if err != nil {
		return nil, err
	}
	n, err := document.Parse(filepath.Base(path), raw)
	if err != nil {
		return nil, err
	}
	return declare.Parse(n)
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
