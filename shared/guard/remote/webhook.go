package remote

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
	"gateway/shared/wire/mask"
)

// Makers returns the checks of this package by id.
func Makers(now func() time.Time, lookUp LookUp) map[string]judge.Maker {
	return map[string]judge.Maker{
		"default.webhook":         func(p map[string]json.RawMessage) judge.Func { return webhook(p, now) },
		"default.log":             func(p map[string]json.RawMessage) judge.Func { return logTo(p, now) },
		"default.validUrls":       validURLs(lookUp),
		"default.inlineImageUrls": inlineImages,
	}
}

// maxResponse is the size limit of a host's response in bytes.
const maxResponse = 20 << 20

// host is a customer's service that receives a request or a response.
type host struct {
	url     string
	headers map[string]string
	forward []string
	timeout time.Duration
	secret  []byte // signs the body; empty for no signature
	now     func() time.Time
}

func hostOf(p map[string]json.RawMessage, name string, now func() time.Time) host {
	h := host{url: judge.Get(p, name, ""), secret: []byte(judge.Get(p, "secret", "")), timeout: 3 * time.Second, now: now}
	h.headers, _ = judge.Object[map[string]string](p, "headers")
	for _, name := range judge.Get(p, "forwardHeaders", []string(nil)) {
		if !guard.IsNeverForwarded(strings.ToLower(name)) { // a config in the request was not validated
			h.forward = append(h.forward, name)
		}
	}
	if ms := judge.Get(p, "timeout", int64(0)); ms > 0 {
		h.timeout = time.Duration(min(ms, 60_000)) * time.Millisecond
	}
	return h
}

// Signature is the header with the signature: t=<Unix seconds>,v1=<hex>, where hex is the
// HMAC-SHA256 of the seconds, a dot and the body.
const Signature = "X-Gateway-Signature"

func (h *host) sign(body []byte) string {
	at := strconv.FormatInt(h.now().Unix(), 10)
	m := hmac.New(sha256.New, h.secret)
	m.Write([]byte(at + "."))
	m.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(m.Sum(nil))
}

// payload is the body for the service.
type payload struct {
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

func contextOf(s *judge.Subject) *payload {
	t := &payload{Provider: s.Provider, Kind: s.Kind, Metadata: s.Metadata, Event: "beforeRequestHook"}
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
	t.Event, t.Request.Text = "afterRequestHook", judge.JoinTexts(s.RequestTexts)
	t.Response.JSON, t.Response.Text, t.Response.Status, t.Response.Transformed = s.Response, s.Text(), &status, s.Changed
	return t
}

// send sends the subject of a check and returns the status and the response.
func (h *host) send(ctx context.Context, s *judge.Subject) (int, []byte, error) {
	body, err := json.Marshal(contextOf(s))
	if err != nil {
		return 0, nil, errors.New("the request cannot be encoded")
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
	if len(h.secret) > 0 {
		req.Header.Set(Signature, h.sign(body))
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil, errors.New("the service did not respond in time")
		}
		return 0, nil, errors.New("the service cannot be reached")
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return resp.StatusCode, nil, errors.New("the response of the service was truncated")
	}
	mask.Bytes(answer, h.credentials(req.Header))
	return resp.StatusCode, answer, nil
}

// credentials returns those that were sent. Services repeat them in errors and data, which the
// client and readers of logs see.
func (h *host) credentials(sent http.Header) []string {
	client := make([]string, len(h.forward))
	for i, name := range h.forward {
		client[i] = http.CanonicalHeaderKey(name)
	}
	out := provider.HeaderSecrets(nil, sent, client, nil)
	if len(h.secret) > 0 {
		out = append(out, string(h.secret))
	}
	return out
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

// webhook requests the verdict from a customer's service, which may also change the body.
func webhook(params map[string]json.RawMessage, now func() time.Time) judge.Func {
	h := hostOf(params, "webhookURL", now)
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		d := &webhookData{URL: h.url, Explanation: "The webhook could not be called"}
		d.Context.Timeout = h.timeout.Milliseconds()
		status, raw, err := h.send(ctx, s)
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
			return judge.Verdict{Data: d, Err: &judge.Failure{Name: "WebhookError", Message: fmt.Sprintf("The webhook returned no verdict, with status %d", status), Answered: judge.IsServiceStatus(status)}}
		}
		d.Verdict, d.Explanation, d.Response = *answer.Verdict, "The webhook returned a verdict", answer.Data
		v := judge.Verdict{Pass: d.Verdict, Data: d, Body: answer.Changed.Request.JSON}
		if s.Phase == guard.After {
			v.Body = answer.Changed.Response.JSON
		}
		return v
	}
}

// logTo sends the request and the response to a customer's service.
func logTo(params map[string]json.RawMessage, now func() time.Time) judge.Func {
	h := hostOf(params, "logURL", now)
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		status, _, err := h.send(ctx, s)
		switch {
		case err != nil:
			return judge.Failed("LogError", err.Error())
		case status < 200 || status > 299:
			return judge.Failed("LogError", fmt.Sprintf("The service responded with status %d", status))
		}
		return judge.Verdict{Pass: true}
	}
}
