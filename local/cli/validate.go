package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"gateway/local/declare"
	"gateway/local/document"
	"gateway/local/migrate"
	"gateway/shared/fault"
	"gateway/shared/route"
)

var validateVerb = Verb{Name: "validate", Args: "<file|->", Summary: "Check a config object, an import file or a declared state, offline", Run: validate}

// maxValidated limits the file, in bytes.
const maxValidated = 16 << 20

// problem is one thing that is wrong in a file.
type problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func validate(_ context.Context, e Env) int {
	args, asJSON, err := e.Parse(Flags("validate"), 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	raw, err := e.readInput(args[0], maxValidated)
	if err != nil {
		return e.Fail(err)
	}
	kind, found, err := check(args[0], raw)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		err := json.NewEncoder(e.Stdout).Encode(map[string]any{"file": args[0], "kind": kind, "valid": len(found) == 0, "errors": found})
		if err == nil && len(found) > 0 {
			err = errRefused
		}
		return e.Fail(err)
	}
	for _, p := range found {
		field := p.Field
		if field != "" {
			field += ": "
		}
		fmt.Fprintf(e.Stdout, "%s: %s%s\n", args[0], plain(field), plain(p.Message))
	}
	if len(found) > 0 {
		return e.Fail(errRefused)
	}
	fmt.Fprintf(e.Stdout, "%s: valid %s\n", args[0], kind)
	return ExitDone
}

// Kinds of files.
const (
	kindConfig  = "config"
	kindState   = "declared state"
	kindLiteLLM = "litellm import"
)

// kindOf determines the kind of a file by its fields.
func kindOf(n *document.Node) string {
	switch {
	case n.Get("model_list") != nil || n.Get("litellm_settings") != nil || n.Get("router_settings") != nil || n.Get("general_settings") != nil:
		return kindLiteLLM
	case n.Get("version") != nil && (n.Get("organization") != nil || n.Get("workspaces") != nil):
		return kindState
	}
	return kindConfig
}

// check returns what a file is and all that is wrong in it.
func check(name string, raw []byte) (kind string, found []problem, err error) {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	root, err := document.Parse(filepath.Base(name), raw)
	if err != nil {
		return kindConfig, []problem{{"", err.Error()}}, nil //nolint:nilerr // it is the result
	}
	if root.Kind() != document.Map {
		return kindConfig, []problem{{"", "must be an object, not " + root.Kind().String()}}, nil
	}
	switch kind = kindOf(root); kind {
	case kindLiteLLM:
		if name == "-" {
			return kind, nil, Usagef("validate: an import file is read with the files that it includes: name it instead of -")
		}
		_, err = migrate.LiteLLM(name, func(string) string { return "validate" }) // a value for each secret
	case kindState:
		_, err = declare.Parse(root)
	default:
		return kind, checkConfig(root, raw), nil
	}
	if err != nil {
		return kind, []problem{{"", err.Error()}}, nil
	}
	return kind, []problem{}, nil
}

// checkConfig checks a config object, or the body of POST /v1/configs, by the parser of the
// gateway.
func checkConfig(root *document.Node, raw []byte) []problem {
	if !json.Valid(raw) { // YAML
		var err error
		if raw, err = json.Marshal(root.Value()); err != nil {
			return []problem{{"", err.Error()}}
		}
	}
	var body struct {
		Name   json.RawMessage `json:"name"`
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return []problem{{"", err.Error()}}
	}
	if body.Config != nil {
		if body.Name == nil {
			return []problem{{"name", "is required beside config"}}
		}
		raw = body.Config
	}
	_, details := route.Parse(raw, route.Strict)
	return problems(details)
}

func problems(details []fault.Detail) []problem {
	out := make([]problem, len(details))
	for i, d := range details {
		out[i] = problem{d.Field, d.Message}
	}
	return out
}
