package form

import (
	"io"
	"mime/multipart"
	"strings"

	"gateway/shared/fault"
)

// FormFile is the only file of a form that is read as a stream. Read returns the file's bytes.
type FormFile struct {
	Name   string // of the file; "" when it has none
	parts  *multipart.Reader
	part   *multipart.Part
	fields map[string]string
	broken func(error) error
}

// OpenFormFile reads the fields before the file. broken translates a read error.
func OpenFormFile(src io.Reader, boundary string, broken func(error) error) (*FormFile, error) {
	f := &FormFile{parts: multipart.NewReader(src, boundary), fields: make(map[string]string), broken: broken}
	var err error
	if f.part, err = f.next(); err != nil {
		return nil, err
	}
	if f.part == nil {
		return nil, fault.Invalid("file", "file is required: the file to upload")
	}
	f.Name = f.part.FileName()
	return f, nil
}

// Rest reads the form after the file and returns all fields.
func (f *FormFile) Rest() (map[string]string, error) {
	more, err := f.next()
	if err == nil && more != nil {
		err = fault.Invalid("file", "file must be the only file of the form")
	}
	return f.fields, err
}

// Read implements io.Reader.
func (f *FormFile) Read(b []byte) (int, error) {
	n, err := f.part.Read(b)
	if err != nil && err != io.EOF {
		err = f.broken(err)
	}
	return n, err
}

// next reads fields until a file starts; nil at the end of the form.
func (f *FormFile) next() (*multipart.Part, error) {
	for range MaxParts {
		part, err := f.parts.NextRawPart()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, f.broken(err)
		}
		if _, file, err := PartName([]byte("Content-Disposition: " + part.Header.Get("Content-Disposition"))); err == nil && file {
			return part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, MaxHead+1))
		if err != nil {
			return nil, f.broken(err)
		}
		if len(text) > MaxHead {
			return nil, fault.Newf(fault.BodyTooLarge, part.FormName(), "must have at most %d bytes", MaxHead)
		}
		if _, twice := f.fields[part.FormName()]; twice && !strings.HasSuffix(part.FormName(), "[]") {
			return nil, fault.Invalid(part.FormName(), "%s occurs twice in the form", part.FormName())
		}
		f.fields[part.FormName()] = string(text)
	}
	return nil, fault.Invalid("body", "has more than %d parts", MaxParts)
}
