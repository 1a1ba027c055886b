package relay

import (
	"gateway/shared/guard"
	"gateway/shared/relay/chosen"
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/egress/buffer"
	"gateway/shared/provider"
	"gateway/shared/relay/betas"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/routes"
	"gateway/shared/wire"
)

// upstreamBody is the body for the target: the client's own, spliced, or its
// translation. Nil where the body is streamed through.
func upstreamBody(c *call) ([]byte, error) {
	if len(c.body.In) == 0 {
		return nil, nil
	}
	if c.out.sending.Busy() {
		c.out.sendBuf = nil // the target before may still be reading
	}
	if c.body.Form != nil {
		roomToSend(c)
		if !c.target.To.Leaf.Plain() {
			c.target.Loss.Add("override_params", "a config does not change the fields of a form")
		}
		return formBody(c), nil
	}
	src := c.body.In
	if c.target.To.Body != nil {
		src = c.target.To.Body
	}
	if c.req.Route.Shape == routes.Raw {
		return rawBody(c, src)
	}
	switch {
	case c.target.SameDialect():
		src, err := mediaInline(c, src)
		if err != nil {
			return nil, err
		}
		return spliced(c, src)
	case c.target.To.Carrier != nil:
		roomToSend(c)
		return carriedBody(c, src)
	}
	roomToSend(c)
	return translated(c, src)
}

// roomToSend makes the buffer for a body that differs from the client's. There is
// room for a longer model and for asking for usage.
func roomToSend(c *call) {
	if c.out.sendBuf == nil {
		c.out.sendBuf = buffer.For(len(c.body.In) + 256)
	}
}

// carriedBody is the body of an operation that a translator carries.
func carriedBody(c *call, src []byte) ([]byte, error) {
	a := c.target.Carried()
	a.Body = src
	var err error
	c.out.sendBuf.B, c.target.To.ContentType, err = c.target.To.Carrier.EncodeRequest(c.out.sendBuf.B[:0], src, a)
	if err != nil {
		return nil, err
	}
	if c.target.To.Carrier.Name() == provider.AnthropicMessages {
		c.out.sendBuf.B, _ = adapt(&c.target.To.Target, c.target.To.Op, provider.AnthropicMessages, c.target.To.Model, c.out.sendBuf.B)
	}
	return c.out.sendBuf.B, c.target.Loss.Err()
}

// rawBody changes a pass-through body only where a saved provider was named in
// the model.
func rawBody(c *call, src []byte) ([]byte, error) {
	if c.body.Slug == "" || c.target.To.Saved == nil || c.target.InPath() {
		return src, nil
	}
	return withModel(c, src)
}

// foundOf is what the dialect's check found of a body; nil for what a config made
// of the client's.
func foundOf(c *call, src []byte) *chat.Checked {
	if !c.body.IsOwn(src) {
		return nil
	}
	return c.body.Found()
}

// withModel writes the model into its place.
func withModel(c *call, src []byte) ([]byte, error) {
	w, err := c.body.WalkFor(src, &c.target.Edited)
	if err != nil {
		return nil, err
	}
	c.out.modelJSON = wire.AppendJSONString(c.out.modelJSON[:0], c.target.To.Model)
	roomToSend(c)
	c.out.sendBuf.B = wire.Splice(c.out.sendBuf.B[:0], src, inbound.SetModel(w, c.out.modelJSON))
	return c.out.sendBuf.B, nil
}

