package form

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func part(name, file, value string) string {
	if file != "" {
		file = `; filename="` + file + `"`
	}
	return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"" + file + "\r\n\r\n" + value + "\r\n"
}

func TestFormsAreRead(t *testing.T) {
	text := part("model", "", "m") + part("empty", "", "") + part("many[]", "", "1") + part("many[]", "", "2") + part("file", "a.mp3", "sou\r\n-nd") + part("late", "", "after") + "--b--\r\n"
	f := &Form{boundary: "b", head: []byte(text), whole: true}
	if err := f.parse(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"model": "m", "empty": "", "many[]": "1", "late": "after"} {
		if got, ok := f.Get(name); !ok || got != want {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
	if !f.HasFile("file") || f.HasFile("model") {
		t.Errorf("files %v", f.files)
	}
	if got := string(f.Set(nil, "model", "other")); got != strings.Replace(text, "\r\n\r\nm\r\n", "\r\n\r\nother\r\n", 1) {
		t.Errorf("set: %q", got)
	}
	if got := string(f.Set(nil, "new", "n")); got != part("new", "", "n")+text {
		t.Errorf("added: %q", got)
	}
	// Incomplete: the part after the first file is not read.
	f = &Form{boundary: "b", head: []byte(text)}
	if _, late := f.Get("late"); f.parse() != nil || late {
		t.Error("a field behind the file was read")
	}
	for cut := range len(part("model", "", "m")) {
		f := &Form{boundary: "b", head: []byte(text[:cut])}
		if err := f.parse(); !errors.Is(err, errMore) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		f.whole = true
		if err := f.parse(); err == nil || errors.Is(err, errMore) {
			t.Errorf("whole, cut at %d: %v", cut, err)
		}
	}
}

func TestHeadersThatOthersReadOtherwiseAreRefused(t *testing.T) {
	for _, head := range []string{
		"Content-Disposition: form-data; name=\"model\"\n", "X: y\nContent-Disposition: form-data; name=\"model\"", "X: y\rContent-Disposition: form-data; name=\"model\"",
		"Content-Disposition: form-data; name=\"model\";\r\n filename=\"a\"", "Content-Disposition: form-data;\r\n\tname=\"model\"",
	} {
		f := &Form{boundary: "b", head: []byte("--b\r\n" + head + "\r\n\r\nx\r\n--b--"), whole: true}
		if err := f.parse(); err == nil || !strings.Contains(err.Error(), "CRLF") {
			t.Errorf("%q: %v", head, err)
		}
	}
}

func TestManyPartsAreRefused(t *testing.T) {
	f := &Form{boundary: "b", head: []byte(strings.Repeat(part("x[]", "", "1"), MaxParts+1) + "--b--"), whole: true}
	if err := f.parse(); err == nil || !strings.Contains(err.Error(), "parts") {
		t.Error(err)
	}
}

func TestAnUploadGivesNothingOfACutEnd(t *testing.T) {
	body := part("file", "a", strings.Repeat("x", 5000)) + "--b--\r\n"
	for _, c := range []struct {
		name   string
		sent   string
		length int64
		limit  int64
		bad    bool
	}{
		{"whole", body, int64(len(body)), 1 << 20, false},
		{"whole, not announced", body, -1, 1 << 20, false},
		{"cut", body[:len(body)-9], int64(len(body) - 9), 1 << 20, true},
		{"cut, not announced", body[:len(body)-9], -1, 1 << 20, true},
		{"shorter than announced", body[:3000], int64(len(body)), 1 << 20, true},
		{"too long", body, -1, 4000, true},
	} {
		u := &Upload{unreadable: func(err error) *fault.Fault { return fault.From(err) }, src: io.NopCloser(strings.NewReader(c.sent)), left: c.length, remaining: c.limit, limit: c.limit, closing: []byte("--b--")}
		got, err := io.ReadAll(struct{ io.Reader }{u})
		if (err != nil) != c.bad || (u.fault.Load() != nil) != c.bad {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.bad && string(got) != c.sent || c.bad && c.length >= 0 && len(got) >= int(c.length) {
			t.Errorf("%s: %d bytes", c.name, len(got))
		}
	}
}

func TestBoundaries(t *testing.T) {
	for value, want := range map[string]string{
		"multipart/form-data; boundary=abc": "abc", `Multipart/Form-Data; boundary="a b:c"`: "a b:c",
		"multipart/form-data": "", "multipart/mixed; boundary=a": "", "application/json": "", "": "", `multipart/form-data; boundary="a "`: "",
		"multipart/form-data; boundary=" + strings.Repeat("x", 71): "", `multipart/form-data; boundary="a<b"`: "",
	} {
		if got, err := BoundaryOf(value); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", value, got, err)
		}
	}
}

// FuzzForm checks that a buffered form is parsed like by the standard library, and that Set
// changes only its field.
func FuzzForm(f *testing.F) {
	f.Add([]byte(part("model", "", "m") + part("file", "a", "x") + "--b--\r\n"))
	f.Add([]byte("\r\n" + part("a", "", "") + "--b--"))
	f.Add([]byte("--b--"))
	f.Add([]byte("--b\r\n\r\n\r\n--b--"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"0\"\n\r\n\r\n\r\n--b--"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"0\";\r\n filename=\"a\"\r\n\r\nx\r\n--b--"))
	f.Fuzz(func(t *testing.T, body []byte) {
		beginning := &Form{boundary: "b", head: body}
		_ = beginning.parse()
		whole := &Form{boundary: "b", head: body, whole: true}
		if whole.parse() != nil || len(whole.fields)+len(whole.files) == 0 {
			return
		}
		edited := &Form{boundary: "b", head: whole.Set(nil, "model", "another"), whole: true}
		if err := edited.parse(); err != nil {
			t.Fatalf("%q after set: %v", body, err)
		}
		if got, _ := edited.Get("model"); got != "another" {
			t.Fatalf("%q: model is %q", body, got)
		}
		r := multipart.NewReader(bytes.NewReader(body), "b")
		for _, field := range whole.fields {
			for {
				p, err := r.NextRawPart()
				if err != nil {
					return // the library is stricter in headers
				}
				if p.FileName() != "" || p.FormName() != field.name {
					continue
				}
				if value, err := io.ReadAll(p); err == nil && !bytes.Equal(value, field.value) {
					t.Fatalf("%q: %s is %q, the library reads %q", body, field.name, field.value, value)
				}
				break
			}
		}
	})
}
