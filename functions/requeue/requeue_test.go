package requeue

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/queue"
	"gateway/shared/usage"
)

// outbound is a queue that is only sent to.
type outbound struct {
	queue.Queue
	sent []queue.Outgoing
	fail error
}

func (q *outbound) Send(_ context.Context, ms ...queue.Outgoing) error {
	if q.fail != nil {
		return q.fail
	}
	if len(ms) > 10 {
		return errors.New("more than ten at once")
	}
	q.sent = append(q.sent, ms...)
	return nil
}

// delivery packs lines as a subscription does.
func delivery(t *testing.T, lines ...string) (ev events.CloudwatchLogsEvent) {
	t.Helper()
	var d events.CloudwatchLogsData
	for _, l := range lines {
		d.LogEvents = append(d.LogEvents, events.CloudwatchLogsLogEvent{Message: l})
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(d), z.Close()); err != nil {
		t.Fatal(err)
	}
	ev.AWSLogs.Data = base64.StdEncoding.EncodeToString(packed.Bytes())
	return ev
}

func lost(id string) string {
	r := usage.Record{ID: id, Org: "acme", Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	return fmt.Sprintf(`{"timestamp":"2026-11-20T12:00:00Z","level":"ERROR","message":%q,"org":"acme","event":%q,"error":"x"}`,
		LostEvent, base64.StdEncoding.EncodeToString(r.AppendEvent(nil)))
}

func TestLostEventsAreSentAgainAndOtherLinesAreNot(t *testing.T) {
	lines := []string{"not JSON", `{"message":"something else","event":"AAAA"}`, `{"message":"` + LostEvent + `","event":"AAAA"}`}
	for i := range 12 {
		lines = append(lines, lost(fmt.Sprint("id", i)))
	}
	q := &outbound{}
	if err := (&Worker{Queue: q}).Handle(t.Context(), delivery(t, lines...)); err != nil {
		t.Fatal(err)
	}
	if len(q.sent) != 12 {
		t.Fatalf("%d messages, want 12", len(q.sent))
	}
	for i, m := range q.sent {
		records, err := usage.DecodeEvents(m.Body)
		if err != nil || len(records) != 1 || records[0].ID != fmt.Sprint("id", i) || m.Group != "acme" {
			t.Errorf("%+v, %v", records, err)
		}
	}
}

func TestUnavailableQueueRepeatsTheDelivery(t *testing.T) {
	down := errors.New("down")
	w := &Worker{Queue: &outbound{fail: down}}
	if err := w.Handle(t.Context(), delivery(t, lost("a"))); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	if err := w.Handle(t.Context(), events.CloudwatchLogsEvent{AWSLogs: events.CloudwatchLogsRawData{Data: "?"}}); err != nil {
		t.Errorf("a delivery that cannot be read must not come again: %v", err)
	}
}
