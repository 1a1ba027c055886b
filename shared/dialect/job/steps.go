package job

import (
	"context"

	"gateway/shared/chat"
)

// step is how a provider does one operation.
type step func(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error)

// steps are a provider's steps, by operation.
type steps map[string]step

// by makes a step of a function that two operations share; they differ in the method of the
// call.
func by(f func(ctx context.Context, j *chat.Job, method string) (*chat.JobAnswer, error), method string) step {
	return func(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) { return f(ctx, j, method) }
}

// do executes an operation. Operations without a step concern files, which are stored for
// the workspace with the given purposes, or the results of a batch.
func (s steps) do(ctx context.Context, j *chat.Job, purposes string, open opener) (*chat.JobAnswer, error) {
	if one, ok := s[j.Operation]; ok {
		return one(ctx, j)
	}
	if got, done, err := held(ctx, j, purposes); done {
		return got, err
	}
	return resultsFile(ctx, j, open)
}
