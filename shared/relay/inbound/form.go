package inbound

import (
	"errors"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/form"
	"gateway/shared/relay/routes"
)

// readForm takes a multipart body: whole into memory when it is small, else its
// fields up to the first file, the rest left in the request.
func (b reader) readForm() error {
	boundary, err := form.BoundaryOf(asked.One(b.body.Req.Req.Header, "Content-Type"))
	if err != nil {
		return err
	}
	limit, length := b.body.Req.Route.BodyLimit(), b.body.Req.Req.ContentLength
	if length > limit {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	}
	room := form.Room(length)
	if room > egress.Uncounted {
		if err := b.body.Req.Lease.Take(b.body.Req.Ctx, room); err != nil {
			return err
		}
	}
	b.body.inBuf = buffer.For(int(min(room, buffer.Most)))
	f, err := form.Read(b.body.Req.Req.Body, boundary, length, b.body.inBuf.B)
	if err != nil {
		return unreadForm(err)
	}
	if head := f.Head(); cap(head) != cap(b.body.inBuf.B) {
		b.body.inBuf.Free()
		b.body.inBuf = &buffer.Buffer{B: head}
	}
	b.body.Form = f
	if f.Whole() {
		b.body.In = f.Head()
		b.body.Size = int64(len(b.body.In))
	} else {
		b.body.inBuf = nil // the transport may read its bytes after the request is over
	}
	if !b.body.Req.Route.NoOutput {
		b.body.Own.OutBound, b.body.Own.OutAssumed = routes.DefaultReserveOutput, true
	}
	return b.takeForm()
}

// unreadForm says why a form could not be read.
func unreadForm(err error) error {
	var long form.TooLong
	var broken form.ReadError
	switch {
	case errors.As(err, &long):
		return fault.Newf(fault.BodyTooLarge, "body", "has more than %d bytes of fields before its first file", int64(long))
	case errors.As(err, &broken):
		return Unreadable(broken.Err)
	}
	return err
}

// takeForm takes over from the fields what routing and accounting need, and
// checks their bounds.
func (b reader) takeForm() error {
	if v, ok := b.body.Form.Get("stream"); ok {
		if v != "true" && v != "false" {
			return fault.Invalid("stream", `stream must be "true" or "false"`)
		}
		b.body.Own.Stream = v == "true"
	}
	if b.body.Req.Route.CheckForm != nil {
		if err := b.body.Req.Route.CheckForm(b.body.Form); err != nil {
			return err
		}
	}
	if b.body.Req.Route.Demand != nil {
		field := func(name string) string {
			v, _ := b.body.Form.Get(name)
			return v
		}
		b.body.Own.Wanted = b.body.Req.Route.Demand(field, max(b.body.Req.Req.ContentLength, int64(len(b.body.Form.Head()))))
	}
	if b.body.Req.Route.NoModel {
		return nil
	}
	name, ok := b.body.Form.Get("model")
	if name == "" {
		if taken, err := b.formDeployment(); taken {
			return err
		}
	}
	if !ok {
		if b.body.Req.Route.DefaultModel != "" {
			name = b.body.Req.Route.DefaultModel
		} else if b.body.Form.Whole() {
			return fault.Invalid("model", "model is required")
		}
		b.body.Model = name
		b.body.Unread = !b.body.Form.Whole() && name == ""
		return nil
	}
	if name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return b.splitModel(name, true)
}
