package relay

import (
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/egress/buffer"
	"gateway/shared/guard"
	"gateway/shared/provider"
	"gateway/shared/relay/betas"
	"gateway/shared/relay/body"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/wire"
)

// upstreamBody is the body for the target: the client's own, spliced, or its
// translation. Nil where the body is streamed through.
func upstreamBody(r *Relay, tg *target.Target, up *outbound, log *record.Log) ([]byte, error) {
	if len(tg.Body.In) == 0 {
		return nil, nil
	}
	if up.sending.Busy() {
		up.sendBuf = nil // the target before may still be reading
	}
	if tg.Body.Form != nil {
		roomToSend(tg.Body, up)
		if !tg.To.Leaf.Plain() {
			tg.Loss.Add("override_params", "a config does not change the fields of a form")
		}
		return formBody(tg, up), nil
	}
	src := tg.Body.In
	if tg.To.Body != nil {
		src = tg.To.Body
	}
	if tg.Req.Route.Shape == routes.Raw {
		return rawBody(tg, up, src)
	}
	switch {
	case tg.SameDialect():
		src, err := mediaInline(r, tg, up, log, src)
		if err != nil {
			return nil, err
		}
		return spliced(tg, up, src)
	case tg.To.Carrier != nil:
		roomToSend(tg.Body, up)
		return carriedBody(tg, up, src)
	}
	roomToSend(tg.Body, up)
	return translated(r, tg, up, log, src)
}

// roomToSend makes the buffer for a body that differs from the client's. There is
// room for a longer model and for asking for usage.
func roomToSend(in *body.Body, up *outbound) {
	if up.sendBuf == nil {
		up.sendBuf = buffer.For(len(in.In) + 256)
	}
}

// carriedBody is the body of an operation that a translator carries.
func carriedBody(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	a := tg.Carried()
	a.Body = src
	var err error
	up.sendBuf.B, tg.To.ContentType, err = tg.To.Carrier.EncodeRequest(up.sendBuf.B[:0], src, a)
	if err != nil {
		return nil, err
	}
	if tg.To.Carrier.Name() == provider.AnthropicMessages {
		up.sendBuf.B, _ = adapt(&tg.To.Target, tg.To.Op, provider.AnthropicMessages, tg.To.Model, up.sendBuf.B)
	}
	return up.sendBuf.B, tg.Loss.Err()
}

// rawBody changes a pass-through body only where a saved provider was named in
// the model.
func rawBody(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	if tg.Body.Slug == "" || tg.To.Saved == nil || tg.InPath() {
		return src, nil
	}
	return withModel(tg, up, src)
}

// foundOf is what the dialect's check found of a body; nil for what a config made
// of the client's.
func foundOf(in *body.Body, src []byte) *chat.Checked {
	if !in.IsOwn(src) {
		return nil
	}
	return in.Found()
}

// withModel writes the model into its place.
func withModel(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	w, err := tg.Body.WalkFor(src, &tg.Edited)
	if err != nil {
		return nil, err
	}
	up.modelJSON = wire.AppendJSONString(up.modelJSON[:0], tg.To.Model)
	roomToSend(tg.Body, up)
	up.sendBuf.B = wire.Splice(up.sendBuf.B[:0], src, body.SetModel(w, up.modelJSON))
	return up.sendBuf.B, nil
}

// spliced is the client's body with the model that was decided on, and with
// usage asked for in streams.
func spliced(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	w, err := tg.Body.WalkFor(src, &tg.Edited)
	if err != nil {
		return nil, err
	}
	if tg.Req.Route.Client != nil && (tg.To.Traits.MayExceed(src, foundOf(tg.Body, src)) || tg.To.Traits.NoThreads && chat.NamesThread(tg.Req.Route.Client, src)) {
		if err := within(tg, src); err != nil {
			return nil, err
		}
	}
	var edits [2]wire.Edit
	n := 0
	up.modelJSON = wire.AppendJSONString(up.modelJSON[:0], tg.To.Upstream)
	if tg.To.Upstream != "" && !tg.InPath() && !body.ModelIs(w, src, up.modelJSON) {
		edits[n] = body.SetModel(w, up.modelJSON)
		n++
	}
	up.injected = tg.Stream && !tg.WantUsage && tg.Req.Route.Client != nil && tg.To.AsksUsage()
	if up.injected {
		edits[n] = body.UsageEdit(w, src)
		n++
	}
	if n > 0 {
		roomToSend(tg.Body, up)
		up.sendBuf.B = wire.Splice(up.sendBuf.B[:0], src, edits[:n]...)
		src = up.sendBuf.B
	}
	adapted, dropped := adapt(&tg.To.Target, tg.To.Op, tg.To.DialectName(), tg.To.Model, src)
	for _, name := range dropped {
		tg.Loss.Add(name, "the host refuses it")
	}
	return marked(tg, adapted), tg.Loss.Err()
}

