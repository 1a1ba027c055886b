package migrate

import (
	"slices"

	"gateway/local/document"
)

// Limits of a source.
const (
	maxSource   = 4 << 20 // bytes of all files
	maxIncluded = 32
)

// importer collects models under bare names, and what goes with them, for one workspace.
type importer struct {
	*builder
	root        *document.Node
	credentials map[string]*document.Node // of credential_list
	groups      []*group
	byName      map[string]*group
	slugs       map[string]string // identity of credentials to the slug of an integration
	shared      settings
	attached    map[string][]any // guardrails of the config
}

func newImporter(origin string, getenv func(string) string) *importer {
	return &importer{builder: newBuilder(origin, getenv), credentials: map[string]*document.Node{}, byName: map[string]*group{}, slugs: map[string]string{}, attached: map[string][]any{}}
}

// LiteLLM reads a configuration file of a LiteLLM proxy and the files that it includes.
func LiteLLM(path string, getenv func(string) string) (*Result, error) {
	roots, err := readLiteLLM(path)
	if err != nil {
		return nil, err
	}
	l := newImporter("litellm", getenv)
	l.root = merge(roots)
	for _, root := range roots {
		l.mapped(root.Get("include"), "read, inside the folder of the file")
		for _, n := range []string{"finetune_settings", "files_settings", "vector_store_registry", "assistant_settings"} {
			l.changed(root.Get(n), "requests of these routes name a saved provider: @slug")
		}
		l.not(root.Get("prompts"), "save prompts with POST /v1/prompts")
		l.not(root.Get("health_check"), "circuit breakers watch real requests")
	}
	for _, step := range []func(*importer) error{readEnvironment, readCredentials, readSettings, readModels, readGuardrails, readServers, writeRouter} {
		if err := step(l); err != nil {
			return nil, err
		}
	}
	return l.finish(roots...)
}

// readLiteLLM reads a file and those that it includes, the file first.
func readLiteLLM(path string) ([]*document.Node, error) {
	folder, name, err := document.Open(path, maxSource)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	root, err := folder.Read(name, document.Place{})
	if err != nil {
		return nil, err
	}
	roots := []*document.Node{root}
	seen := []string{name}
	for i := 0; i < len(roots); i++ {
		if roots[i].Kind() != document.Map {
			return nil, document.Errorf(roots[i].At, "", "must be a mapping with model_list, litellm_settings, router_settings and general_settings")
		}
		include := roots[i].Get("include")
		if err := include.Expect("include", document.List); err != nil {
			return nil, err
		}
		for _, item := range include.Items() {
			if err := item.Expect("include", document.Text); err != nil {
				return nil, err
			}
			if slices.Contains(seen, item.Scalar()) {
				return nil, document.Errorf(item.At, "include", "%q is included twice", item.Scalar())
			}
			if len(roots) >= maxIncluded {
				return nil, document.Errorf(item.At, "include", "includes too many files; %d are allowed", maxIncluded)
			}
			seen = append(seen, item.Scalar())
			more, err := folder.Read(item.Scalar(), item.At)
			if err != nil {
				return nil, err
			}
			roots = append(roots, more)
		}
	}
	return roots, nil
}

// merge returns one mapping of several files: lists are joined, and of other values the
// first one counts.
func merge(roots []*document.Node) *document.Node {
	all := roots[0]
	for _, more := range roots[1:] {
		all = document.Join(all, more)
	}
	return all
}

// readEnvironment reads environment_variables: other values refer to them.
func readEnvironment(l *importer) error {
	n := l.root.Get("environment_variables")
	if err := n.Expect("environment_variables", document.Map); err != nil {
		return err
	}
	for _, f := range n.Fields() {
		if k := f.Value.Kind(); k == document.Map || k == document.List || k == document.Null {
			l.not(f.Value, "is no text")
			continue
		}
		l.environ[f.Name] = f.Value.Scalar()
		l.mapped(f.Value, "value of os.environ/"+f.Name)
	}
	return nil
}

func readCredentials(l *importer) error {
	n := l.root.Get("credential_list")
	if err := n.Expect("credential_list", document.List); err != nil {
		return err
	}
	for _, item := range n.Items() {
		if err := item.Expect("credential_list[]", document.Map); err != nil {
			return err
		}
		values := item.Get("credential_values")
		if err := values.Expect("credential_list[].credential_values", document.Map); err != nil {
			return err
		}
		l.credentials[item.Get("credential_name").Scalar()] = values
		l.mapped(item.Get("credential_name"), "credentials of the models that name it")
		l.mapped(item.Get("credential_info"), "says nothing that the models do not")
		l.not(values, "no model names this credential")
	}
	return nil
}

// requireMaps returns an error unless n is a list of mappings.
func requireMaps(n *document.Node, at string) error {
	if err := n.Expect(at, document.List); err != nil {
		return err
	}
	for _, item := range n.Items() {
		if item.Kind() != document.Map {
			return document.Errorf(item.At, at+"[]", "must be a mapping, not %s", item.Kind())
		}
	}
	return nil
}
