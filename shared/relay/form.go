package relay

import (
	"errors"
	"io"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/form"
)

// Form is what a route's check may look at: the fields that were read.
type Form = *form.Form

// readForm takes a multipart body: whole into memory when it is small, else its
// fields up to the first file, the rest left in the request.
func (c *call) readForm() error {
	boundary, err := form.BoundaryOf(one(c.req.Header, "Content-Type"))
	if err != nil {
		return err
	}
	limit, length := c.bodyLimit(), c.req.ContentLength
	if length > limit {
		return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", limit)
	}
	room := form.Room(length)
	if room > egress.Uncounted {
		if err := c.lease.Take(c.ctx, room); err != nil {
			return err
		}
	}
	c.inBuf = newBufferFor(int(min(room, keepBuffer)))
	f, err := form.Read(c.req.Body, boundary, length, c.inBuf.b)
	if err != nil {
		return unreadForm(err)
	}
	if head := f.Head(); cap(head) != cap(c.inBuf.b) {
		c.inBuf.free()
		c.inBuf = &buffer{b: head}
	}
	c.form = f
	if f.Whole() {
		c.in = f.Head()
		c.rec.RequestBytes = int64(len(c.in))
	} else {
		c.inBuf = nil // the transport may read its bytes after the request is over
	}
	if !c.rt.NoOutput {
		c.outBound, c.outAssumed = defaultReserveOutput, true
	}
	return c.takeForm()
}

// unreadForm says why a form could not be read.
func unreadForm(err error) error {
	var long form.TooLong
	var broken form.ReadError
	switch {
	case errors.As(err, &long):
		return fault.Newf(fault.BodyTooLarge, "body", "has more than %d bytes of fields before its first file", int64(long))
	case errors.As(err, &broken):
		return unreadable(broken.Err)
	}
	return err
}

// takeForm takes over from the fields what routing and accounting need, and
// checks their bounds.
func (c *call) takeForm() error {
	if v, ok := c.form.Get("stream"); ok {
		if v != "true" && v != "false" {
			return fault.Invalid("stream", `stream must be "true" or "false"`)
		}
		c.stream, c.rec.Stream = v == "true", v == "true"
	}
	if c.rt.CheckForm != nil {
		if err := c.rt.CheckForm(c.form); err != nil {
			return err
		}
	}
	if c.rt.Demand != nil {
		c.wanted = c.rt.Demand(c.text, max(c.req.ContentLength, int64(len(c.form.Head()))))
	}
	if c.rt.NoModel {
		return nil
	}
	name, ok := c.form.Get("model")
	if !ok {
		if c.rt.DefaultModel != "" {
			name = c.rt.DefaultModel
		} else if c.form.Whole() {
			return fault.Invalid("model", "model is required")
		}
		c.model, c.rec.RequestModel = name, name
		c.unread = !c.form.Whole() && name == ""
		return nil
	}
	if name == "" {
		return fault.Invalid("model", "must not be empty")
	}
	return c.splitModel(name, true)
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
