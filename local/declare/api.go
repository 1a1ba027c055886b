package declare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// API sends requests to the administration API of a gateway. Paths are below /v1. A body
// that is not nil is sent as JSON.
type API interface {
	Do(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error)
}

// Error is a response with a status of 400 or above.
type Error struct {
	Method, Path string
	Status       int
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", e.Method, e.Path, e.Status, e.Message)
}

// How often and how long a request waits for a gateway that has no capacity.
const (
	maxAttempts = 6
	maxWait     = time.Minute
	maxResponse = 64 << 20
	pageSize    = 100
)

// call sends a request and returns the object that is the response. It waits and repeats
// after 429, and after 503 of a request that can be repeated.
func call(ctx context.Context, api API, method, path string, body any) (map[string]any, error) {
	for attempt := 1; ; attempt++ {
		out, wait, err := callOnce(ctx, api, method, path, body)
		if err == nil || wait < 0 || attempt == maxAttempts {
			return out, err
		}
		select {
		case <-time.After(max(wait, time.Duration(attempt)*100*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// callOnce also returns how long to wait before the request may be repeated; below 0 it may
// not.
func callOnce(ctx context.Context, api API, method, path string, body any) (map[string]any, time.Duration, error) {
	resp, err := api.Do(ctx, method, path, body)
	if err != nil {
		return nil, -1, err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(io.LimitReader(resp.Body, maxResponse))
	d.UseNumber()
	var out map[string]any
	broken := d.Decode(&out)
	if resp.StatusCode < 300 {
		if broken != nil {
			return nil, -1, fmt.Errorf("%s %s: the response is not the JSON of a gateway", method, pathOnly(path))
		}
		return out, -1, nil
	}
	failed := &Error{method, pathOnly(path), resp.StatusCode, message(out)}
	if resp.StatusCode != http.StatusTooManyRequests && (resp.StatusCode != http.StatusServiceUnavailable || method == "POST") {
		return nil, -1, failed
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return nil, min(time.Duration(max(seconds, 0))*time.Second, maxWait), failed
}

func pathOnly(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// message is the text of an error of the administration API.
func message(body map[string]any) string {
	for _, name := range []string{"data", "error"} {
		if m, ok := body[name].(map[string]any); ok {
			if text, ok := m["message"].(string); ok {
				return text
			}
		}
	}
	return "no message"
}

// list reads every page of a list.
func list(ctx context.Context, api API, path string, query url.Values) ([]map[string]any, error) {
	var all []map[string]any
	for page := 0; ; page++ {
		q := url.Values{"current_page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(pageSize)}}
		for k, v := range query {
			q[k] = v
		}
		out, err := call(ctx, api, "GET", path+"?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		rows, _ := out["data"].([]any)
		for _, row := range rows {
			if m, ok := row.(map[string]any); ok {
				all = append(all, m)
			}
		}
		total, err := strconv.Atoi(fmt.Sprint(out["total"]))
		if len(rows) < pageSize || err == nil && len(all) >= total {
			return all, nil
		}
	}
}

// Target is the workspace that an import writes to.
type Target struct {
	Slug, Name string // Slug is empty if the workspace does not exist yet
	FromKey    bool   // it is that of a workspace key
}

// FindWorkspace returns the workspace with a slug or name. Without one, it is that of a
// workspace key, else the default one of the organization.
func FindWorkspace(ctx context.Context, api API, want string) (Target, error) {
	rows, err := list(ctx, api, "/admin/workspaces", url.Values{"name_format": {"plain"}})
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound) && want == "" {
		return Target{FromKey: true}, nil
	}
	if err != nil {
		return Target{}, err
	}
	for _, row := range rows {
		slug, _ := row["slug"].(string)
		name, _ := row["name"].(string)
		if row["status"] != "archived" && (want == "" && flagNumber(row["is_default"]) == "1" || want != "" && (want == slug || want == name)) {
			return Target{Slug: slug, Name: name}, nil
		}
	}
	return Target{Name: want, FromKey: want == ""}, nil
}

// DefaultConfig returns the name of the default config of a workspace; "" if there is none,
// or no such workspace. An empty slug is the workspace of a workspace key.
func DefaultConfig(ctx context.Context, api API, slug string) (string, error) {
	it := item{kind: kindOf("configs"), workspace: slug}
	rows, err := list(ctx, api, it.kind.path, it.query())
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound) && slug != "" {
		return "", nil // no such workspace
	}
	for _, row := range rows {
		if flagNumber(row["is_default"]) == "1" {
			name, _ := row["name"].(string)
			return name, nil
		}
	}
	return "", err
}

// inNameOrder returns the items of a kind that an export contains, by name. The order in which
// a gateway lists them depends on when they were created, so two gateways with the same state
// would have different exports.
func inNameOrder(items []*item, k *kind) []*item {
	var out []*item
	for _, it := range items {
		if it.kind == k && !it.builtIn {
			out = append(out, it)
		}
	}
	slices.SortStableFunc(out, func(a, b *item) int { return cmp.Compare(a.name(), b.name()) })
	return out
}

// dependenciesFirst orders resources of one kind so that each comes after those that it
// mentions: a collection after its parent, a partial after those that it includes. A cycle is
// left in its order; the gateway rejects it.
func dependenciesFirst(list []*Resource) []*Resource {
	out := make([]*Resource, 0, len(list))
	seen := map[*Resource]bool{}
	var visit func(r *Resource)
	visit = func(r *Resource) {
		if seen[r] {
			return
		}
		seen[r] = true
		for _, o := range list {
			if slug, _ := o.Fields["slug"].(string); o != r && slug != "" && mentions(r.Fields, slug) {
				visit(o)
			}
		}
		out = append(out, r)
	}
	for _, r := range list {
		visit(r)
	}
	return out
}

// mentions reports whether a value is the slug or, if the gateway generated the slug, contains
// it. Other slugs may be ordinary words of a text.
func mentions(v any, slug string) bool {
	switch v := v.(type) {
	case string:
		return v == slug || generated.MatchString(slug) && strings.Contains(v, slug)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return mentions(e, slug) })
	case map[string]any:
		for _, e := range v {
			if mentions(e, slug) {
				return true
			}
		}
	}
	return false
}
