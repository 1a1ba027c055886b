package components

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Resolve undoes Extract: it returns a document with references to its components replaced by
// what they refer to, each status with its response and each operation with its security, for
// readers that do not follow references. Circular references are an error.
func Resolve(raw []byte) (json.RawMessage, error) {
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("components: %w", err)
	}
	r := resolver{doc, map[string]any{}}
	paths, err := r.resolve(doc["paths"], nil)
	if err != nil {
		return nil, fmt.Errorf("components: %w", err)
	}
	doc["paths"] = paths
	all, _ := paths.(map[string]any)
	each(all, func(op map[string]any) {
		unfold(op)
		if _, ok := op["security"]; !ok && doc["security"] != nil {
			op["security"] = doc["security"]
		}
	})
	delete(doc, "security")
	return json.Marshal(doc)
}

type resolver struct {
	doc  map[string]any
	done map[string]any
}

func (r resolver) resolve(v any, within []string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && (len(v) == 1 || len(v) == 2 && v[goName] != nil) {
			return r.follow(ref, within)
		}
		out := make(map[string]any, len(v))
		for name, inner := range v {
			var err error
			if out[name], err = r.resolve(inner, within); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			var err error
			if out[i], err = r.resolve(inner, within); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func (r resolver) follow(ref string, within []string) (any, error) {
	if done, ok := r.done[ref]; ok {
		return done, nil
	}
	if slices.Contains(within, ref) {
		return nil, fmt.Errorf("%s refers to itself", ref)
	}
	var at any = r.doc
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		of, _ := at.(map[string]any)
		at = of[name]
	}
	if at == nil {
		return nil, fmt.Errorf("%s refers to nothing", ref)
	}
	out, err := r.resolve(at, append(slices.Clip(within), ref))
	if err != nil {
		return nil, err
	}
	r.done[ref] = out
	return out, nil
}
