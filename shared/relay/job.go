package relay

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/form"
	"gateway/shared/relay/record"
	"gateway/shared/relay/target"
	"gateway/shared/usage"
)

// This file runs files, batches and fine-tuning jobs of providers with another wire format than
// OpenAI's through the pipeline of all operations: the result of chat.Jobs replaces the
// provider's response.

// exchangeJob executes an operation of the target's jobs. Its calls count as one attempt.
func exchangeJob(c *call, body []byte, at *usage.Attempt) targetResult {
	ctx := beginPatience(&c.target, &c.out, c.req.Ctx)
	j, err := runJob(c, body, at)
	if err != nil {
		return rejection(err)
	}
	got, err := c.target.Choice.Jobs.Do(ctx, j)
	patience := &c.out.patience
	if err == nil && !patience.HeadArrived() {
		_ = got.Body.Close()
		err = patience.TimeoutFault()
	}
	if err != nil {
		patience.Stop()
		if c.out.upload != nil && c.out.upload.Fault() != nil {
			return rejection(c.out.upload.Fault()) // the client's body was truncated
		}
		return rejection(cut(&c.out, err))
	}
	return targetResult{resp: &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {got.Type}}, Body: got.Body, ContentLength: got.Length,
	}}
}

// runJob returns the operation for the target.
func runJob(c *call, body []byte, at *usage.Attempt) (*chat.Job, error) {
	part := requestedChoice(&c.target, &c.out)
	j := &chat.Job{
		Operation: string(part.Op), ID: part.ID, Query: url.Values{}, Model: c.target.Choice.Upstream, Request: c.req.ULID, Now: c.req.StartTime,
		ProviderName: c.target.Choice.Target.Provider.ID, Strict: c.target.StrictOpenAI(), Loss: &c.target.Loss, Field: c.target.Choice.Target.Field,
		Header:       func(name string) string { return admission.SingleHeader(c.req.Req.Header, name) },
		Conversation: func(client, model string) (*chat.Conversation, error) { return talk(c.relay, &c.target, client, model) },
		Files:        c.relay.fileStores.ForProviders(c.req.Principal.Scope),
		Tier:         c.bill.TierOf,
		Call: func(ctx context.Context, call *chat.JobCall) (*http.Response, error) {
			return callJob(c.relay, &c.target, &c.log, &c.mask, ctx, call, at)
		},
	}
	if c.req.Req.Method == http.MethodGet || c.req.Req.Method == http.MethodDelete {
		j.Query, _ = url.ParseQuery(part.Query) // like URL.Query: invalid parameters are omitted
	}
	if c.body.Form == nil {
		j.Body = body
		return j, nil
	}
	var err error
	j.Upload, err = jobUpload(&c.target, &c.out, body)
	return j, err
}

// jobUpload opens the form up to its file.
func jobUpload(tg *target.Target, up *outbound, body []byte) (*chat.Upload, error) {
	var src io.Reader = strings.NewReader(string(body)) // an aborted call may still read it
	if !tg.Body.Form.Complete() {
		src, _ = formStream(tg, up)
		up.bodySpent = true
	}
	file, err := form.OpenFormFile(src, tg.Body.Form.Boundary(), func(err error) error { return formFault(up, err) })
	if err != nil {
		return nil, err
	}
	return &chat.Upload{Name: file.Name, File: file, Fields: file.Rest}, nil
}

func formFault(up *outbound, err error) error {
	if up.upload != nil {
		if f := up.upload.Fault(); f != nil {
			return f
		}
	}
	return fault.Invalid("body", "is not a complete multipart form").WithCause(err)
}

// talk returns the conversation between the rows of a batch and one of the target's models,
// which may be named as @slug/model.
func talk(r *Relay, tg *target.Target, client, model string) (*chat.Conversation, error) {
	if rest, ok := strings.CutPrefix(model, "@"); ok {
		slug, name, _ := strings.Cut(rest, "/")
		if tg.Choice.Saved == nil || slug != tg.Choice.Saved.Slug || name == "" {
			return nil, fault.Invalid("model", "model must be a model of the provider that runs the batch")
		}
		model = name
	}
	if tg.Choice.Op == provider.BatchesCreate {
		if err := tg.MayCall(tg.Choice.Target.Provider, model); err != nil {
			return nil, err
		}
	}
	if tg.Choice.Saved != nil && tg.Choice.Op == provider.BatchesCreate {
		if err := tg.Choice.Saved.Allows(model); err != nil {
			return nil, err
		}
	}
	talk := &chat.Conversation{Model: tg.Choice.Target.UpstreamModel(model)}
	talk.Client, _ = r.dialects[client].(chat.Client)
	op, known := talkOperations[client]
	if !known {
		return nil, target.Unsupported(client, tg.Choice.Target.Provider)
	}
	ok := false
	if op == provider.Embeddings {
		name := tg.Choice.Target.DialectOf(op, model)
		talk.Adapt = func(body []byte) ([]byte, []string) { return adapt(&tg.Choice.Target, op, name, model, body) }
		if talk.Translator, ok = r.carriers[name]; name == provider.OpenAI {
			ok = true
		}
	} else if name, spoken, found := tg.Choice.Target.UpstreamDialect(op, client, model); found && talk.Client != nil {
		talk.Provider, ok = r.dialects[name]
		talk.Adapt = func(body []byte) ([]byte, []string) { return adapt(&tg.Choice.Target, spoken, name, model, body) }
	}
	if !ok {
		return nil, target.Unsupported(client, tg.Choice.Target.Provider)
	}
	traits := tg.Choice.Target.TraitsFor(tg.Req.Ctx, model)
	talk.Traits = &traits
	return talk, nil
}

