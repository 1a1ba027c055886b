package inbound

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/units"
	"gateway/shared/wire"
)

// walkBody finds what the walk needs in a unified body and checks its bounds.
func (b reader) walkBody() error {
	err := wire.CheckUTF8(b.body.In)
	if err != nil {
		return err
	}
	b.nameDeployment()
	if b.body.Req.Route.Client != nil {
		// The dialect's check walks the body: what it found is found.
		b.body.checked.ByTarget = true
		if err = b.body.Req.Route.Client.Check(b.body.In, &b.body.checked); err == nil {
			b.takeWalk()
		}
	} else if err = bodyKeys.Walk(b.body.In, &b.body.walk); err == nil && b.body.Req.Route.Check != nil {
		err = b.body.Req.Route.Check(b.body.In)
	}
	if err != nil {
		return err
	}
	if err := b.readModel(true); err != nil {
		return err
	}
	if b.body.Model == "" && b.body.Req.Route.DefaultModel != "" {
		b.body.Model = b.body.Req.Route.DefaultModel
	}
	if v := b.body.walk.Spans[keyStream]; v.Present(b.body.In) {
		if _, err = wire.ScanBool(v.Of(b.body.In), "stream"); err != nil {
			return err
		}
	}
	b.body.Own = demandsIn(b.body.Req.Route, b.body.In, &b.body.walk, b.body.Req.Route.Demand)
	return nil
}

// takeWalk takes over what the dialect's check found of the members that are
// read here. Those that the dialect does not know do not count.
func (b reader) takeWalk() {
	from, w := &b.body.checked.Walk, &b.body.walk
	w.ObjectStart, w.ObjectEnd, w.Empty = from.ObjectStart, from.ObjectEnd, from.Empty
	w.Spans, w.Keys = append(w.Spans[:0], noSpans[:]...), append(w.Keys[:0], noSpans[:]...)
	for i, at := range b.body.checked.Keys.Places(bodyKeys) {
		if at >= 0 {
			w.Spans[i], w.Keys[i] = from.Spans[at], from.Keys[at]
		}
	}
}

var noSpans [keySpeed + 1]wire.Span

// walkRaw reads from a pass-through body only what routing and accounting need. What is no
// well-formed object is left to the provider to refuse; an object in which another reader
// could find other values is refused here.
func (b reader) walkRaw() error {
	if wire.KindOf(bytes.TrimLeft(b.body.In, " \t\r\n")) == wire.KindObject {
		if err := wire.CheckUTF8(b.body.In); err != nil {
			return err
		}
	}
	if len(b.body.In) == 0 || bodyKeys.Walk(b.body.In, &b.body.walk) != nil {
		b.body.walk.Spans = b.body.walk.Spans[:0]
		b.body.Unread = len(b.body.In) > 0
		return nil
	}
	if b.readModel(false) != nil {
		b.body.Model = ""
	}
	like, demand := b.body.Like(), b.body.Req.Route.Demand
	if like != nil {
		demand = like.Demand
	}
	b.body.Own = demandsIn(b.body.Req.Route, b.body.In, &b.body.walk, demand)
	if like == nil && b.body.Req.Req.Method == http.MethodPost {
		SetUnits(&b.body.Own, units.Demand(b.body.RawPath(), b.body.In, int64(len(b.body.In))))
	}
	if like != nil && like.NoOutput {
		b.body.Own.OutBound = 0
	}
	return nil
}

// readModel splits "@slug/model".
func (b reader) readModel(required bool) error {
	if b.body.Req.Route.InPath {
		b.body.Model = b.body.ID // without its @slug/
		return nil
	}
	v := b.body.walk.Spans[keyModel]
	if !v.Present(b.body.In) {
		return nil // the target may set it; dispatch refuses a body without one
	}
	name, err := wire.ScanString(v.Of(b.body.In), "model")
	if err != nil {
		return err
	}
	if required && name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return b.splitModel(name, required)
}

// splitModel takes a model apart that may name its saved provider.
func (b reader) splitModel(name string, required bool) error {
	if rest, ok := strings.CutPrefix(name, "@"); ok {
		slug, model, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || model == "" {
			if required {
				return fault.Invalid("model", "a saved provider is named as @slug/model")
			}
			return nil
		}
		b.body.Slug, name = slug, model
	}
	if len(name) > MaxModel {
		return fault.Invalid("model", "must have at most %d bytes", MaxModel)
	}
	b.body.Model = name
	return nil
}

// mergeMetadata joins metadata: workspace over key over request; the body's user
// fills _user when nothing else does.
func (b reader) mergeMetadata() {
	m := b.body.Req.Ask.Metadata
	keyed, spaced := b.body.Req.Who.Defaults.Metadata, b.body.Req.WS.Defaults.Metadata
	var user string
	if len(b.body.walk.Spans) > keyUser && b.body.walk.Spans[keyUser].Present(b.body.In) {
		user, _ = wire.ScanString(b.body.walk.Spans[keyUser].Of(b.body.In), "user")
	}
	if m == nil && len(keyed) == 0 && len(spaced) == 0 && user == "" && b.body.Req.Who.UserID == "" && b.body.Req.Who.EndUser == "" {
		return
	}
	if m == nil {
		if b.body.merged == nil {
			b.body.merged = make(map[string]string)
		}
		m = b.body.merged
	}
	for k, v := range keyed {
		m[k] = v
	}
	for k, v := range spaced {
		m[k] = v
	}
	if _, have := m["_user"]; !have {
		if user == "" {
			user = cmp.Or(b.body.Req.Who.EndUser, b.body.Req.Who.UserID)
		}
		if user != "" {
			m["_user"] = clipRunes(user, 128)
		}
	}
	b.body.Metadata = m
}
