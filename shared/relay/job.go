package relay

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/form"
	"gateway/shared/usage"
)

// This file lets files, batches and fine-tuning jobs of providers whose wire is
// not OpenAI's take the walk of all operations: what chat.Jobs answers stands for
// the provider's response.

// exchangeJob performs an operation of the target's jobs. Its calls count as one
// attempt.
func (c *call) exchangeJob(body []byte, at *usage.Attempt) answer {
	ctx := c.beginPatience(c.ctx)
	j, err := c.job(body, at)
	if err != nil {
		return refusal(err)
	}
	got, err := c.to.jobs.Do(ctx, j)
	patience := &c.patience
	if err == nil && !patience.HeadCame() {
		_ = got.Body.Close()
		err = patience.Late()
	}
	if err != nil {
		patience.Stop()
		if c.upload != nil && c.upload.Fault() != nil {
			return refusal(c.upload.Fault()) // it is the client's body that broke
		}
		if f := patience.Late(); f != nil {
			return refusal(f)
		}
		return refusal(err)
	}
	c.rec.Losses = c.loss.Paths()
	return answer{resp: &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {got.Type}}, Body: got.Body, ContentLength: got.Length,
	}}
}

// job is the operation for the target.
func (c *call) job(body []byte, at *usage.Attempt) (*chat.Job, error) {
	j := &chat.Job{
		Operation: string(c.to.op), ID: c.id, Query: url.Values{}, Model: c.to.upstream, Request: c.ulid, Now: c.start,
		ProviderName: c.to.target.Provider.ID, Strict: c.strict(), Loss: &c.loss, Field: c.to.target.Field,
		Header: func(name string) string { return one(c.req.Header, name) },
		Talk:   c.talk, Room: c.rooms.of(c.who.Scope),
		Call: func(ctx context.Context, call *chat.JobCall) (*http.Response, error) { return c.callJob(ctx, call, at) },
	}
	if c.req.Method == http.MethodGet || c.req.Method == http.MethodDelete {
		j.Query = c.req.URL.Query()
	}
	if c.form == nil {
		j.Body = body
		return j, nil
	}
	var err error
	j.Upload, err = c.jobUpload(body)
	return j, err
}

// jobUpload opens the form up to its file.
func (c *call) jobUpload(body []byte) (*chat.Upload, error) {
	var src io.Reader
	if c.form.Whole() {
		src = strings.NewReader(string(body))
	} else {
		src, _ = c.formStream()
		c.bodySpent = true
	}
	r := multipart.NewReader(src, c.form.Boundary())
	fields := make(map[string]string)
	file, err := c.partsUntilFile(r, fields)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, fault.Invalid("file", "file is required: the file to upload")
	}
	rest := func() (map[string]string, error) {
		more, err := c.partsUntilFile(r, fields)
		if err == nil && more != nil {
			err = fault.Invalid("file", "file must be the only file of the form")
		}
		return fields, err
	}
	return &chat.Upload{Name: file.FileName(), File: c.brokenForm(file), Fields: rest}, nil
}

// partsUntilFile reads fields until a file begins; nil at the end of the form.
func (c *call) partsUntilFile(r *multipart.Reader, fields map[string]string) (*multipart.Part, error) {
	for range form.MaxParts {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, c.formFault(err)
		}
		if _, file, err := form.PartName([]byte("Content-Disposition: " + part.Header.Get("Content-Disposition"))); err == nil && file {
			return part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, form.MaxHead+1))
		if err != nil {
			return nil, c.formFault(err)
		}
		if len(text) > form.MaxHead {
			return nil, fault.Newf(fault.BodyTooLarge, part.FormName(), "must have at most %d bytes", form.MaxHead)
		}
		if _, twice := fields[part.FormName()]; twice && !strings.HasSuffix(part.FormName(), "[]") {
			return nil, fault.Invalid(part.FormName(), "%s stands twice in the form", part.FormName())
		}
		fields[part.FormName()] = string(text)
	}
	return nil, fault.Invalid("body", "has more than %d parts", form.MaxParts)
}

func (c *call) formFault(err error) error {
	if c.upload != nil {
		if f := c.upload.Fault(); f != nil {
			return f
		}
	}
	return fault.Invalid("body", "is no multipart form that can be read to its end").WithCause(err)
}

// brokenForm reads a part whose errors are the client's.
func (c *call) brokenForm(part io.Reader) io.Reader { return &formPart{c, part} }

type formPart struct {
	c    *call
	part io.Reader
}

func (p *formPart) Read(b []byte) (int, error) {
	n, err := p.part.Read(b)
	if err != nil && err != io.EOF {
		err = p.c.formFault(err)
	}
	return n, err
}

