package job

import (
	"context"

	"gateway/shared/chat"
)

// Held serves the operations on files stored for the job's workspace, which belong to no
// provider. done is false if there is no file with the id, and for other operations.
func Held(ctx context.Context, j *chat.Job) (a *chat.JobAnswer, done bool, err error) {
	return held(ctx, j, "batch")
}

// Limit reads the length of a page of a list from the query.
func Limit(j *chat.Job) (int, error) { return limitOf(j, defaultPage, maxPage) }

// AppendList writes a page of a list: entries are objects, ids are theirs.
func AppendList(dst []byte, ids []string, entries [][]byte, more bool) []byte {
	return appendList(dst, ids, entries, more)
}
