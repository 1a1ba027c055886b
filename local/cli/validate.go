package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gateway/local/migrate"
	"gateway/shared/fault"
	"gateway/shared/route"
)

var validateVerb = Verb{Name: "validate", Args: "<file|->", Summary: "Check a config object or an import file, offline", Run: validate}

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
	var kind string
	var found []problem
	if isImport(args[0], raw) {
		kind, found, err = checkImport(args[0], raw)
		if err != nil {
			return e.Fail(err)
		}
	} else {
		kind, found = check(raw)
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

// isImport reports whether a file is the configuration of another gateway: YAML, or JSON
// with its members.
func isImport(name string, raw []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return true
	}
	var top struct {
		Models json.RawMessage `json:"model_list"`
	}
	return json.Unmarshal(raw, &top) == nil && top.Models != nil
}

// checkImport reads a file as the import does, with a value for each secret.
func checkImport(name string, _ []byte) (kind string, found []problem, err error) {
	const litellm = "litellm import"
	if name == "-" {
		return litellm, nil, Usagef("validate: an import file is read with the files that it includes: name it instead of -")
	}
	if _, err := migrate.LiteLLM(name, func(string) string { return "validate" }); err != nil {
		return litellm, []problem{{"", err.Error()}}, nil //nolint:nilerr // it is the result
	}
	return litellm, []problem{}, nil
}

// check returns what a file is and all that is wrong in it.
func check(raw []byte) (kind string, found []problem) {
	const config = "config"
	found = []problem{}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		at := ""
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = fmt.Sprintf("line %d", 1+bytes.Count(raw[:min(int(syntax.Offset), len(raw))], []byte("\n")))
		}
		return config, append(found, problem{at, "not a JSON object: " + err.Error()})
	}
	// The body of POST /v1/configs has the config in it.
	body, wrapped := top["config"]
	if !wrapped {
		body = raw
	} else if _, named := top["name"]; !named {
		return config, append(found, problem{"name", "is required beside config"})
	}
	_, details := route.Parse(body, route.Strict)
	return config, append(found, problems(details)...)
}

func problems(details []fault.Detail) []problem {
	out := make([]problem, len(details))
	for i, d := range details {
		out[i] = problem{d.Field, d.Message}
	}
	return out
}
