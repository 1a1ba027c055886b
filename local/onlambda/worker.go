package onlambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host/placement"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/queue"
)

// visibility is at most six times the worker's timeout, which is the value in a deployed
// installation. Here it is shorter, so that messages of a stopped laptop come back soon.
const visibility = time.Minute

// Poll gives the messages of a queue to a worker until ctx ends, as an event source mapping
// does: messages that the worker does not report as failed are deleted.
func (s *Platform) Poll(ctx context.Context, q queue.Queue, function string) error {
	for ctx.Err() == nil {
		messages, err := q.Receive(ctx, 10, 5*time.Second, visibility)
		if err != nil || len(messages) == 0 {
			if err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintf(s.o.Log, "queue of %s: %v\n", function, err)
				pause(ctx, time.Second)
			}
			continue
		}
		late := context.WithoutCancel(ctx)
		failed, err := s.batch(late, function, messages)
		if err != nil {
			_, _ = fmt.Fprintf(s.o.Log, "function %s: %v\n", function, err)
			continue
		}
		var done []queue.Message
		for _, m := range messages {
			if !failed[m.ID] {
				done = append(done, m)
			}
		}
		if len(done) > 0 {
			if err := q.Delete(late, done...); err != nil {
				_, _ = fmt.Fprintf(s.o.Log, "queue of %s: %v\n", function, err)
			}
		}
	}
	return nil
}

func (s *Platform) batch(ctx context.Context, function string, messages []queue.Message) (failed map[string]bool, err error) {
	var ev events.SQSEvent
	for _, m := range messages {
		ev.Records = append(ev.Records, events.SQSMessage{
			MessageId: m.ID, ReceiptHandle: m.Receipt, Body: queue.EncodeBody(m.Body), EventSource: "aws:sqs",
			Attributes: map[string]string{"MessageGroupId": m.Group, "ApproximateReceiveCount": strconv.Itoa(m.Attempt)},
		})
	}
	var out events.SQSEventResponse
	if err := s.Call(ctx, function, ev, &out); err != nil {
		return nil, err
	}
	failed = map[string]bool{}
	for _, f := range out.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	return failed, nil
}

// Call gives a worker an event and decodes its response into out.
func (s *Platform) Call(ctx context.Context, function string, event, out any) error {
	raw, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("onlambda: event: %w", err)
	}
	a, err := s.start(ctx, function, raw, workerTimeout)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if err != nil {
		return fmt.Errorf("onlambda: %s: %w", function, err)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("onlambda: %s answered with no JSON: %w", function, err)
	}
	return nil
}

// Schedule starts a task of a worker at an interval until ctx ends.
func (s *Platform) Schedule(ctx context.Context, every time.Duration, function, task string) error {
	for {
		pause(ctx, every)
		if ctx.Err() != nil {
			return nil
		}
		var out any
		err := s.Call(context.WithoutCancel(ctx), function, map[string]string{"task": task}, &out)
		if err != nil && !errors.Is(err, runtimeapi.ErrStopped) {
			_, _ = fmt.Fprintf(s.o.Log, "task %s: %v\n", task, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

const (
	hostOS   = runtime.GOOS
	hostArch = runtime.GOARCH
)

// Event is the REST API event (v1) of a request to a route of the stage v1.
func (s *Platform) Event(r *http.Request, route placement.Route) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fault.Invalid("body", "is cut off")
	}
	if len(body) > maxBody {
		return nil, fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", maxBody)
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/v1")
	h := r.Header.Clone()
	h.Set("Host", r.Host)
	s.forwarded(h, r)
	ev := events.APIGatewayProxyRequest{
		Resource: route.Path, Path: path, HTTPMethod: r.Method,
		Headers: first(h), MultiValueHeaders: h, Body: string(body),
	}
	if query, err := url.ParseQuery(r.URL.RawQuery); err == nil && len(query) > 0 {
		ev.MultiValueQueryStringParameters, ev.QueryStringParameters = query, first(query)
	}
	if !utf8.Valid(body) {
		ev.Body, ev.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	rc := &ev.RequestContext
	rc.Stage, rc.Path, rc.ResourcePath, rc.HTTPMethod = "v1", "/v1"+path, route.Path, r.Method
	rc.DomainName, rc.Protocol, rc.Identity.SourceIP = r.Host, r.Proto, "127.0.0.1"
	rc.AccountID, rc.APIID = "000000000000", "local"
	return json.Marshal(ev)
}

// first returns the last value of each name, as API Gateway does.
func first(values map[string][]string) map[string]string {
	out := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			out[k] = v[len(v)-1]
		}
	}
	return out
}

// decoded returns the bytes of a base64 response; a response that is not base64 is left as it
// is.
func decoded(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return []byte(text)
	}
	return b
}
