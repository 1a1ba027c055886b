package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

// Makers are the checks of this package, by id.
func Makers() map[string]judge.Maker {
	return map[string]judge.Maker{"default.webhook": webhook, "default.log": logTo}
}

// maxAnswer bounds what is read of a host's answer, in bytes.
const maxAnswer = 20 << 20

// host is a service of the customer that is told of a request or an answer.
type host struct {
	url     string
	headers map[string]string
	forward []string
	timeout time.Duration
}

func hostOf(params map[string]json.RawMessage, name string) host {
	h := host{timeout: 3 * time.Second}
	_ = json.Unmarshal(params[name], &h.url)
	_ = json.Unmarshal(params["forwardHeaders"], &h.forward)
	var text string
	raw := params["headers"]
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	_ = json.Unmarshal(raw, &h.headers)
	var ms int64
	if json.Unmarshal(params["timeout"], &ms) == nil && ms > 0 {
		h.timeout = time.Duration(min(ms, 60_000)) * time.Millisecond
	}
	return h
}

// told is what the service is sent.
type told struct {
	Request struct {
		JSON        json.RawMessage `json:"json"`
		Text        string          `json:"text"`
		Stream      bool            `json:"isStreamingRequest"`
		Transformed bool            `json:"isTransformed"`
	} `json:"request"`
	Response struct {
		JSON        json.RawMessage `json:"json"`
		Text        string          `json:"text"`
		Status      *int            `json:"statusCode"`
		Transformed bool            `json:"isTransformed"`
	} `json:"response"`
	Provider string            `json:"provider"`
	Kind     string            `json:"requestType"`
	Metadata map[string]string `json:"metadata"`
	Event    string            `json:"eventType"`
}

func contextOf(s *judge.Subject) *told {
	t := &told{Provider: s.Provider, Kind: s.Kind, Metadata: s.Metadata, Event: "beforeRequestHook"}
	t.Request.JSON, t.Request.Text, t.Request.Stream = s.Request, s.Text(), s.Stream
	t.Response.JSON = json.RawMessage("{}")
	if t.Metadata == nil {
		t.Metadata = map[string]string{}
	}
	if s.Phase == guard.Before {
		t.Request.Transformed = s.Changed
		return t
	}
	status := s.Status
	t.Event, t.Request.Text = "afterRequestHook", judge.Joined(s.Asked)
	t.Response.JSON, t.Response.Text, t.Response.Status, t.Response.Transformed = s.Response, s.Text(), &status, s.Changed
	return t
}

// ask sends what a check was shown, and gives the status and the answer.
func (h *host) ask(ctx context.Context, s *judge.Subject) (int, []byte, error) {
	body, err := json.Marshal(contextOf(s))
	if err != nil {
		return 0, nil, errors.New("the request cannot be told")
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil || s.Client == nil {
		return 0, nil, errors.New("the address cannot be called")
	}
	for name, value := range h.headers {
		req.Header.Set(name, value)
	}
	s.Forward(req.Header, h.forward)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.Client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil, errors.New("the service did not answer in time")
		}
		return 0, nil, errors.New("the service cannot be reached")
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.StatusCode, nil, errors.New("the answer of the service broke off")
	}
	return resp.StatusCode, answer, nil
}

type webhookData struct {
	Verdict     bool            `json:"verdict"`
	Explanation string          `json:"explanation"`
	URL         string          `json:"webhookUrl"`
	Response    json.RawMessage `json:"responseData,omitempty"`
	Context     struct {
		Timeout int64 `json:"timeout"`
	} `json:"requestContext"`
}

// webhook asks a service of the customer for the verdict; it may also change the body.
func webhook(params map[string]json.RawMessage) judge.Func {
	h := hostOf(params, "webhookURL")
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		d := &webhookData{URL: h.url, Explanation: "The webhook could not be asked"}
		d.Context.Timeout = h.timeout.Milliseconds()
		status, raw, err := h.ask(ctx, s)
		if err != nil {
			return judge.Verdict{Data: d, Err: &judge.Failure{Name: "WebhookError", Message: err.Error()}}
		}
		var answer struct {
			Verdict *bool           `json:"verdict"`
			Data    json.RawMessage `json:"data"`
			Changed struct {
				Request, Response struct{ JSON json.RawMessage }
			} `json:"transformedData"`
		}
		wrong := json.Unmarshal(raw, &answer)
		if status < 200 || status > 299 || wrong != nil || answer.Verdict == nil {
			if json.Valid(raw) {
				d.Response = raw
			}
			return judge.Verdict{Data: d, Err: &judge.Failure{Name: "WebhookError", Message: "The webhook gave no verdict, with the status " + http.StatusText(status)}}
		}
		d.Verdict, d.Explanation, d.Response = *answer.Verdict, "The webhook has judged", answer.Data
		v := judge.Verdict{Pass: d.Verdict, Data: d, Body: answer.Changed.Request.JSON}
		if s.Phase == guard.After {
			v.Body = answer.Changed.Response.JSON
		}
		return v
	}
}

// logTo sends the request and the answer to a service of the customer.
func logTo(params map[string]json.RawMessage) judge.Func {
	h := hostOf(params, "logURL")
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		status, _, err := h.ask(ctx, s)
		switch {
		case err != nil:
			return judge.Failed("LogError", err.Error())
		case status < 200 || status > 299:
			return judge.Failed("LogError", "The service answered "+http.StatusText(status))
		}
		return judge.Verdict{Pass: true}
	}
}
