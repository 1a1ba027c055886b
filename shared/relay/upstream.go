package relay

import (
	"bytes"
	"io"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/claude"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/relay/upstream"
	"gateway/shared/wire"
)

// upstreamBody returns the body for the target: the client's own, spliced, or its translation.
// It is nil if the body is streamed.
func upstreamBody(r *Relay, tg *target.Target, up *outbound, log *record.Log) ([]byte, error) {
	if len(tg.Body.In) == 0 {
		return nil, nil
	}
	if up.sending.Busy() {
		up.sendBuf = nil // the previous target may still read it
	}
	if tg.Body.Form != nil {
		allocateBody(tg.Body, up)
		if !tg.Choice.Leaf.IsUnchanged() {
			tg.Loss.Add("override_params", "a config cannot change the fields of a form")
		}
		return formBody(tg, up), nil
	}
	src := tg.Body.In
	if tg.Choice.Body != nil {
		src = tg.Choice.Body
	}
	src, lost := tg.Unmark(src)
	for _, l := range lost {
		tg.Loss.Add(l.Path, l.Reason)
	}
	if err := tg.Loss.Err(); err != nil && len(lost) > 0 {
		return nil, err
	}
	if tg.Req.Route.BodyMode == routes.Raw {
		return rawBody(tg, up, src)
	}
	switch {
	case tg.SameDialect():
		src, err := mediaInline(r, tg, up, log, src)
		if err != nil {
			return nil, err
		}
		return spliced(tg, up, src)
	case tg.Choice.Translator != nil:
		allocateBody(tg.Body, up)
		return carriedBody(tg, up, src)
	}
	allocateBody(tg.Body, up)
	return translated(r, tg, up, log, src)
}

// allocateBody allocates the buffer for a body that differs from the client's. It has space for a
// longer model and for requesting usage.
func allocateBody(in *body.Body, up *outbound) {
	if up.sendBuf == nil {
		up.sendBuf = buffer.For(len(in.In) + 256)
	}
}

// carriedBody returns the body of an operation that a translator handles.
func carriedBody(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	a := tg.TranslatorRequest()
	a.Body = src
	var err error
	up.sendBuf.B, tg.Choice.ContentType, err = tg.Choice.Translator.EncodeRequest(up.sendBuf.B[:0], src, a)
	if err != nil {
		return nil, err
	}
	if tg.Choice.Translator.Name() == provider.AnthropicMessages {
		up.sendBuf.B, _ = adapt(&tg.Choice.Target, tg.Choice.Op, provider.AnthropicMessages, tg.Choice.Model, up.sendBuf.B)
	}
	return up.sendBuf.B, tg.Loss.Err()
}

// rawBody changes a pass-through body only if a saved provider was named in the model.
func rawBody(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	if tg.Body.Slug == "" || tg.Choice.Saved == nil || tg.InPath() {
		return src, nil
	}
	return withModel(tg, up, src)
}

// foundOf returns the result of the dialect's check of a body; nil for a body that a config has
// changed.
func foundOf(in *body.Body, src []byte) *chat.Checked {
	if !in.IsUnchanged(src) {
		return nil
	}
	return in.Found()
}

// withModel replaces the model.
func withModel(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	w, err := tg.Body.ScanFor(src, &tg.Edited)
	if err != nil {
		return nil, err
	}
	up.modelJSON = wire.AppendJSONString(up.modelJSON[:0], tg.Choice.Model)
	allocateBody(tg.Body, up)
	up.sendBuf.B = wire.Splice(up.sendBuf.B[:0], src, body.SetModel(w, up.modelJSON))
	return up.sendBuf.B, nil
}

