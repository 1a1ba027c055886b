package target

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/routes"
)

// formOf returns the form in the request, nil if it has none. A passed-through form is read only
// with a credential that several workspaces use.
func formOf(tg *Target) (*form.Form, error) {
	if tg.Body.Form != nil || !tg.To.Wall.Shared {
		return tg.Body.Form, nil
	}
	return passedForm(tg)
}

// fieldsFirst ends the request at a field after the first file of a form that is not buffered
// completely.
func fieldsFirst(tg *Target, f *form.Form) {
	if f.Complete() {
		return
	}
	rest := &tg.Req.Req.Body
	if body, ok := tg.Req.Req.Body.(*resumed); ok {
		rest = &body.rest
	}
	if _, done := (*rest).(*form.FieldsFirst); !done {
		*rest = f.FieldsFirst(*rest)
	}
}

// BodyFault returns the fault of the rest of a form; nil if there is none.
func (tg *Target) BodyFault() *fault.Fault {
	body := tg.Req.Req.Body
	if r, ok := body.(*resumed); ok {
		body = r.rest
	}
	if r, ok := body.(*form.FieldsFirst); ok {
		return r.Fault()
	}
	return nil
}

// passedForm reads the form of a passed-through request, nil if it has none. The bytes read
// precede the rest of the body again.
func passedForm(tg *Target) (*form.Form, error) {
	if tg.To.form != nil || tg.Req.Route.Shape != routes.Raw || tg.Body.In != nil || !tg.Body.Multipart() ||
		tg.Req.Req.Body == nil || tg.Req.Req.Body == http.NoBody || tg.Req.Req.ContentLength == 0 {
		return tg.To.form, nil
	}
	boundary, err := form.BoundaryOf(admission.SingleHeader(tg.Req.Req.Header, "Content-Type"))
	if err != nil {
		return nil, err
	}
	if room := form.FormMemory(tg.Req.Req.ContentLength); room > egress.Uncounted {
		if err := tg.Req.Lease.Take(tg.Req.Ctx, room); err != nil {
			return nil, err
		}
	}
	f, err := form.ReadForm(tg.Req.Req.Body, boundary, tg.Req.Req.ContentLength, nil)
	var long form.TooLong
	var broken form.ReadError
	switch {
	case errors.As(err, &long):
		return nil, formTooLong()
	case errors.As(err, &broken):
		return nil, body.Unreadable(broken.Err)
	case err != nil:
		return nil, err
	}
	tg.To.form = f
	tg.Req.Req.Body = &resumed{bytes.NewReader(f.Head()), tg.Req.Req.Body}
	return f, nil
}

// resumed is a body that was partly read. It implements io.ReadCloser.
type resumed struct {
	head *bytes.Reader
	rest io.ReadCloser
}

// Read implements io.Reader.
func (r *resumed) Read(p []byte) (int, error) {
	if r.head.Len() > 0 {
		return r.head.Read(p)
	}
	return r.rest.Read(p)
}

// Close implements io.Closer.
func (r *resumed) Close() error { return r.rest.Close() }

func formTooLong() error {
	return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes: the credential is shared by several workspaces, and the objects that a longer form names cannot be checked; send ids as JSON, or upload the file at /files", form.MaxReplay)
}
