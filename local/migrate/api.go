package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// future returns a time of the source as the API takes it, if it has not passed.
func future(text string) (string, bool) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999", "2006-01-02 15:04:05.999999"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC().Format(time.RFC3339), at.After(time.Now())
		}
	}
	return "", false
}

// endpoints are where a LiteLLM proxy lists its records. rows is the member that has them;
// "" if the response is a list.
var endpoints = []struct {
	path, rows string
	of         func(*Records) *[]map[string]any
}{
	{"/organization/list", "", func(r *Records) *[]map[string]any { return &r.Organizations }},
	{"/team/list", "teams", func(r *Records) *[]map[string]any { return &r.Teams }},
	{"/user/list", "users", func(r *Records) *[]map[string]any { return &r.Users }},
	{"/key/list", "keys", func(r *Records) *[]map[string]any { return &r.Keys }},
}

// maxPages bounds the pages of one list.
const maxPages = 1000

// Administration reads the records of a LiteLLM proxy from its own API. The paths are below
// the root of the proxy.
func Administration(ctx context.Context, do func(ctx context.Context, path string) (*http.Response, error)) (*Records, error) {
	out := new(Records)
	for _, e := range endpoints {
		for page := 1; page <= maxPages; page++ {
			q := url.Values{"page": {strconv.Itoa(page)}, "page_size": {"100"}, "size": {"100"}, "return_full_object": {"true"}}
			list, whole, err := fetch(ctx, do, e.path+"?"+q.Encode(), e.rows)
			if err != nil {
				return nil, err
			}
			*e.of(out) = append(*e.of(out), list...)
			if whole || len(list) < 100 {
				break
			}
		}
	}
	return out, nil
}

// fetch reads one page; whole reports whether it is the only one.
func fetch(ctx context.Context, do func(ctx context.Context, path string) (*http.Response, error), path, rows string) (list []map[string]any, whole bool, err error) {
	resp, err := do(ctx, path)
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, true, nil // a version without it
	}
	if resp.StatusCode != http.StatusOK {
		return nil, false, fmt.Errorf("the source responds to GET %s with %d", path, resp.StatusCode)
	}
	d := json.NewDecoder(io.LimitReader(resp.Body, 64<<20))
	d.UseNumber()
	var body any
	if err := d.Decode(&body); err != nil {
		return nil, false, fmt.Errorf("the response to GET %s is not JSON", path)
	}
	if m, ok := body.(map[string]any); ok {
		body = m[rows]
	} else {
		whole = true
	}
	all, _ := body.([]any)
	for _, e := range all {
		if m, ok := e.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list, whole, nil
}