// spliced returns the client's body with the resolved model, and with usage requested in
// streams.
func spliced(tg *target.Target, up *outbound, src []byte) ([]byte, error) {
	w, err := tg.Body.ScanFor(src, &tg.Edited)
	if err != nil {
		return nil, err
	}
	if tg.Req.Route.Client != nil && (tg.Choice.Traits.MayExceed(src, foundOf(tg.Body, src)) || tg.Choice.Traits.NoThreads && chat.NamesThread(tg.Req.Route.Client, src)) {
		if err := within(tg, src); err != nil {
			return nil, err
		}
	}
	var edits [2]wire.Edit
	n := 0
	up.modelJSON = wire.AppendJSONString(up.modelJSON[:0], tg.Choice.Upstream)
	if tg.Choice.Upstream != "" && !tg.InPath() && !body.ModelIs(w, src, up.modelJSON) {
		edits[n] = body.SetModel(w, up.modelJSON)
		n++
	}
	up.injected = tg.Stream && !tg.WantUsage && tg.Req.Route.Client != nil && tg.Choice.RequestsUsage()
	if up.injected {
		edits[n] = body.UsageEdit(w, src)
		n++
	}
	if n > 0 {
		allocateBody(tg.Body, up)
		up.sendBuf.B = wire.Splice(up.sendBuf.B[:0], src, edits[:n]...)
		src = up.sendBuf.B
	}
	src = target.Restore(tg, src)
	adapted, dropped := adapt(&tg.Choice.Target, tg.Choice.Op, tg.Choice.DialectName(), tg.Choice.Model, src)
	for _, name := range dropped {
		tg.Loss.Add(name, "the host rejects it")
	}
	return marked(tg, adapted), tg.Loss.Err()
}

// marked returns a body with markers for the provider's prompt cache, if the config enables
// them.
func marked(tg *target.Target, body []byte) []byte {
	leaf := tg.Choice.Leaf
	if leaf == nil || leaf.PromptCache == nil || tg.Choice.DialectName() != provider.AnthropicMessages {
		return body
	}
	return claude.AddCacheMarkers(body, leaf.PromptCache.Hour)
}

// within rejects features that the target is known not to support, in a body that is forwarded
// unchanged. One that cannot be decoded is left to the provider to reject.
func within(tg *target.Target, src []byte) error {
	r, err := tg.Req.Route.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	if err := r.ThreadError(tg.Choice.Traits.NoThreads); err != nil {
		return err
	}
	traits := tg.Choice.Traits
	if traits.Schema == chat.SchemaInWords { // only a translation can describe it in text
		traits.Schema = chat.SchemaNone
	}
	return chat.CheckSupport(tg.Req.Route.Client, r, &traits, &tg.Loss)
}

// translated decodes the request once and encodes it for the target.
func translated(relay *Relay, tg *target.Target, up *outbound, log *record.Log, src []byte) ([]byte, error) {
	r, err := tg.Decode(src)
	if err != nil {
		return nil, err
	}
	r.Model = tg.Choice.Upstream
	if tg.InPath() {
		r.Stream = tg.Stream
	}
	r.ToolNames, r.LoadReasoning = nil, nil
	r.MatchSchema = func(schema, value []byte) bool { return guard.MatchSchema(tg.Req.Ctx, schema, value) }
	if tg.StrictOpenAI() {
		r.LoadReasoning = tg.LoadReasoning
	}
	if tg.Req.Route.Verbatim {
		upstream.CarryBetas(tg.Req.Req.Header, tg.Choice.DialectName(), &tg.Choice.Traits, &tg.Loss)
	}
	err = withMediaBytes(relay, tg, up, log, r, func() (err error) {
		up.sendBuf.B, err = chat.Translate(up.sendBuf.B[:0], tg.Req.Route.Client, tg.Choice.Dialect, r, &tg.Choice.Traits, &tg.Loss)
		return err
	})
	if err != nil {
		return nil, err
	}
	if tg.Choice.Dialect.Name() == provider.AnthropicMessages {
		// Some hosts of these models require that fields expressed by the URL are removed from
		// the body.
		up.sendBuf.B, _ = adapt(&tg.Choice.Target, tg.Choice.Op, provider.AnthropicMessages, tg.Choice.Model, up.sendBuf.B)
	}
	if err := tg.Loss.Err(); err != nil {
		return nil, err
	}
	up.sendBuf.B = marked(tg, up.sendBuf.B)
	return up.sendBuf.B, nil
}

