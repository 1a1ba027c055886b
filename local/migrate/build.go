package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
	"gateway/shared/route"
)

// MainWorkspace is the label, in the document, of the workspace of the import.
const MainWorkspace = "workspace-of-the-import"

// Result is what an import found.
type Result struct {
	Document *declare.Document
	Report   *Report
	Access   declare.Access // people and keys

	literal map[string]string // secrets contained in the source
	getenv  func(string) string
}

// Secrets returns the values of the secrets that the document names, from the source and the
// environment.
func (r *Result) Secrets(name string) (string, bool) {
	if v, ok := r.literal[name]; ok {
		return v, true
	}
	v := r.getenv(name)
	return v, v != ""
}

// builder collects the resources of an import into one workspace.
type builder struct {
	marks
	*Result
	space   *declare.Workspace
	origin  string            // prefix of the slugs of imported resources
	environ map[string]string // variables that the source sets itself
	todo    map[string]bool
}

func newBuilder(origin string, getenv func(string) string) *builder {
	w := &declare.Workspace{Slug: MainWorkspace, Fields: map[string]any{}, Sections: map[string][]*declare.Resource{}}
	return &builder{
		marks: marks{}, space: w, origin: origin, environ: map[string]string{}, todo: map[string]bool{},
		Result: &Result{Document: &declare.Document{Workspaces: []*declare.Workspace{w}}, Report: new(Report), literal: map[string]string{}, getenv: getenv},
	}
}

// add adds a resource, unless one of the same slug or name is there.
func (b *builder) add(section string, fields map[string]any) {
	for _, r := range b.space.Sections[section] {
		if r.Fields["slug"] == fields["slug"] && r.Fields["name"] == fields["name"] {
			return
		}
	}
	b.space.Sections[section] = append(b.space.Sections[section], &declare.Resource{Fields: fields})
}

func (b *builder) remind(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !b.todo[text] {
		b.todo[text] = true
		b.Report.Todo = append(b.Report.Todo, text)
	}
}

const environPrefix = "os.environ/"

// env returns the value of a variable, as the source or the environment sets it.
func (b *builder) env(name string) (string, bool) {
	if v, ok := b.environ[name]; ok {
		return v, true
	}
	v := b.getenv(name)
	return v, v != ""
}

// secretText returns the form in the document of a secret of the source: a reference to the
// environment, or a literal secret, which the document only names. at determines that name.
func (b *builder) secretText(text, at string) string {
	if name, ok := strings.CutPrefix(text, environPrefix); ok {
		return b.secretEnv(name)
	}
	name := "IMPORT_" + strings.ToUpper(strings.ReplaceAll(identifier(at), "-", "_"))
	b.literal[name] = text
	return "${" + name + "}"
}

// secretEnv returns the form in the document of a secret in a variable.
func (b *builder) secretEnv(name string) string {
	if v, ok := b.environ[name]; ok {
		b.literal[name] = v
	}
	return "${" + name + "}"
}

// derived returns the form in the document of a secret with a text before it.
func (b *builder) derived(prefix, form string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(form, "${"), "}")
	value, ok := b.Secrets(name)
	if prefix == "" || !ok {
		return form
	}
	b.literal[name+"_HEADER"] = prefix + value
	return "${" + name + "_HEADER}"
}

// text returns a value that is no secret. One that comes from a variable which is not set is
// named like a secret, so that nothing is written without it.
func (b *builder) text(n *document.Node) string { return b.plain(n.Scalar()) }

func (b *builder) plain(text string) string {
	name, ok := strings.CutPrefix(text, environPrefix)
	if !ok {
		return declare.Escape(text)
	}
	if v, ok := b.env(name); ok {
		return declare.Escape(v)
	}
	return "${" + name + "}"
}

// escaped returns a value of the source in the form of a document.
func escaped(v any) any {
	switch v := v.(type) {
	case string:
		return declare.Escape(v)
	case []any:
		for i := range v {
			v[i] = escaped(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = escaped(v[k])
		}
	}
	return v
}

// digest is a short stable name for a set of values.
func digest(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:3])
}

// checkConfig returns what the gateway would reject in a config.
func checkConfig(config map[string]any) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	cfg, bad := route.Parse(raw, route.Strict)
	if len(bad) == 0 {
		_, bad = cfg.Compile()
	}
	if len(bad) > 0 {
		return fmt.Errorf("the config that would be written is not valid: %s: %s", bad[0].Field, bad[0].Message)
	}
	return nil
}

// finish completes the report.
func (b *builder) finish(roots ...*document.Node) (*Result, error) {
	for _, root := range roots {
		b.Report.Lines = append(b.Report.Lines, b.lines(root)...)
	}
	for _, r := range b.space.Sections["configs"] {
		config, _ := r.Fields["config"].(map[string]any)
		if err := checkConfig(config); err != nil {
			return nil, err
		}
	}
	return b.Result, nil
}
