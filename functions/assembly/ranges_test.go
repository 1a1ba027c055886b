package assembly_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestEveryRangeOfTimeEndsWithItsDay sends ranges to every operation with time parameters. A
// range that begins at noon and ends with the date of the same day is valid, since a date as an
// end is the end of that day; one that ends before it begins is rejected with the name of its
// end. Times that belong to no range are listed.
func TestEveryRangeOfTimeEndsWithItsDay(t *testing.T) {
	t.Parallel()
	ends := map[string]string{"time_of_generation_max": "time_of_generation_min", "end_time": "start_time"}
	alone := []string{"at", "updated_since"}
	in := install(t, nil)
	query := func(method, path, from, to, start, end string) (int, string) {
		t.Helper()
		q := url.Values{from: {start}, to: {end}}
		var body []byte
		key := rootKey
		switch {
		case path == "/logs/exports":
			key = firstKey
			body = fmt.Appendf(nil, `{"workspace_id":"first-space","filters":{%q:%q,%q:%q},"requested_data":["id"]}`, from, start, to, end)
			q = nil
		case path == "/analytics/graphs":
			q.Set("include", "cost")
		case method == http.MethodPost:
			body = []byte(`{"prices":{"multipliers":{"openai/*":0.8}}}`)
		}
		status, answer := in.request(method, path+"?"+q.Encode(), key, body)
		return status, string(answer)
	}
	check := func(method, path, from, to string) {
		t.Helper()
		if status, answer := query(method, path, from, to, "2026-03-10T12:00:00Z", "2026-03-10"); status != http.StatusOK {
			t.Errorf("%s %s: until a date: %d %s", method, path, status, answer)
		}
		for _, end := range []string{"2026-03-09", "2026-03-10T11:59:59Z"} {
			if status, answer := query(method, path, from, to, "2026-03-10T12:00:00Z", end); status != http.StatusBadRequest || !strings.Contains(answer, to) {
				t.Errorf("%s %s: until %s: %d %s", method, path, end, status, answer)
			}
		}
	}
	routes := 0
	for _, op := range in.doc.Operations {
		names := map[string]bool{}
		for _, p := range op.Query {
			if doc, _ := p.Schema["description"].(string); strings.Contains(doc, "An ISO 8601 time") {
				names[p.Name] = true
			}
		}
		for name := range names {
			from, isEnd := ends[name]
			switch {
			case isEnd && names[from]:
				routes++
				path := strings.NewReplacer("{groupBy}", "model", "{metadataKey}", "team").Replace(op.Path)
				check(op.Method, path, from, name)
			case isEnd:
				t.Errorf("%s %s: %s without %s", op.Method, op.Path, name, from)
			case slices.Contains(alone, name):
			default:
				paired := false
				for to, from := range ends {
					paired = paired || from == name && names[to]
				}
				if !paired {
					t.Errorf("%s %s: decide whether %s is an end of a range", op.Method, op.Path, name)
				}
			}
		}
	}
	if routes < 26 {
		t.Errorf("only %d routes take a range", routes)
	}
	check(http.MethodPost, "/logs/exports", "time_of_generation_min", "time_of_generation_max")
}