// spliced is the client's body with the model that was decided on, and with
// usage asked for in streams.
func spliced(c *call, src []byte) ([]byte, error) {
	w, err := c.body.WalkFor(src, &c.target.Edited)
	if err != nil {
		return nil, err
	}
	if c.req.Route.Client != nil && (c.target.To.Traits.MayExceed(src, foundOf(c, src)) || c.target.To.Traits.NoThreads && chat.NamesThread(c.req.Route.Client, src)) {
		if err := within(c, src); err != nil {
			return nil, err
		}
	}
	var edits [2]wire.Edit
	n := 0
	c.out.modelJSON = wire.AppendJSONString(c.out.modelJSON[:0], c.target.To.Upstream)
	if c.target.To.Upstream != "" && !c.target.InPath() && !inbound.ModelIs(w, src, c.out.modelJSON) {
		edits[n] = inbound.SetModel(w, c.out.modelJSON)
		n++
	}
	c.out.injected = c.target.Stream && !c.target.WantUsage && c.req.Route.Client != nil && c.target.To.AsksUsage()
	if c.out.injected {
		edits[n] = inbound.UsageEdit(w, src)
		n++
	}
	if n > 0 {
		roomToSend(c)
		c.out.sendBuf.B = wire.Splice(c.out.sendBuf.B[:0], src, edits[:n]...)
		src = c.out.sendBuf.B
	}
	adapted, dropped := adapt(&c.target.To.Target, c.target.To.Op, c.target.To.DialectName(), c.target.To.Model, src)
	for _, name := range dropped {
		c.target.Loss.Add(name, "the host refuses it")
	}
	return marked(c, adapted), c.target.Loss.Err()
}

// marked is a body with markers for the provider's prompt cache, where the config asks for
// them.
func marked(c *call, body []byte) []byte {
	leaf := c.target.To.Leaf
	if leaf == nil || leaf.PromptCache == nil || c.target.To.DialectName() != provider.AnthropicMessages {
		return body
	}
	return claude.Mark(body, leaf.PromptCache.Hour)
}

// within refuses what the target is known not to do, in a body that is passed on
// as it is. One that cannot be decoded is the provider's to refuse.
func within(c *call, src []byte) error {
	r, err := c.req.Route.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	if err := r.RefuseThread(c.target.To.Traits.NoThreads); err != nil {
		return err
	}
	traits := c.target.To.Traits
	if traits.Schema == chat.SchemaInWords { // only a translation can put it in words
		traits.Schema = chat.SchemaNone
	}
	return chat.Refuse(c.req.Route.Client, r, &traits, &c.target.Loss)
}

// translated decodes the request once and encodes it for the target.
func translated(c *call, src []byte) ([]byte, error) {
	r, err := c.target.Decode(src)
	if err != nil {
		return nil, err
	}
	r.Model = c.target.To.Upstream
	if c.target.InPath() {
		r.Stream = c.target.Stream
	}
	if err := chosen.ResolveItems(&c.target, r); err != nil {
		return nil, err
	}
	r.Renamed, r.Recall = nil, nil
	r.Fits = func(schema, value []byte) bool { return guard.Fits(c.req.Ctx, schema, value) }
	if c.target.Strict() {
		r.Recall = c.target.Recall
	}
	if c.req.Route.Verbatim {
		betas.Carry(c.req.Req.Header, c.target.To.DialectName(), &c.target.To.Traits, &c.target.Loss)
	}
	err = withMediaBytes(c, r, func() (err error) {
		c.out.sendBuf.B, err = chat.Translate(c.out.sendBuf.B[:0], c.req.Route.Client, c.target.To.Dialect, r, &c.target.To.Traits, &c.target.Loss)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.target.To.Dialect.Name() == provider.AnthropicMessages {
		// Some hosts of these models want what the address says removed from the body.
		c.out.sendBuf.B, _ = adapt(&c.target.To.Target, c.target.To.Op, provider.AnthropicMessages, c.target.To.Model, c.out.sendBuf.B)
	}
	if err := c.target.Loss.Err(); err != nil {
		return nil, err
	}
	c.out.sendBuf.B = marked(c, c.out.sendBuf.B)
	return c.out.sendBuf.B, nil
}

// formBody is the form for the target, when it is held whole: nil otherwise.
func formBody(c *call) []byte {
	if !c.body.Form.Whole() {
		return nil
	}
	if c.target.To.Upstream == "" || c.body.Form.Is("model", c.target.To.Upstream) {
		return c.body.In
	}
	c.out.sendBuf.B = c.body.Form.Set(c.out.sendBuf.B[:0], "model", c.target.To.Upstream)
	return c.out.sendBuf.B
}

// formStream is the body of a long form; length is -1 when it is not known.
func formStream(c *call) (body io.ReadCloser, length int64) {
	c.out.upload, length = c.body.Form.Stream(c.req.Req.Body, c.target.To.Upstream, c.req.Req.ContentLength, c.req.Route.BodyLimit(), inbound.Unreadable)
	return c.out.upload, length
}