// formBody returns the form for the target if it is buffered completely, nil otherwise.
func formBody(tg *target.Target, up *outbound) []byte {
	if !tg.Body.Form.Complete() {
		return nil
	}
	if tg.Choice.Upstream == "" || tg.Body.Form.Is("model", tg.Choice.Upstream) {
		return tg.Body.In
	}
	up.sendBuf.B = tg.Body.Form.Set(up.sendBuf.B[:0], "model", tg.Choice.Upstream)
	return up.sendBuf.B
}

// formStream returns the body of a long form; length is -1 if it is unknown.
func formStream(tg *target.Target, up *outbound) (rest io.ReadCloser, length int64) {
	up.upload, length = tg.Body.Form.Stream(tg.Req.Req.Body, tg.Choice.Upstream, tg.Req.Req.ContentLength, tg.Req.Route.BodyLimit(), body.Unreadable)
	return up.upload, length
}

// adapt is Target.Adapt, without the citations of other providers in a Messages body, which no
// host of Claude accepts. dropped are the paths of the omitted fields. body is a valid JSON
// object in dialect.
func adapt(t *provider.Target, op provider.Operation, dialect, model string, body []byte) (adapted []byte, dropped []string) {
	var theirs []string
	if dialect == provider.AnthropicMessages {
		body, theirs = citation.Unsigned(body)
	}
	adapted, dropped = t.Adapt(op, dialect, model, body)
	return adapted, append(theirs, dropped...)
}

// withMediaBytes calls encode while the web addresses of r are replaced by the fetched
// bytes. Afterwards r is as before, for targets that read addresses.
func withMediaBytes(relay *Relay, tg *target.Target, up *outbound, log *record.Log, r *chat.Request, encode func() error) error {
	wanted := body.MediaIn(r, &tg.Choice.Traits)
	if len(wanted) == 0 {
		return encode()
	}
	if err := fetchMedia(relay, tg.Req, up, log, wanted); err != nil {
		return inWordsOf(tg.Req.Route.Client, err)
	}
	addressed := r.Messages
	r.Messages = up.media.Inlined(addressed, &tg.Choice.Traits)
	defer func() { r.Messages = addressed }()
	return encode()
}

// fetchMedia fetches the addresses that are not there yet. The error is that of
// the first part that failed.
func fetchMedia(r *Relay, q *admission.Request, up *outbound, log *record.Log, wanted []body.MediaURLs) error {
	missing, err := up.media.Require(wanted, q.DryRun)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		from := r.Now()
		f := body.NewMediaFetcher(r.Transport, r.Egress.WithoutTrusted(), q.Lease)
		f.FetchAll(admission.ClientContext(q), &up.media, missing)
		log.Wait(r.Now().Sub(from))
	}
	return up.media.Failure(wanted)
}

// mediaInline returns the body for a host with the client's dialect that accepts only bytes:
// src, if it contains no web address.
func mediaInline(relay *Relay, tg *target.Target, up *outbound, log *record.Log, src []byte) ([]byte, error) {
	if tg.Req.Route.Client == nil || !tg.Choice.Traits.NeedsMediaBytes || !bytes.Contains(src, []byte("http")) {
		return src, nil
	}
	r, err := tg.Decode(src)
	if err != nil {
		return nil, err
	}
	if len(body.MediaIn(r, &tg.Choice.Traits)) == 0 {
		return src, nil
	}
	var out []byte
	err = withMediaBytes(relay, tg, up, log, r, func() (err error) {
		out, err = chat.Translate(nil, tg.Req.Route.Client, tg.Req.Route.Client, r, &tg.Choice.Traits, &tg.Loss)
		return err
	})
	return out, err
}

// inWordsOf names the part of an error as client's own bodies do.
func inWordsOf(client chat.Dialect, err error) error {
	n, ok := client.(chat.Named)
	if !ok {
		return err
	}
	f := fault.From(err)
	own := n.ClientPath(f.Field)
	if own == f.Field {
		return err
	}
	g := *f
	g.Field, g.Message = own, strings.Replace(f.Message, f.Field, own, 1)
	return &g
}
