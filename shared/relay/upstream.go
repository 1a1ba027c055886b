package relay

import (
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/provider"
	"gateway/shared/relay/betas"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// upstreamBody is the body for the target: the client's own, spliced, or its
// translation. Nil where the body is streamed through.
func (rq *requests) upstreamBody() ([]byte, error) {
	if len(rq.In) == 0 {
		return nil, nil
	}
	if rq.sending.Busy() {
		rq.sendBuf = nil // the target before may still be reading
	}
	if rq.Form != nil {
		rq.roomToSend()
		if !rq.To.Leaf.Plain() {
			rq.Loss.Add("override_params", "a config does not change the fields of a form")
		}
		return rq.formBody(), nil
	}
	src := rq.In
	if rq.To.Body != nil {
		src = rq.To.Body
	}
	if rq.Route.Shape == routes.Raw {
		return rq.rawBody(src)
	}
	switch {
	case rq.SameDialect():
		src, err := rq.mediaInline(src)
		if err != nil {
			return nil, err
		}
		return rq.spliced(src)
	case rq.To.Carrier != nil:
		rq.roomToSend()
		return rq.carriedBody(src)
	}
	rq.roomToSend()
	return rq.translated(src)
}

// roomToSend makes the buffer for a body that differs from the client's. There is
// room for a longer model and for asking for usage.
func (o *outbound) roomToSend() {
	if o.sendBuf == nil {
		o.sendBuf = pooled.For(len(o.In) + 256)
	}
}

// carriedBody is the body of an operation that a translator carries.
func (rq *requests) carriedBody(src []byte) ([]byte, error) {
	a := rq.Carried()
	a.Body = src
	var err error
	rq.sendBuf.B, rq.To.ContentType, err = rq.To.Carrier.EncodeRequest(rq.sendBuf.B[:0], src, a)
	if err != nil {
		return nil, err
	}
	if rq.To.Carrier.Name() == provider.AnthropicMessages {
		rq.sendBuf.B, _ = adapt(&rq.To.Target, rq.To.Op, provider.AnthropicMessages, rq.To.Model, rq.sendBuf.B)
	}
	return rq.sendBuf.B, rq.Loss.Err()
}

// rawBody changes a pass-through body only where a saved provider was named in
// the model.
func (o *outbound) rawBody(src []byte) ([]byte, error) {
	if o.Slug == "" || o.To.Saved == nil || o.InPath() {
		return src, nil
	}
	return o.withModel(src)
}

// foundOf is what the dialect's check found of a body; nil for what a config made
// of the client's.
func (rq *requests) foundOf(src []byte) *chat.Checked {
	if !rq.IsOwn(src) {
		return nil
	}
	return rq.Found()
}

// withModel writes the model into its place.
func (o *outbound) withModel(src []byte) ([]byte, error) {
	w, err := o.WalkFor(src, &o.Edited)
	if err != nil {
		return nil, err
	}
	o.modelJSON = wire.AppendJSONString(o.modelJSON[:0], o.To.Model)
	o.roomToSend()
	o.sendBuf.B = wire.Splice(o.sendBuf.B[:0], src, inbound.SetModel(w, o.modelJSON))
	return o.sendBuf.B, nil
}

// spliced is the client's body with the model that was decided on, and with
// usage asked for in streams.
func (rq *requests) spliced(src []byte) ([]byte, error) {
	w, err := rq.WalkFor(src, &rq.Edited)
	if err != nil {
		return nil, err
	}
	if rq.Route.Client != nil && (rq.To.Traits.MayExceed(src, rq.foundOf(src)) || rq.To.Traits.NoThreads && chat.NamesThread(rq.Route.Client, src)) {
		if err := rq.within(src); err != nil {
			return nil, err
		}
	}
	var edits [2]wire.Edit
	n := 0
	rq.modelJSON = wire.AppendJSONString(rq.modelJSON[:0], rq.To.Upstream)
	if rq.To.Upstream != "" && !rq.InPath() && !inbound.ModelIs(w, src, rq.modelJSON) {
		edits[n] = inbound.SetModel(w, rq.modelJSON)
		n++
	}
	rq.injected = rq.Stream && !rq.WantUsage && rq.Route.Client != nil && rq.To.AsksUsage()
	if rq.injected {
		edits[n] = inbound.UsageEdit(w, src)
		n++
	}
	if n > 0 {
		rq.roomToSend()
		rq.sendBuf.B = wire.Splice(rq.sendBuf.B[:0], src, edits[:n]...)
		src = rq.sendBuf.B
	}
	adapted, dropped := adapt(&rq.To.Target, rq.To.Op, rq.To.DialectName(), rq.To.Model, src)
	for _, name := range dropped {
		rq.Loss.Add(name, "the host refuses it")
	}
	return rq.marked(adapted), rq.Loss.Err()
}

// marked is a body with markers for the provider's prompt cache, where the config asks for
// them.
func (rq *requests) marked(body []byte) []byte {
	leaf := rq.To.Leaf
	if leaf == nil || leaf.PromptCache == nil || rq.To.DialectName() != provider.AnthropicMessages {
		return body
	}
	return claude.Mark(body, leaf.PromptCache.Hour)
}

// within refuses what the target is known not to do, in a body that is passed on
// as it is. One that cannot be decoded is the provider's to refuse.
func (rq *requests) within(src []byte) error {
	r, err := rq.Route.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	if err := r.RefuseThread(rq.To.Traits.NoThreads); err != nil {
		return err
	}
	traits := rq.To.Traits
	if traits.Schema == chat.SchemaInWords { // only a translation can put it in words
		traits.Schema = chat.SchemaNone
	}
	return chat.Refuse(rq.Route.Client, r, &traits, &rq.Loss)
}

// translated decodes the request once and encodes it for the target.
func (rq *requests) translated(src []byte) ([]byte, error) {
	r, err := rq.Decode(src)
	if err != nil {
		return nil, err
	}
	r.Model = rq.To.Upstream
	if rq.InPath() {
		r.Stream = rq.Stream
	}
	r.Renamed, r.Recall = nil, nil
	if rq.Strict() {
		r.Recall = rq.Recall
	}
	if rq.Route.Verbatim {
		betas.Carry(rq.Req.Header, rq.To.DialectName(), &rq.To.Traits, &rq.Loss)
	}
	err = rq.withMediaBytes(r, func() (err error) {
		rq.sendBuf.B, err = chat.Translate(rq.sendBuf.B[:0], rq.Route.Client, rq.To.Dialect, r, &rq.To.Traits, &rq.Loss)
		return err
	})
	if err != nil {
		return nil, err
	}
	if rq.To.Dialect.Name() == provider.AnthropicMessages {
		// Some hosts of these models want what the address says removed from the body.
		rq.sendBuf.B, _ = adapt(&rq.To.Target, rq.To.Op, provider.AnthropicMessages, rq.To.Model, rq.sendBuf.B)
	}
	if err := rq.Loss.Err(); err != nil {
		return nil, err
	}
	rq.sendBuf.B = rq.marked(rq.sendBuf.B)
	return rq.sendBuf.B, nil
}

// formBody is the form for the target, when it is held whole: nil otherwise.
func (o *outbound) formBody() []byte {
	if !o.Form.Whole() {
		return nil
	}
	if o.To.Upstream == "" || o.Form.Is("model", o.To.Upstream) {
		return o.In
	}
	o.sendBuf.B = o.Form.Set(o.sendBuf.B[:0], "model", o.To.Upstream)
	return o.sendBuf.B
}

// formStream is the body of a long form; length is -1 when it is not known.
func (o *outbound) formStream() (body io.ReadCloser, length int64) {
	o.upload, length = o.Form.Stream(o.Req.Body, o.To.Upstream, o.Req.ContentLength, o.Route.BodyLimit(), inbound.Unreadable)
	return o.upload, length
}
