package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// request returns the API call for the arguments. why is the reason if the arguments are
// invalid. The API validates values, as for any caller.
func (t *Tool) request(ctx context.Context, arguments json.RawMessage) (req *http.Request, why string) {
	args := map[string]json.RawMessage{}
	if len(arguments) > 0 && (json.Unmarshal(arguments, &args) != nil || args == nil) {
		return nil, "arguments must be an object"
	}
	known, path, query := map[string]bool{bodyName: t.body != nil}, t.Path, url.Values{}
	for _, p := range t.params {
		known[p.Name] = true
		raw := args[p.Name]
		given := raw != nil && string(raw) != "null"
		text, ok := textOf(raw)
		switch {
		case !given && p.Required:
			return nil, p.Name + " is required"
		case !given:
		case !ok:
			return nil, p.Name + " must be a value, a list of values or an object"
		case p.In == "path" && (text == "" || text == "." || text == ".."):
			return nil, p.Name + " must name something"
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		default:
			query.Set(p.Name, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !known[name] {
			return nil, fmt.Sprintf("there is no argument %.64q; there are %s", name, strings.Join(t.arguments(), ", "))
		}
	}
	body := args[bodyName]
	if t.body != nil && t.needed && (body == nil || string(body) == "null") {
		return nil, bodyName + " is required: an object with the fields of the resource"
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, t.Method, path, bytes.NewReader(body))
	if err != nil {
		return nil, "the arguments make no address"
	}
	if t.body != nil && body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	return req, ""
}

func (t *Tool) arguments() (names []string) {
	for _, p := range t.params {
		names = append(names, p.Name)
	}
	if t.body != nil {
		names = append(names, bodyName)
	}
	if names == nil {
		return []string{"none"}
	}
	return names
}

// textOf is a value as addresses carry it: texts as they are, lists with commas between
// their entries, objects as JSON.
func textOf(raw json.RawMessage) (text string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		return text, json.Unmarshal(raw, &text) == nil
	case '{':
		return string(raw), true
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return "", false
		}
		parts := make([]string, len(list))
		for i, one := range list {
			if parts[i], ok = textOf(one); !ok || one[0] == '[' || one[0] == '{' {
				return "", false
			}
		}
		return strings.Join(parts, ","), true
	}
	return string(raw), true // numbers and booleans
}
