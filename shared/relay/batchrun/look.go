package batchrun

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gateway/shared/dialect/gemini"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/body"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// look polls the provider once for a background response, and schedules the next poll unless it
// has ended. The pipeline charges its usage, with the first request that claims it: this one or
// one of the client's.
//
// A duplicate message polls twice and charges once. A revoked key polls with its former
// identity: the provider's credential is opened by the workspace, which owns the saved provider,
// and the key and its workspace pay the cost. Polling ends after the provider has repeatedly
// reported the response as missing, or after a day.
func (r *Runner) look(ctx context.Context, step batch.Step) error {
	a, err := r.Batches.OpenAwaited(ctx, step)
	if err != nil {
		return err // it becomes a dead letter
	}
	sc := step.Scope()
	if booked, err := r.Mux.Charged(ctx, sc, a); err != nil || booked {
		return err
	}
	if r.Now().Sub(time.Unix(a.Made, 0)) >= batch.AwaitedFor {
		r.OnError(fmt.Errorf("batchrun: response %q of workspace %s has not ended in %v and is not charged", a.ID, sc.Workspace, batch.AwaitedFor))
		return nil
	}
	behalf, err := r.Mux.Settler(ctx, sc, a)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, r.Pace.Row)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, routes.BasePath+a.ReadAt(), http.NoBody)
	if err != nil {
		return err
	}
	req.Header = a.Headers.Clone()
	got := &response.Recorder{Max: maxAnswer}
	broken := r.Mux.Run(got, req, behalf)
	if behalf.Charged {
		return nil
	}
	switch {
	case broken:
	case got.Status == http.StatusNotFound || got.Status == http.StatusGone:
		if a.Unknown++; a.Unknown >= batch.MaxUnknown {
			r.OnError(fmt.Errorf("batchrun: the provider has no response %q of workspace %s any more: it is not charged", a.ID, sc.Workspace))
			return nil
		}
	case got.Status == http.StatusOK && !got.Over:
		done, err := r.done(ctx, sc, a, got.Body.Bytes())
		if err != nil || done {
			return err
		}
	}
	a.Looks++
	next, err := r.Batches.Await(ctx, sc, a)
	if err != nil {
		return err
	}
	return r.Queue.Send(context.WithoutCancel(ctx), next)
}

// done reports whether a response needs no further poll: it has ended, and its usage, if any,
// was charged.
func (r *Runner) done(ctx context.Context, sc store.Scope, a *batch.Awaited, payload []byte) (bool, error) {
	var response struct {
		Status string          `json:"status"`
		Usage  json.RawMessage `json:"usage"`
	}
	if json.Unmarshal(payload, &response) != nil {
		return false, nil
	}
	if job, video := body.ReadJob(payload); video {
		if !job.Ended {
			return false, nil
		}
		return r.Mux.Charged(ctx, sc, a)
	}
	switch response.Status {
	case "completed", "failed", "cancelled", "incomplete":
	default:
		if _, ended := gemini.MeterInteraction(payload); a.Path == "" || !ended {
			return false, nil
		}
	}
	if len(response.Usage) == 0 || wire.IsNull(response.Usage) {
		return true, nil
	}
	return r.Mux.Charged(ctx, sc, a) // otherwise the claim failed, and is repeated
}
