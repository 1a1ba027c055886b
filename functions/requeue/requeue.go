// Package requeue is the worker that puts usage events back into their queue after a
// function could only write them to its log. It reads a log subscription.
package requeue

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/queue"
	"gateway/shared/usage"
)

// LostEvent is the message of log lines that carry an event.
const LostEvent = "usage event is not queued"

// line is such a log line.
type line struct {
	Message string `json:"message"`
	Event   []byte `json:"event"` // base64
}

// Worker sends events again.
type Worker struct{ Queue queue.Queue }

// Handle processes the lines of one delivery. An error causes redelivery; an event that is sent
// twice is stored once.
func (w *Worker) Handle(ctx context.Context, ev events.CloudwatchLogsEvent) error {
	data, err := ev.AWSLogs.Parse()
	if err != nil {
		slog.Error("a delivery of log lines cannot be read", "error", err.Error())
		return nil // trying again would not help
	}
	var out []queue.Outgoing
	for _, e := range data.LogEvents {
		if m, ok := message(e.Message); ok {
			out = append(out, m)
		}
	}
	for len(out) > 0 {
		n := min(10, len(out))
		if err := w.Queue.Send(ctx, out[:n]...); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

func message(text string) (queue.Outgoing, bool) {
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Message != LostEvent {
		return queue.Outgoing{}, false
	}
	records, err := usage.DecodeEvents(l.Event)
	if err != nil || len(records) == 0 {
		slog.Error("a log line contains no usage event", "bytes", base64.StdEncoding.EncodedLen(len(l.Event)))
		return queue.Outgoing{}, false
	}
	return queue.Outgoing{Group: records[0].Org, Body: l.Event}, true
}
