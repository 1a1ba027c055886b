package relay

import (
	"bytes"
	"io"

	"gateway/shared/chat"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// upstreamBody is the body for the target: the client's own, spliced, or its
// translation. Nil where the body is streamed through.
func (c *call) upstreamBody() ([]byte, error) {
	if len(c.in) == 0 {
		return nil, nil
	}
	if c.sending.busy() {
		c.sendBuf = nil // the target before may still be reading
	}
	if c.form != nil {
		c.roomToSend()
		if !c.to.leaf.Plain() {
			c.loss.Add("override_params", "a config does not change the fields of a form")
			c.rec.Losses = c.loss.Paths()
		}
		return c.formBody(), nil
	}
	src := c.in
	if c.to.body != nil {
		src = c.to.body
	}
	if c.rt.Shape == Raw {
		return c.rawBody(src)
	}
	switch {
	case c.sameDialect():
		src, err := c.mediaInline(src)
		if err != nil {
			return nil, err
		}
		return c.spliced(src)
	case c.to.carrier != nil:
		c.roomToSend()
		return c.carriedBody(src)
	}
	c.roomToSend()
	return c.translated(src)
}

// roomToSend makes the buffer for a body that differs from the client's. There is
// room for a longer model and for asking for usage.
func (c *call) roomToSend() {
	if c.sendBuf == nil {
		c.sendBuf = newBufferFor(len(c.in) + 256)
	}
}

// carriedBody is the body of an operation that a translator carries.
func (c *call) carriedBody(src []byte) ([]byte, error) {
	a := c.carried()
	a.Body = src
	var err error
	c.sendBuf.b, c.to.contentType, err = c.to.carrier.EncodeRequest(c.sendBuf.b[:0], src, a)
	if err != nil {
		return nil, err
	}
	if c.to.carrier.Name() == provider.AnthropicMessages {
		c.sendBuf.b, _ = adapt(&c.to.target, c.to.op, provider.AnthropicMessages, c.to.model, c.sendBuf.b)
	}
	c.rec.Losses = c.loss.Paths()
	return c.sendBuf.b, c.loss.Err()
}

// rawBody changes a pass-through body only where a saved provider was named in
// the model.
func (c *call) rawBody(src []byte) ([]byte, error) {
	if c.slug == "" || c.to.saved == nil {
		return src, nil
	}
	return c.withModel(src)
}

// isOwn tells whether src is the client's body as it came, not what a config made
// of it.
func (c *call) isOwn(src []byte) bool { return &src[0] == &c.in[0] }

// walkOf gives the walk of a body: the one made at admission for the client's
// own, a new one for what a config made of it.
func (c *call) walkOf(src []byte) (*wire.Walk, error) {
	if c.isOwn(src) {
		return &c.walk, nil
	}
	return &c.edited, bodyKeys.Walk(src, &c.edited)
}

// found is what the dialect's check found of a body; nil for what a config made
// of the client's.
func (c *call) found(src []byte) *chat.Checked {
	if !c.isOwn(src) || c.checked.Keys == nil {
		return nil
	}
	return &c.checked
}

// withModel writes the model into its place.
func (c *call) withModel(src []byte) ([]byte, error) {
	w, err := c.walkOf(src)
	if err != nil {
		return nil, err
	}
	c.modelJSON = wire.AppendJSONString(c.modelJSON[:0], c.to.model)
	c.roomToSend()
	c.sendBuf.b = wire.Splice(c.sendBuf.b[:0], src, bodyKeys.SetKey(w, keyModel, c.modelJSON))
	return c.sendBuf.b, nil
}

// spliced is the client's body with the model that was decided on, and with
// usage asked for in streams.
func (c *call) spliced(src []byte) ([]byte, error) {
	w, err := c.walkOf(src)
	if err != nil {
		return nil, err
	}
	if c.rt.Client != nil && c.to.traits.MayExceed(src, c.found(src)) {
		if err := c.within(src); err != nil {
			return nil, err
		}
	}
	var edits [2]wire.Edit
	n := 0
	c.modelJSON = wire.AppendJSONString(c.modelJSON[:0], c.to.upstream)
	if c.to.upstream != "" && !bytes.Equal(w.Spans[keyModel].Of(src), c.modelJSON) {
		edits[n] = bodyKeys.SetKey(w, keyModel, c.modelJSON)
		n++
	}
	c.injected = c.stream && !c.wantUsage && c.rt.Client != nil && c.to.asksUsage()
	if c.injected {
		edits[n] = usageEdit(w, src)
		n++
	}
	if n > 0 {
		c.roomToSend()
		c.sendBuf.b = wire.Splice(c.sendBuf.b[:0], src, edits[:n]...)
		src = c.sendBuf.b
	}
	adapted, dropped := adapt(&c.to.target, c.to.op, c.to.dialectName(), c.to.model, src)
	for _, name := range dropped {
		c.loss.Add(name, "the host refuses it")
	}
	c.rec.Losses = c.loss.Paths()
	return adapted, c.loss.Err()
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

var askUsage = []byte(`{"include_usage":true}`)

// usageEdit asks for usage, whatever other stream options the client set.
func usageEdit(w *wire.Walk, src []byte) wire.Edit {
	v := w.Spans[keyStreamOptions]
	if !v.Present(src) || src[v.Start] != '{' {
		return bodyKeys.SetKey(w, keyStreamOptions, askUsage)
	}
	raw := v.Of(src)
	var inner wire.Walk
	if includeUsage.Walk(raw, &inner) != nil {
		return bodyKeys.SetKey(w, keyStreamOptions, askUsage)
	}
	return wire.Replace(v, wire.Splice(nil, raw, includeUsage.SetKey(&inner, 0, []byte("true"))))
}

// decode reads the conversation of a body, once for the client's own.
func (c *call) decode(src []byte) (*chat.Request, error) {
	// What another target's config made of the body must not reach this one.
	if own := c.isOwn(src); c.decoded == nil || !own || !c.decodedOwn {
		r, err := c.rt.Client.DecodeRequest(src)
		if err != nil {
			return nil, err
		}
		c.decoded, c.decodedOwn = r, own
	}
	return c.decoded, nil
}

// within refuses what the target is known not to do, in a body that is passed on
// as it is. One that cannot be decoded is the provider's to refuse.
func (c *call) within(src []byte) error {
	r, err := c.rt.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	return chat.Refuse(c.rt.Client, r, &c.to.traits, &c.loss)
}

// translated decodes the request once and encodes it for the target.
func (c *call) translated(src []byte) ([]byte, error) {
	r, err := c.decode(src)
	if err != nil {
		return nil, err
	}
	r.Model = c.to.upstream
	r.Renamed, r.Recall = nil, nil
	if c.strict() {
		r.Recall = c.recall
	}
	err = c.withMediaBytes(r, func() (err error) {
		c.sendBuf.b, err = chat.Translate(c.sendBuf.b[:0], c.rt.Client, c.to.dialect, r, &c.to.traits, &c.loss)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.to.dialect.Name() == provider.AnthropicMessages {
		// Some hosts of these models take what the address says out of the body.
		c.sendBuf.b, _ = adapt(&c.to.target, c.to.op, provider.AnthropicMessages, c.to.model, c.sendBuf.b)
	}
	if err := c.loss.Err(); err != nil {
		return nil, err
	}
	c.rec.Losses = c.loss.Paths()
	return c.sendBuf.b, nil
}

// formBody is the form for the target, when it is held whole: nil otherwise.
func (c *call) formBody() []byte {
	if !c.form.Whole() {
		return nil
	}
	if c.to.upstream == "" || c.form.Is("model", c.to.upstream) {
		return c.in
	}
	c.sendBuf.b = c.form.Set(c.sendBuf.b[:0], "model", c.to.upstream)
	return c.sendBuf.b
}

// formStream is the body of a long form; length is -1 when it is not known.
func (c *call) formStream() (body io.ReadCloser, length int64) {
	c.upload, length = c.form.Stream(c.req.Body, c.to.upstream, c.req.ContentLength, c.bodyLimit(), unreadable)
	return c.upload, length
}
