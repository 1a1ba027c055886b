package relay

import (
	"io"

	"gateway/shared/chat"
	"gateway/shared/provider"
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
	if rq.sending.busy() {
		rq.sendBuf = nil // the target before may still be reading
	}
	if rq.Form != nil {
		rq.roomToSend()
		if !rq.to.leaf.Plain() {
			rq.loss.Add("override_params", "a config does not change the fields of a form")
		}
		return rq.formBody(), nil
	}
	src := rq.In
	if rq.to.body != nil {
		src = rq.to.body
	}
	if rq.Route.Shape == routes.Raw {
		return rq.rawBody(src)
	}
	switch {
	case rq.sameDialect():
		src, err := rq.mediaInline(src)
		if err != nil {
			return nil, err
		}
		return rq.spliced(src)
	case rq.to.carrier != nil:
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
	a := rq.carried()
	a.Body = src
	var err error
	rq.sendBuf.B, rq.to.contentType, err = rq.to.carrier.EncodeRequest(rq.sendBuf.B[:0], src, a)
	if err != nil {
		return nil, err
	}
	if rq.to.carrier.Name() == provider.AnthropicMessages {
		rq.sendBuf.B, _ = adapt(&rq.to.target, rq.to.op, provider.AnthropicMessages, rq.to.model, rq.sendBuf.B)
	}
	return rq.sendBuf.B, rq.loss.Err()
}

// rawBody changes a pass-through body only where a saved provider was named in
// the model.
func (o *outbound) rawBody(src []byte) ([]byte, error) {
	if o.Slug == "" || o.to.saved == nil {
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
	w, err := o.WalkFor(src, &o.edited)
	if err != nil {
		return nil, err
	}
	o.modelJSON = wire.AppendJSONString(o.modelJSON[:0], o.to.model)
	o.roomToSend()
	o.sendBuf.B = wire.Splice(o.sendBuf.B[:0], src, inbound.SetModel(w, o.modelJSON))
	return o.sendBuf.B, nil
}

// spliced is the client's body with the model that was decided on, and with
// usage asked for in streams.
func (rq *requests) spliced(src []byte) ([]byte, error) {
	w, err := rq.WalkFor(src, &rq.edited)
	if err != nil {
		return nil, err
	}
	if rq.Route.Client != nil && rq.to.traits.MayExceed(src, rq.foundOf(src)) {
		if err := rq.within(src); err != nil {
			return nil, err
		}
	}
	var edits [2]wire.Edit
	n := 0
	rq.modelJSON = wire.AppendJSONString(rq.modelJSON[:0], rq.to.upstream)
	if rq.to.upstream != "" && !inbound.ModelIs(w, src, rq.modelJSON) {
		edits[n] = inbound.SetModel(w, rq.modelJSON)
		n++
	}
	rq.injected = rq.Stream && !rq.WantUsage && rq.Route.Client != nil && rq.to.asksUsage()
	if rq.injected {
		edits[n] = inbound.UsageEdit(w, src)
		n++
	}
	if n > 0 {
		rq.roomToSend()
		rq.sendBuf.B = wire.Splice(rq.sendBuf.B[:0], src, edits[:n]...)
		src = rq.sendBuf.B
	}
	adapted, dropped := adapt(&rq.to.target, rq.to.op, rq.to.dialectName(), rq.to.model, src)
	for _, name := range dropped {
		rq.loss.Add(name, "the host refuses it")
	}
	return adapted, rq.loss.Err()
}

// dialectName is the dialect of a conversation; "" for other operations.
func (t *choice) dialectName() string {
	if t.dialect == nil {
		return ""
	}
	return t.dialect.Name()
}

// asksUsage tells whether the target reports usage in streams only when asked.
func (t *choice) asksUsage() bool {
	switch t.dialect.Name() {
	case provider.OpenAIChat, provider.OpenAICompletions:
		return !t.traits.NoStreamUsage
	}
	return false
}

// decode reads the conversation of a body, once for the client's own.
func (tg *target) decode(src []byte) (*chat.Request, error) {
	// What another target's config made of the body must not reach this one.
	if own := tg.IsOwn(src); tg.decoded == nil || !own || !tg.decodedOwn {
		r, err := tg.Route.Client.DecodeRequest(src)
		if err != nil {
			return nil, err
		}
		tg.decoded, tg.decodedOwn = r, own
	}
	return tg.decoded, nil
}

// within refuses what the target is known not to do, in a body that is passed on
// as it is. One that cannot be decoded is the provider's to refuse.
func (rq *requests) within(src []byte) error {
	r, err := rq.Route.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	return chat.Refuse(rq.Route.Client, r, &rq.to.traits, &rq.loss)
}

// translated decodes the request once and encodes it for the target.
func (rq *requests) translated(src []byte) ([]byte, error) {
	r, err := rq.decode(src)
	if err != nil {
		return nil, err
	}
	r.Model = rq.to.upstream
	r.Renamed, r.Recall = nil, nil
	if rq.strict() {
		r.Recall = rq.recall
	}
	err = rq.withMediaBytes(r, func() (err error) {
		rq.sendBuf.B, err = chat.Translate(rq.sendBuf.B[:0], rq.Route.Client, rq.to.dialect, r, &rq.to.traits, &rq.loss)
		return err
	})
	if err != nil {
		return nil, err
	}
	if rq.to.dialect.Name() == provider.AnthropicMessages {
		// Some hosts of these models take what the address says out of the body.
		rq.sendBuf.B, _ = adapt(&rq.to.target, rq.to.op, provider.AnthropicMessages, rq.to.model, rq.sendBuf.B)
	}
	if err := rq.loss.Err(); err != nil {
		return nil, err
	}
	return rq.sendBuf.B, nil
}

// formBody is the form for the target, when it is held whole: nil otherwise.
func (o *outbound) formBody() []byte {
	if !o.Form.Whole() {
		return nil
	}
	if o.to.upstream == "" || o.Form.Is("model", o.to.upstream) {
		return o.In
	}
	o.sendBuf.B = o.Form.Set(o.sendBuf.B[:0], "model", o.to.upstream)
	return o.sendBuf.B
}

// formStream is the body of a long form; length is -1 when it is not known.
func (o *outbound) formStream() (body io.ReadCloser, length int64) {
	o.upload, length = o.Form.Stream(o.Req.Body, o.to.upstream, o.Req.ContentLength, o.BodyLimit(), inbound.Unreadable)
	return o.upload, length
}
