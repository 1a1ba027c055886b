package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
	"gateway/local/migrate"
)

var importVerb = Verb{
	Name: "import", Args: "litellm <file> | bifrost <file> | openrouter [file] | reference --url <address> --key-env <name>", Path: []string{"litellm", "bifrost", "openrouter", "reference", "--apply", "--workspace"},
	Summary: "Import from another gateway; a dry run without --apply", Run: importFrom,
}

// importFlags are the flags of every import.
type importFlags struct {
	apply, inactive           bool
	workspace, keys           string
	database, apiURL, apiKey  string // of litellm
	url, key, secrets, prefix string // of reference
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
	fs.StringVar(&f.keys, "keys-file", "", "file that gets the new API keys, one JSON object a line; without it, no keys are created")
	fs.StringVar(&f.database, "database-url-env", "", "litellm: variable with the address of the PostgreSQL database")
	fs.StringVar(&f.apiURL, "api-url", "", "litellm: address of the running proxy")
	fs.StringVar(&f.apiKey, "api-key-env", "", "litellm: variable with a key of the proxy's administrator")
	fs.StringVar(&f.url, "url", "", "reference: address of the other gateway")
	fs.StringVar(&f.key, "key-env", "", "reference: variable with a key of its organization")
	fs.StringVar(&f.secrets, "secrets", "", "reference: YAML file with the values of secrets, NAME: value")
	fs.StringVar(&f.prefix, "header-prefix", "", "reference: prefix of the other gateway's headers, if not x-gateway")
	args, asJSON, err := e.Parse(fs, 1, 2)
	if err != nil {
		return e.Fail(err)
	}
	result, err := e.source(ctx, args, f)
	if err != nil {
		return e.Fail(err)
	}
	return e.Fail(e.carryOut(ctx, result, f, asJSON))
}

// source reads the configuration to import.
func (e Env) source(ctx context.Context, args []string, f importFlags) (*migrate.Result, error) {
	file := ""
	if len(args) == 2 {
		file = args[1]
	}
	switch {
	case args[0] == "litellm" && file != "":
		result, err := migrate.LiteLLM(file, e.Getenv)
		if err != nil {
			return nil, err
		}
		return result, e.records(ctx, result, f)
	case args[0] == "bifrost" && file != "":
		return migrate.Bifrost(file, e.Getenv)
	case args[0] == "openrouter":
		return migrate.OpenRouter(file, e.Getenv)
	case args[0] == "reference" && file == "" && f.url != "" && f.key != "":
		return e.reference(ctx, f)
	}
	return nil, Usagef("import: use litellm <file>, bifrost <file>, openrouter [file], or reference --url <address> --key-env <name>; see gateway import --help")
}

// named returns the value of the variable that a flag names.
func (e Env) named(flag, name string) (string, error) {
	v := e.Getenv(name)
	if v == "" {
		return "", fmt.Errorf("--%s: the variable %s is not set", flag, name)
	}
	return v, nil
}

// records adds what a LiteLLM proxy has in its database.
func (e Env) records(ctx context.Context, result *migrate.Result, f importFlags) error {
	switch {
	case f.database != "" && f.apiURL != "":
		return Usagef("import: --database-url-env and --api-url are two ways to the same records; use one")
	case f.database != "":
		address, err := e.named("database-url-env", f.database)
		if err != nil {
			return err
		}
		rec, err := migrate.Database(ctx, address)
		if err != nil {
			return err
		}
		result.AddRecords(rec)
	case f.apiURL != "":
		if f.apiKey == "" {
			return Usagef("import: --api-url needs --api-key-env")
		}
		key, err := e.named("api-key-env", f.apiKey)
		if err != nil {
			return err
		}
		base, err := parseAddress(f.apiURL)
		if err != nil {
			return err
		}
		c := newClient(base)
		rec, err := migrate.Administration(ctx, func(ctx context.Context, path string) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
			if err != nil {
				return nil, err
			}
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := c.HTTP.Do(req)
			if err != nil {
				return nil, Unreachable{base, cause(err)}
			}
			return resp, nil
		})
		if err != nil {
			return err
		}
		result.AddRecords(rec)
	}
	return nil
}

// aliased sends requests to a gateway with another prefix of header names.
type aliased struct {
	Client
	prefix, key string
}

// Do sends a request with the key in the gateway's own header.
func (a aliased) Do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	return a.Client.Do(ctx, method, path, body, append(header, a.prefix+"-api-key", a.key)...)
}

var headerPrefix = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

