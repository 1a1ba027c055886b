package sqs

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"gateway/shared/fault"
	"gateway/shared/queue"
	"gateway/shared/testkit/queuetest"
	"gateway/shared/testkit/sqstest"
)

var bg = context.Background()

func config() aws.Config {
	return aws.Config{
		Region:      "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}
}

func start(t *testing.T) *sqstest.Server {
	t.Helper()
	s := sqstest.Start()
	t.Cleanup(s.Close)
	return s
}

// opened gives a queue with a dead-letter queue beside it.
func opened(s *sqstest.Server, name string, maxAttempts int) queuetest.Opened {
	deadURL := s.Create(name+"-dead", sqstest.Options{})
	url := s.Create(name, sqstest.Options{MaxReceives: maxAttempts, DeadLetter: name + "-dead"})
	dead := New(config(), deadURL, Endpoint(s.URL()))
	return queuetest.Opened{Queue: New(config(), url, Endpoint(s.URL())), Dead: func(t *testing.T) []queue.Message {
		got, err := dead.Receive(bg, 10, 0, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}}
}

// TestMain lets the cases of the contract wait side by side.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestContract(t *testing.T) {
	t.Parallel()
	s := start(t)
	var n atomic.Int64
	queuetest.Run(t, queuetest.Harness{Open: func(t *testing.T, maxAttempts int) queuetest.Opened {
		return opened(s, fmt.Sprint("q", n.Add(1)), maxAttempts)
	}})
}

// simple gives a queue "q" of its own server.
func simple(t *testing.T) (*Queue, *sqstest.Server) {
	s := start(t)
	return New(config(), s.Create("q", sqstest.Options{}), Endpoint(s.URL())), s
}

func bodies(s *sqstest.Server) (out []string) {
	for _, m := range s.Messages("q") {
		out = append(out, m.Body)
	}
	return out
}

func outgoing(texts ...string) (out []queue.Outgoing) {
	for _, text := range texts {
		out = append(out, queue.Outgoing{Group: "org", Body: []byte(text)})
	}
	return out
}

func TestBatchesHoldTenEntriesAndAMebibyte(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int
		calls int
	}{
		"ten small ones":    {[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1},
		"eleven small ones": {[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 2},
		"two halves":        {[]int{1 << 19, 1 << 19}, 1},
		"a byte too much":   {[]int{1 << 19, 1<<19 + 1}, 2},
		"three large ones":  {[]int{1 << 20, 1 << 20, 1 << 20}, 3},
	} {
		q, s := simple(t)
		var all []queue.Outgoing
		for _, n := range c.sizes {
			all = append(all, queue.Outgoing{Body: bytes.Repeat([]byte("x"), n)})
		}
		if err := q.Send(bg, all...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.Calls("SendMessageBatch"); got != c.calls || len(s.Messages("q")) != len(all) {
			t.Errorf("%s: %d requests, want %d; %d messages", name, got, c.calls, len(s.Messages("q")))
		}
	}
}

func TestEntriesThatSQSFailedAreSentAgain(t *testing.T) {
	q, s := simple(t)
	failures := map[string]int{"b": 2, "d": 1}
	s.SetFaults(sqstest.Faults{Entry: func(action, _, body string) *sqstest.EntryFault {
		if failures[body] == 0 {
			return nil
		}
		failures[body]--
		return &sqstest.EntryFault{Code: "InternalError"}
	}})
	if err := q.Send(bg, outgoing("a", "b", "c", "d")...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "c", "d", "b"}, bodies(s)); diff != "" {
		t.Error(diff)
	}
}

func TestEntriesThatAreRefusedAreNamed(t *testing.T) {
	q, s := simple(t)
	s.SetFaults(sqstest.Faults{Entry: func(_, _, body string) *sqstest.EntryFault {
		switch body {
		case "bad":
			return &sqstest.EntryFault{Code: "InvalidMessageContents", SenderFault: true}
		case "never":
			return &sqstest.EntryFault{Code: "InternalError"}
		}
		return nil
	}})
	texts := strings.Split("0 1 bad 3 4 5 6 7 8 9 10 never 12", " ")
	err := q.Send(bg, outgoing(texts...)...)
	var partial *queue.SendError
	if !errors.As(err, &partial) {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff([]int{2, 11}, partial.Rejected); diff != "" || partial.Accepted != 11 || len(bodies(s)) != 11 {
		t.Errorf("%+v, %d messages in the queue %s", partial, len(bodies(s)), diff)
	}
	if !fault.Is(err, fault.ServiceUnavailable) || !strings.Contains(err.Error(), "11 of 13 messages accepted") || strings.Contains(err.Error(), "never") {
		t.Errorf("error is %v", err)
	}
}

func TestALostAnswerSendsTwiceAndLosesNothing(t *testing.T) {
	q, s := simple(t)
	lost := 0
	s.SetFaults(sqstest.Faults{LoseResponse: func(action string) bool {
		lost++
		return lost == 1
	}})
	if err := q.Send(bg, outgoing("a")...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "a"}, bodies(s)); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenServiceIsUnavailable(t *testing.T) {
	s := start(t)
	cfg := config()
	cfg.RetryMaxAttempts = 1 // the SDK's own pauses are long
	q := New(cfg, s.Create("q", sqstest.Options{}), Endpoint(s.URL()))
	s.SetFaults(sqstest.Faults{Request: func(string) int { return http.StatusInternalServerError }})
	_, receive := q.Receive(bg, 1, 0, time.Second)
	for what, err := range map[string]error{
		"send":    q.Send(bg, outgoing("a")...),
		"receive": receive,
		"delete":  q.Delete(bg, queue.Message{Receipt: "AQEBx"}),
		"extend":  q.Extend(bg, queue.Message{Receipt: "AQEBx"}, time.Second),
	} {
		if !fault.Is(err, fault.ServiceUnavailable) {
			t.Errorf("%s: %v, want service_unavailable", what, err)
		}
	}
	gone := New(config(), s.URL()+"/123456789012/gone", Endpoint(s.URL()))
	s.SetFaults(sqstest.Faults{})
	if err := gone.Send(bg, outgoing("a")...); !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("no such queue: %v", err)
	}
}

func TestDeletesThatFailedAreRepeatedAndCounted(t *testing.T) {
	q, s := simple(t)
	if err := q.Send(bg, outgoing("a", "b", "c")...); err != nil {
		t.Fatal(err)
	}
	got, err := q.Receive(bg, 10, 0, time.Minute)
	if err != nil || len(got) != 3 {
		t.Fatal(len(got), err)
	}
	first := true
	s.SetFaults(sqstest.Faults{Entry: func(_, id, _ string) *sqstest.EntryFault {
		if id == "1" && first {
			first = false
			return &sqstest.EntryFault{Code: "InternalError"}
		}
		return nil
	}})
	if err := q.Delete(bg, got...); err != nil || len(s.Messages("q")) != 0 {
		t.Errorf("%v, %d messages left", err, len(s.Messages("q")))
	}
	err = q.Delete(bg, got[0], queue.Message{Receipt: "nonsense"})
	if err == nil || !strings.Contains(err.Error(), "1 of 2 deliveries not deleted") {
		t.Errorf("bad receipt: %v", err)
	}
}

func TestCancellingEndsTheRetries(t *testing.T) {
	q, s := simple(t)
	ctx, cancel := context.WithCancel(bg)
	s.SetFaults(sqstest.Faults{Entry: func(_, _, _ string) *sqstest.EntryFault {
		cancel()
		return &sqstest.EntryFault{Code: "InternalError"}
	}})
	var partial *queue.SendError
	if err := q.Send(ctx, outgoing("a")...); !errors.As(err, &partial) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := s.Calls("SendMessageBatch"); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestVisibilityFollowsTheServersClock(t *testing.T) {
	q, s := simple(t)
	if err := q.Send(bg, outgoing("a")...); err != nil {
		t.Fatal(err)
	}
	for attempt := 1; attempt <= 3; attempt++ {
		got, err := q.Receive(bg, 1, 0, 90*time.Second)
		if err != nil || len(got) != 1 || got[0].Attempt != attempt {
			t.Fatalf("attempt %d: %+v, %v", attempt, got, err)
		}
		s.Advance(89 * time.Second)
		if again, err := q.Receive(bg, 1, 0, time.Second); len(again) != 0 || err != nil {
			t.Fatalf("visible too early: %+v, %v", again, err)
		}
		s.Advance(2 * time.Second)
	}
}
