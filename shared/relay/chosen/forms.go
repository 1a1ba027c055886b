package chosen

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/form"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/routes"
)

// formOf returns the form that the request carries, nil if it carries none. A form that is passed
// through is read only under a credential that other workspaces use; what was read precedes
// the rest of the body again.
func formOf(o *Wall) (*form.Form, error) {
	if o.Form != nil || o.Route.Shape != routes.Raw || !o.To.Wall.Shared || o.In != nil || !o.Multipart() ||
		o.Req.Body == nil || o.Req.Body == http.NoBody || o.Req.ContentLength == 0 {
		return o.Form, nil
	}
	boundary, err := form.BoundaryOf(asked.One(o.Req.Header, "Content-Type"))
	if err != nil {
		return nil, err
	}
	if room := form.Room(o.Req.ContentLength); room > egress.Uncounted {
		if err := o.Lease.Take(o.Ctx, room); err != nil {
			return nil, err
		}
	}
	f, err := form.Read(o.Req.Body, boundary, o.Req.ContentLength, nil)
	var long form.TooLong
	var broken form.ReadError
	switch {
	case errors.As(err, &long):
		return nil, formTooLong()
	case errors.As(err, &broken):
		return nil, inbound.Unreadable(broken.Err)
	case err != nil:
		return nil, err
	}
	o.Req.Body = &resumed{io.MultiReader(bytes.NewReader(f.Head()), o.Req.Body), o.Req.Body}
	return f, nil
}

// resumed is a body whose beginning was read. It implements io.ReadCloser.
type resumed struct {
	io.Reader
	io.Closer
}

func formTooLong() error {
	return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes: the credential is shared by several workspaces, and the objects that a longer form names cannot be checked; send ids as JSON, or upload the file at /files", form.MaxReplay)
}
