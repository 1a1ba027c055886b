package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/host"
	"gateway/shared/queue"
)

func bufferedHandler(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, "/v1/") {
	case "nothing":
	case "panic":
		panic("secret of the handler")
	case "binary":
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte{0xff, 0x00})
	case "big":
		_, _ = io.WriteString(w, strings.Repeat("x", 6<<20))
	default:
		echo(w, r)
	}
}

func TestBufferedAnswers(t *testing.T) {
	e := start(t, "buffered")
	get := func(path string, change ...func(*events.APIGatewayProxyRequest)) events.APIGatewayProxyResponse {
		t.Helper()
		return bodyOf(t, invoke(t, e, event("GET", path, change...), time.Minute))
	}
	t.Run("the request is the client's", func(t *testing.T) {
		out := get("/configs/a%2Fb", withHeader("X-Gateway-Origin-Secret", "new-secret"), withHeader("X-GoLambdaProxy-ApiGw-Context", "{}"),
			func(ev *events.APIGatewayProxyRequest) {
				ev.MultiValueQueryStringParameters = map[string][]string{"q": {"x y"}}
			})
		s := decodeSeen(t, out.Body)
		if s.Escaped != "/v1/configs/a%2Fb" || s.Remote != "203.0.113.9:0" || s.Query != "q=x+y" {
			t.Errorf("%+v", s)
		}
		if s.Header.Get("X-Gateway-Origin-Secret") != "" || s.Header.Get("X-Golambdaproxy-Apigw-Context") != "" {
			t.Errorf("%v", s.Header)
		}
	})
	t.Run("without an answer it is 200", func(t *testing.T) {
		if out := get("/nothing"); out.StatusCode != 200 {
			t.Errorf("%+v", out)
		}
	})
	t.Run("a panic is a 500 without its text", func(t *testing.T) {
		if out := get("/panic"); out.StatusCode != 500 || strings.Contains(out.Body, "secret") || !strings.Contains(out.Body, "success") {
			t.Errorf("%+v", out)
		}
	})
	t.Run("bytes survive", func(t *testing.T) {
		if out := get("/binary"); out.Body != "\xff\x00" {
			t.Errorf("%q", out.Body)
		}
	})
	t.Run("an answer that does not fit says so", func(t *testing.T) {
		if out := get("/big"); out.StatusCode != 400 || !strings.Contains(out.Body, "fewer") {
			t.Errorf("%d %.200s", out.StatusCode, out.Body)
		}
	})
	for _, path := range []string{"/a%zz", "/a\x00b"} {
		if out := get(path); out.StatusCode != 400 {
			t.Errorf("path %q: status %d", path, out.StatusCode)
		}
	}
	t.Run("base64 that is none is refused", func(t *testing.T) {
		out := get("/echo", func(ev *events.APIGatewayProxyRequest) { ev.IsBase64Encoded, ev.Body = true, "***" })
		if out.StatusCode != 400 {
			t.Errorf("%+v", out)
		}
	})
}

// sqsWork fails by the body of the message.
func sqsWork(_ context.Context, ms []queue.Message) (failed []queue.Message, err error) {
	for _, m := range ms {
		switch {
		case string(m.Body) == "all":
			return nil, errors.New("the store is down")
		case string(m.Body) == "bad", string(m.Body) == "\x00bad", m.Group == "other", m.Attempt > 3:
			failed = append(failed, m)
		}
	}
	return failed, nil
}

func TestQueueBatches(t *testing.T) {
	e := start(t, "sqs")
	message := func(id string, body []byte, group, attempt string) events.SQSMessage {
		return events.SQSMessage{MessageId: id, Body: queue.EncodeBody(body), Attributes: map[string]string{"MessageGroupId": group, "ApproximateReceiveCount": attempt}}
	}
	send := func(ms ...events.SQSMessage) []byte {
		raw, err := json.Marshal(events.SQSEvent{Records: ms})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, c := range map[string]struct {
		batch []byte
		want  string
	}{
		"none":         {send(), ""},
		"all done":     {send(message("1", []byte("fine"), "o", "1")), ""},
		"some fail":    {send(message("1", []byte("bad"), "o", "1"), message("2", []byte("fine"), "o", "1"), message("3", []byte("\x00bad"), "o", "1")), "1,3"},
		"by the group": {send(message("1", []byte("fine"), "other", "1")), "1"},
		"by attempts":  {send(message("1", []byte("fine"), "o", "4")), "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out struct {
				BatchItemFailures []struct{ ItemIdentifier string }
			}
			raw := readAll(t, invoke(t, e, c.batch, time.Minute))
			if err := json.Unmarshal([]byte(raw), &out); err != nil || !strings.Contains(raw, "[") {
				t.Fatalf("%s: %v", raw, err)
			}
			var ids []string
			for _, f := range out.BatchItemFailures {
				ids = append(ids, f.ItemIdentifier)
			}
			if got := strings.Join(ids, ","); got != c.want {
				t.Errorf("failed: %q, want %q", got, c.want)
			}
		})
	}
	t.Run("a worker that cannot work fails the batch", func(t *testing.T) {
		if _, err := e.Invoke(t.Context(), send(message("1", []byte("all"), "o", "1")), time.Minute); !isFunctionError(err) {
			t.Errorf("%v", err)
		}
	})
}

func scheduled() map[string]host.Task {
	return map[string]host.Task{
		"done":   func(context.Context) error { return nil },
		"failed": func(context.Context) error { return errors.New("no") },
	}
}

func TestSchedules(t *testing.T) {
	e := start(t, "schedule")
	for ev, fails := range map[string]bool{`{"task":"done"}`: false, `{"task":"failed"}`: true, `{"task":"other"}`: true, `{}`: true, `[]`: true} {
		_, err := e.Invoke(t.Context(), []byte(ev), time.Minute)
		if isFunctionError(err) != fails || err != nil && !fails {
			t.Errorf("%s: %v", ev, err)
		}
	}
}

func TestTasksRespondAndListTheTasks(t *testing.T) {
	t.Parallel()
	run := host.Tasks(scheduled(), map[string]host.Query{"ask": func(context.Context) (any, error) { return "answer", nil }})
	if out, err := run(t.Context(), []byte(`{"task":"ask"}`)); err != nil || out != "answer" {
		t.Errorf("%v %v", out, err)
	}
	if out, err := run(t.Context(), []byte(`{"task":"done"}`)); err != nil || out != nil {
		t.Errorf("%v %v", out, err)
	}
	for _, ev := range []string{`{"task":"asks"}`, `{"task":""}`, `{}`, `null`} {
		if _, err := run(t.Context(), []byte(ev)); err == nil || !strings.Contains(err.Error(), "there are ask, done, failed") {
			t.Errorf("%s: %v", ev, err)
		}
	}
	for _, ev := range []string{``, `[]`, `"setup"`, `{"task":1}`} {
		if _, err := run(t.Context(), []byte(ev)); err == nil || !strings.Contains(err.Error(), `{"task":"name"}`) {
			t.Errorf("%s: %v", ev, err)
		}
	}
}
