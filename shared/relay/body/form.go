package body

import (
	"errors"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/form"
	"gateway/shared/relay/routes"
)

// readForm reads a multipart body: completely into memory if it is small, else its fields up to
// the first file, with the rest left in the request.
func readForm(b *Body) error {
	boundary, err := form.BoundaryOf(admission.SingleHeader(b.Req.Req.Header, "Content-Type"))
	if err != nil {
		return err
	}
	limit, length := b.Req.Route.BodyLimit(), b.Req.Req.ContentLength
	if length > limit {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	}
	room := form.FormMemory(length)
	if room > egress.Uncounted {
		if err := b.Req.Lease.Take(b.Req.Ctx, room); err != nil {
			return err
		}
	}
	b.inBuf = buffer.For(int(min(room, buffer.Most)))
	f, err := form.ReadForm(b.Req.Req.Body, boundary, length, b.inBuf.B)
	if err != nil {
		return unreadForm(err)
	}
	if head := f.Head(); cap(head) != cap(b.inBuf.B) {
		b.inBuf.Free()
		b.inBuf = &buffer.Buffer{B: head}
	}
	b.Form = f
	if f.Complete() {
		b.In = f.Head()
		b.Size = int64(len(b.In))
	} else {
		b.inBuf = nil // the transport may read its bytes after the request is over
	}
	if !b.Req.Route.NoOutput {
		b.Own.OutBound, b.Own.OutAssumed = routes.DefaultReserveOutput, true
	}
	return takeForm(b)
}

// unreadForm returns the fault for a form that could not be read.
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

// takeForm copies the fields that routing and accounting need, and checks their limits.
func takeForm(b *Body) error {
	if v, ok := b.Form.Get("stream"); ok {
		if v != "true" && v != "false" {
			return fault.Invalid("stream", `stream must be "true" or "false"`)
		}
		b.Own.Stream = v == "true"
	}
	if b.Req.Route.CheckForm != nil {
		if err := b.Req.Route.CheckForm(b.Form); err != nil {
			return err
		}
	}
	if b.Req.Route.Demand != nil {
		field := func(name string) string {
			v, _ := b.Form.Get(name)
			return v
		}
		b.Own.Wanted = b.Req.Route.Demand(field, max(b.Req.Req.ContentLength, int64(len(b.Form.Head()))))
	}
	if b.Req.Route.NoModel {
		return nil
	}
	name, ok := b.Form.Get("model")
	if name == "" {
		if taken, err := formDeployment(b); taken {
			return err
		}
	}
	if !ok {
		if b.Req.Route.DefaultModel != "" {
			name = b.Req.Route.DefaultModel
		} else if b.Form.Complete() {
			return fault.Invalid("model", "model is required")
		}
		b.Model = name
		b.Unread = !b.Form.Complete() && name == ""
		return nil
	}
	if name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return splitModel(b, name, true)
}
