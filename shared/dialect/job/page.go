package job

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// maxListed bounds the pages that are skipped to find where a list continues.
const maxListed = 20

// awsQuery returns the query for a page of an AWS list; n is 0 for the default size.
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

// tokenPage returns one page of a list that continues by tokens. query returns the query
// for a page of a number of entries; read reads one and returns its entries and its
// token.
func tokenPage[T any](
	ctx context.Context, j *chat.Job, id func(*T) string, query func(n int, token string) url.Values, read pageReader[T],
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

// pageReader reads a page of a list: its entries, and the token of the next.
type pageReader[T any] = func(*http.Response) ([]T, string, error)

// pages describes the lists of a host.
type pages[T any] struct {
	query func(n int, token string) url.Values
	read  func() pageReader[T] // for one walk through the list
}

// byToken reads pages with entries in one field, and the token of the next page in
// another.
func byToken[T any](entries, next string) func() pageReader[T] {
	return func() pageReader[T] {
		return func(resp *http.Response) (list []T, token string, err error) {
			var page map[string]json.RawMessage
			if err := readJSON(resp, &page); err != nil {
				return nil, "", err
			}
			for member, into := range map[string]any{entries: &list, next: &token} {
				if raw := page[member]; raw != nil && json.Unmarshal(raw, into) != nil {
					return nil, "", upstream.Invalid("The provider's list cannot be read", nil)
				}
			}
			return list, token, nil
		}
	}
}

// batchList answers with a page of a host's list of batches.
func batchList[S any, P interface {
	*S
	batch() *Batch
}](of pages[S]) step {
	return func(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
		jobs, more, err := tokenPage(ctx, j, func(job *S) string { return P(job).batch().ID }, of.query, of.read())
		if err != nil {
			return nil, err
		}
		batches := make([]*Batch, len(jobs))
		for i := range jobs {
			batches[i] = P(&jobs[i]).batch()
		}
		return answerBatches(ctx, j, batches, more)
	}
}

// tuningList answers with a page of a host's list of fine-tuning jobs.
func tuningList[S any, P interface {
	*S
	tuning() *Tuning
}](of pages[S]) step {
	return func(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
		jobs, more, err := tokenPage(ctx, j, func(job *S) string { return P(job).tuning().ID }, of.query, of.read())
		if err != nil {
			return nil, err
		}
		tunings := make([]*Tuning, len(jobs))
		for i := range jobs {
			tunings[i] = P(&jobs[i]).tuning()
		}
		return answerTunings(ctx, j, tunings, more)
	}
}
