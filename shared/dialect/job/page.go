package job

import (
	"context"
	"net/http"
	"net/url"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// maxListed bounds the pages that are passed over in search of where a list goes
// on.
const maxListed = 20

// awsQuery asks for a page of a list of AWS; 0 entries are as many as it gives.
func awsQuery(n int, token string) url.Values {
	if n == 0 {
		n = 1000
	}
	q := url.Values{"maxResults": {itoa(int64(n))}, "sortBy": {"CreationTime"}, "sortOrder": {"Descending"}}
	if token != "" {
		q.Set("nextToken", token)
	}
	return q
}

// tokenPage gives one page of a list that goes on by tokens: query asks for a page
// of so many entries, read takes one and gives its entries and its token.
func tokenPage[T any](
	ctx context.Context, j *chat.Job, id func(*T) string, query func(n int, token string) url.Values, read func(*http.Response) ([]T, string, error),
) (page []T, more bool, err error) {
	limit, err := limitOf(j, defaultPage, maxPage)
	if err != nil {
		return nil, false, err
	}
	after, token := j.Query.Get("after"), ""
	found := after == ""
	for range maxListed {
		n := 0
		if found && len(page) == 0 {
			n = limit
		}
		resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: j.Operation, Query: query(n, token).Encode()})
		if err != nil {
			return nil, false, err
		}
		entries, next, err := read(resp)
		if err != nil {
			return nil, false, err
		}
		for i := range entries {
			switch {
			case !found:
				found = id(&entries[i]) == after
			case len(page) == limit:
				return page, true, nil
			default:
				page = append(page, entries[i])
			}
		}
		if token = next; token == "" || len(page) == limit {
			break
		}
	}
	if !found {
		return nil, false, fault.Invalid("after", "after must be the id of an entry of the list")
	}
	return page, token != "", nil
}