// talkOperations are the operations available to rows of a batch, by the dialect of the rows.
var talkOperations = map[string]provider.Operation{
	provider.OpenAIChat: provider.Chat, provider.OpenAICompletions: provider.Completions,
	provider.OpenAIResponses: provider.ResponsesCreate, provider.AnthropicMessages: provider.Messages,
	chat.EmbeddingRows: provider.Embeddings,
}

// callJob sends one request of an operation.
func callJob(r *Relay, tg *target.Target, log *record.Log, mk *target.SecretMask, ctx context.Context, call *chat.JobCall, at *usage.Attempt) (*http.Response, error) {
	upstream := tg.Choice.Target
	var raw string
	var err error
	switch {
	case call.URL != "":
		raw, err = call.URL, checkGiven(r, tg, call.URL)
	case call.Object != "":
		upstream = upstream.Objects()
		raw, err = upstream.ObjectURL(call.Object)
	default:
		raw, err = upstream.ResourceURL(provider.Operation(call.Operation), call.ID)
		raw += call.Suffix
	}
	if err != nil {
		return nil, err
	}
	u, err := provider.ExactURL(provider.AddQuery(raw, call.Query))
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: call.Method, URL: u, Header: make(http.Header, 8), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}).WithContext(ctx)
	if len(call.Body) > 0 {
		req.Body, req.ContentLength = egress.NewBody(call.Body), int64(len(call.Body))
		req.GetBody = func() (io.ReadCloser, error) { return egress.NewBody(call.Body), nil }
	} else if call.Open != nil {
		if req.Body, err = call.Open(); err != nil {
			return nil, err
		}
		req.ContentLength, req.GetBody = call.Length, call.Open
	}
	req.Header["Accept"] = acceptAll
	if call.URL == "" {
		for k, v := range upstream.CustomHeaders {
			if egress.Forwardable(k) {
				req.Header.Set(k, v)
			}
		}
	}
	for k, v := range call.Header {
		req.Header[k] = v
	}
	if call.URL == "" {
		err = upstream.Authorize(tg.Req.Ctx, req, call.Body)
	}
	if err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	req.Header["User-Agent"] = userAgent
	mk.Sent = req.Header
	at.CallsServer(req.URL)
	t := r.Now()
	out := out(r, tg)
	if call.URL != "" && !tg.Choice.OwnHost(call.URL) {
		out = r.Transport
	}
	resp, err := out.RoundTrip(req)
	log.Wait(r.Now().Sub(t))
	if err != nil {
		return nil, target.Unreachable(tg, req.URL.Host, err)
	}
	at.Identify(requestID(resp.Header))
	if !succeeded(resp.StatusCode) {
		return nil, jobRejected(tg, log, mk, resp)
	}
	if err := egress.Inflate(resp, 0); err != nil {
		return nil, unreadableResponse(err)
	}
	return resp, nil
}

// checkGiven applies the rules for hosts that callers name to an address from a provider.
func checkGiven(r *Relay, tg *target.Target, raw string) error {
	u, err := url.Parse(raw)
	if err == nil {
		policy := r.Egress
		if !tg.Choice.OwnHost(raw) {
			policy = policy.WithoutTrusted()
		}
		_, err = policy.CheckURL(strings.ToLower(u.Scheme)+"://"+u.Host+"/", "")
	}
	if err != nil {
		f := fault.Newf(fault.InvalidProviderResponse, "", "%s returned an address that cannot be called", tg.Choice.Target.Provider.ID)
		f.Source = fault.SourceProvider
		return f
	}
	return nil
}

// jobRejected reads a provider's error response.
func jobRejected(tg *target.Target, log *record.Log, mk *target.SecretMask, resp *http.Response) *fault.Fault {
	buf := buffer.New()
	defer buf.Free()
	err := readWhole(tg.Req, buf, resp, maxErrorResponse)
	_ = resp.Body.Close()
	if err != nil && len(buf.B) == 0 {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The response of %s was truncated", tg.Choice.Target.Provider.ID).WithCause(err)
		return chat.CompleteFault(f, resp.StatusCode, resp.Header)
	}
	mk.Refusal(resp.Header, buf.B)
	log.Body(record.Received, buf.B)
	f := tg.Choice.Jobs.DecodeError(resp.StatusCode, resp.Header, buf.B)
	f.Source = fault.SourceProvider
	return f
}