// talk is the conversation between the rows of a batch and one of the target's
// models, which may be named as @slug/model.
func (c *call) talk(client, model string) (*chat.Talk, error) {
	if rest, ok := strings.CutPrefix(model, "@"); ok {
		slug, name, _ := strings.Cut(rest, "/")
		if c.to.saved == nil || slug != c.to.saved.slug || name == "" {
			return nil, fault.Invalid("model", "model must be one of the provider that runs the batch")
		}
		model = name
	}
	if c.to.saved != nil && c.to.op == provider.BatchesCreate {
		if err := c.to.saved.allows(model); err != nil {
			return nil, err
		}
	}
	t := &chat.Talk{Client: c.dialects[client], Model: c.to.target.UpstreamModel(model)}
	op, known := talkOperations[client]
	if !known {
		return nil, unsupported(client, c.to.target.Provider)
	}
	ok := false
	if op == provider.Embeddings {
		name := c.to.target.DialectOf(op, model)
		t.Adapt = func(body []byte) ([]byte, []string) { return adapt(&c.to.target, op, name, model, body) }
		if t.Translator, ok = c.carriers[name]; name == provider.OpenAI {
			ok = true
		}
	} else if name, spoken, found := c.to.target.Speaks(op, client, model); found && t.Client != nil {
		t.Provider, ok = c.dialects[name]
		t.Adapt = func(body []byte) ([]byte, []string) { return adapt(&c.to.target, spoken, name, model, body) }
	}
	if !ok {
		return nil, unsupported(client, c.to.target.Provider)
	}
	traits := c.to.target.TraitsFor(c.ctx, model)
	t.Traits = &traits
	return t, nil
}

// talkOperations are the operations that rows of a batch may ask for, by the
// dialect of the rows.
var talkOperations = map[string]provider.Operation{
	provider.OpenAIChat: provider.Chat, provider.OpenAICompletions: provider.Completions,
	provider.OpenAIResponses: provider.ResponsesCreate, provider.AnthropicMessages: provider.Messages,
	chat.EmbeddingRows: provider.Embeddings,
}

// callJob sends one request of an operation.
func (c *call) callJob(ctx context.Context, call *chat.JobCall, at *usage.Attempt) (*http.Response, error) {
	target := c.to.target
	var raw string
	var err error
	switch {
	case call.URL != "":
		raw, err = call.URL, c.checkGiven(call.URL)
	case call.Object != "":
		target = target.Objects()
		raw, err = target.ObjectURL(call.Object)
	default:
		raw, err = target.ResourceURL(provider.Operation(call.Operation), call.ID)
		raw += call.Below
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
		for k, v := range target.CustomHeaders {
			if egress.Forwardable(k) {
				req.Header.Set(k, v)
			}
		}
	}
	for k, v := range call.Header {
		req.Header[k] = v
	}
	if call.URL == "" {
		err = target.Authorize(c.ctx, req, call.Body)
	}
	if err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	req.Header["User-Agent"] = userAgent
	c.sentHeader = req.Header
	t := c.Now()
	out := c.out()
	if call.URL != "" && !c.ownHost(call.URL) {
		out = c.Transport
	}
	resp, err := out.RoundTrip(req)
	c.waited += c.Now().Sub(t)
	if err != nil {
		return nil, c.unreachable(err)
	}
	at.RequestID = requestID(resp.Header)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, c.jobRefused(resp)
	}
	if err := egress.Inflate(resp, 0); err != nil {
		return nil, unreadableAnswer(err)
	}
	return resp, nil
}

// checkGiven holds an address that a provider gave to the rules for hosts that
// callers name.
func (c *call) checkGiven(raw string) error {
	u, err := url.Parse(raw)
	if err == nil {
		policy := c.Egress
		if !c.ownHost(raw) {
			policy = policy.WithoutTrusted()
		}
		_, err = policy.CheckURL(strings.ToLower(u.Scheme)+"://"+u.Host+"/", "")
	}
	if err != nil {
		f := fault.Newf(fault.InvalidProviderResponse, "", "%s gave an address that cannot be called", c.to.target.Provider.ID)
		f.Source = fault.SourceProvider
		return f
	}
	return nil
}

// jobRefused reads a provider's error answer.
func (c *call) jobRefused(resp *http.Response) *fault.Fault {
	buf := newBuffer()
	defer buf.free()
	err := c.readWhole(buf, resp, maxErrorAnswer)
	_ = resp.Body.Close()
	if err != nil && len(buf.b) == 0 {
		f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", c.to.target.Provider.ID).WithCause(err)
		return chat.Told(f, resp.StatusCode, resp.Header)
	}
	c.hideRefusal(resp.Header, buf.b)
	c.keepReceived(buf.b)
	f := c.to.jobs.DecodeError(resp.StatusCode, resp.Header, buf.b)
	f.Source = fault.SourceProvider
	return f
}

// jobUsage books what the rows of an ended batch used, when its provider tells it
// with the rows only. It is read before it is claimed, so that a reading that
// fails is done again by the next request.
func (c *call) jobUsage(id string) {
	if claimed, err := c.batchClaimed(id); claimed || err != nil {
		c.fail("look for a batch's claim", err)
		return
	}
	j, err := c.job(nil, &c.rec.Attempts[len(c.rec.Attempts)-1])
	if err != nil {
		c.fail("usage of a batch", err)
		return
	}
	j.Operation, j.ID = string(provider.BatchesOutput), id
	used, err := c.to.jobs.Usage(c.ctx, j)
	if err != nil {
		c.fail("usage of a batch", err)
		return
	}
	if len(used) > 0 && c.claimBooking(id) {
		c.bookRows(used)
	}
}

// bookRows books what the rows of a batch used, one entry for each model.
func (c *call) bookRows(used []chat.Meter) {
	if len(used) == 0 {
		return
	}
	c.wanted.Mode = "batch"
	for _, m := range used {
		if m.Model != "" {
			c.to.model, c.rec.Model = m.Model, m.Model
		}
		c.charge(m.Usage)
	}
	c.spend()
}

// batchClaimed tells whether the usage of a batch stands in the books.
func (c *call) batchClaimed(id string) (bool, error) {
	_, there, err := c.owners.table.Get(c.ctx, c.bookingKey(id), true)
	return there, err
}