func (e Env) reference(ctx context.Context, f importFlags) (*migrate.Result, error) {
	base, err := parseAddress(f.url)
	if err != nil {
		return nil, err
	}
	key, err := e.named("key-env", f.key)
	if err != nil {
		return nil, err
	}
	c := newClient(base)
	if c.Key = key; f.prefix != "" {
		if !headerPrefix.MatchString(f.prefix) {
			return nil, Usagef("import: --header-prefix must be lower case letters, digits and dashes, such as x-acme")
		}
		c.Key = ""
	}
	secrets, err := readSecrets(f.secrets)
	if err != nil {
		return nil, err
	}
	var api declare.API = c
	if f.prefix != "" {
		api = aliased{c, f.prefix, key}
	}
	result, err := migrate.Reference(ctx, api, secrets, e.Getenv)
	if err != nil {
		return nil, err
	}
	result.AddSecretTodos()
	return result, nil
}

// readSecrets reads the values of secrets from a file.
func readSecrets(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := readLimited(path, document.MaxBytes)
	if err != nil {
		return nil, err
	}
	n, err := document.Parse(filepath.Base(path), raw)
	if err != nil {
		return nil, err
	}
	if err := n.Expect("", document.Map); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range n.Fields() {
		if err := f.Value.Expect(f.Name, document.Text, document.Number); err != nil {
			return nil, err
		}
		out[f.Name] = f.Value.Scalar()
	}
	return out, nil
}

// carryOut compares the result of an import with the gateway, reports the differences, and
// writes them on request.
func (e Env) carryOut(ctx context.Context, result *migrate.Result, f importFlags, asJSON bool) error {
	out := &outcome{Report: result.Report, Steps: []*declare.Step{}}
	if n := len(result.Access.Keys); n > 0 && f.keys == "" {
		result.Report.Todo = append(result.Report.Todo, fmt.Sprintf("name a file with --keys-file to create %d API keys", n))
		result.Access.Keys = nil
	}
	plan, err := e.importPlan(ctx, result, f, out)
	var away Unreachable
	var usage UsageError
	switch {
	case err == nil:
		out.Steps, out.Compared, out.Missing = append(out.Steps, plan.Steps...), true, plan.Missing()
	case !f.apply && (errors.As(err, &away) || errors.As(err, &usage) && e.Getenv(EnvKey) == ""):
		fmt.Fprintf(e.Stderr, "gateway: not compared with a gateway: %v\n", err)
	default:
		return err
	}
	if !asJSON {
		result.Report.Print(e.Stdout)
		fmt.Fprintln(e.Stdout)
		printPlan(e, plan)
	}
	if f.apply {
		if err := plan.Apply(ctx, progressOf(e, asJSON)); err != nil {
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
	options := declare.Options{Secrets: result.Secrets, PreserveNames: true, KnownSettings: true}
	if main := result.Document.Workspaces; len(main) > 0 && main[0].Slug == migrate.MainWorkspace {
		at, err := declare.FindWorkspace(ctx, c, f.workspace)
		if err != nil {
			return nil, err
		}
		if at.FromKey && len(main) > 1 {
			return nil, errors.New("teams become workspaces, which needs a key of the organization")
		}
		main[0].Name, options.OwnWorkspace, out.Workspace = at.Name, at.FromKey, at.Slug
		if len(main[0].Sections["configs"]) > 0 && (at.FromKey || at.Slug != "") {
			name, err := declare.DefaultConfig(ctx, c, at.Slug)
			if err != nil {
				return nil, err
			}
			if name != "" && name != migrate.ConfigName {
				return nil, fmt.Errorf("the default config of the workspace is %q, and imported models need it to be theirs: import into another workspace with --workspace, or make that config no default", name)
			}
		}
	}
	if options.Inactive = f.inactive || f.url != ""; f.inactive {
		result.AddSecretTodos()
	}
	plan, err := declare.MakePlan(ctx, c, result.Document, options)
	if err != nil {
		return nil, err
	}
	return plan, plan.AddAccess(ctx, result.Access, func(k declare.Key, id, value string) error { return appendKey(f.keys, k, id, value) })
}

// appendKey appends a new key to a file that only its user can read.
func appendKey(path string, k declare.Key, id, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = file.Chmod(0o600); err == nil { // of a file that others could read before
		err = json.NewEncoder(file).Encode(map[string]string{"source": k.Source, "name": k.Name, "workspace": k.Workspace, "id": id, "key": value})
	}
	return errors.Join(err, file.Close())
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

// progressOf reports each step that is done, on standard error if standard output is JSON.
func progressOf(e Env, asJSON bool) func(*declare.Step) {
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