// marked is a body with markers for the provider's prompt cache, where the config asks for
// them.
func marked(tg *target.Target, body []byte) []byte {
	leaf := tg.To.Leaf
	if leaf == nil || leaf.PromptCache == nil || tg.To.DialectName() != provider.AnthropicMessages {
		return body
	}
	return claude.Mark(body, leaf.PromptCache.Hour)
}

// within refuses what the target is known not to do, in a body that is passed on
// as it is. One that cannot be decoded is the provider's to refuse.
func within(tg *target.Target, src []byte) error {
	r, err := tg.Req.Route.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	if err := r.RefuseThread(tg.To.Traits.NoThreads); err != nil {
		return err
	}
	traits := tg.To.Traits
	if traits.Schema == chat.SchemaInWords { // only a translation can put it in words
		traits.Schema = chat.SchemaNone
	}
	return chat.Refuse(tg.Req.Route.Client, r, &traits, &tg.Loss)
}

// translated decodes the request once and encodes it for the target.
func translated(relay *Relay, tg *target.Target, up *outbound, log *record.Log, src []byte) ([]byte, error) {
	r, err := tg.Decode(src)
	if err != nil {
		return nil, err
	}
	r.Model = tg.To.Upstream
	if tg.InPath() {
		r.Stream = tg.Stream
	}
	if err := target.ResolveItems(tg, r); err != nil {
		return nil, err
	}
	r.Renamed, r.Recall = nil, nil
	r.Fits = func(schema, value []byte) bool { return guard.Fits(tg.Req.Ctx, schema, value) }
	if tg.Strict() {
		r.Recall = tg.Recall
	}
	if tg.Req.Route.Verbatim {
		betas.Carry(tg.Req.Req.Header, tg.To.DialectName(), &tg.To.Traits, &tg.Loss)
	}
	err = withMediaBytes(relay, tg, up, log, r, func() (err error) {
		up.sendBuf.B, err = chat.Translate(up.sendBuf.B[:0], tg.Req.Route.Client, tg.To.Dialect, r, &tg.To.Traits, &tg.Loss)
		return err
	})
	if err != nil {
		return nil, err
	}
	if tg.To.Dialect.Name() == provider.AnthropicMessages {
		// Some hosts of these models want what the address says removed from the body.
		up.sendBuf.B, _ = adapt(&tg.To.Target, tg.To.Op, provider.AnthropicMessages, tg.To.Model, up.sendBuf.B)
	}
	if err := tg.Loss.Err(); err != nil {
		return nil, err
	}
	up.sendBuf.B = marked(tg, up.sendBuf.B)
	return up.sendBuf.B, nil
}

// formBody is the form for the target, when it is held whole: nil otherwise.
func formBody(tg *target.Target, up *outbound) []byte {
	if !tg.Body.Form.Whole() {
		return nil
	}
	if tg.To.Upstream == "" || tg.Body.Form.Is("model", tg.To.Upstream) {
		return tg.Body.In
	}
	up.sendBuf.B = tg.Body.Form.Set(up.sendBuf.B[:0], "model", tg.To.Upstream)
	return up.sendBuf.B
}

// formStream is the body of a long form; length is -1 when it is not known.
func formStream(tg *target.Target, up *outbound) (rest io.ReadCloser, length int64) {
	up.upload, length = tg.Body.Form.Stream(tg.Req.Req.Body, tg.To.Upstream, tg.Req.Req.ContentLength, tg.Req.Route.BodyLimit(), body.Unreadable)
	return up.upload, length
}
