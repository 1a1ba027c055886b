package form

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"gateway/shared/fault"
)

// TestFieldsFirstEndsBeforeALaterField checks that no part of the value of a field after the
// first file is read, at any chunk boundary.
func TestFieldsFirstEndsBeforeALaterField(t *testing.T) {
	t.Parallel()
	const end = "--b--\r\n"
	file := func(content string) string { return filePart(`name="file"; filename="a"`, content) }
	long := strings.Repeat("x", MaxHead)
	for name, c := range map[string]struct {
		body string
		ends bool
	}{
		"one file":              {file(long) + end, false},
		"an empty file":         {file("") + end, false},
		"more files":            {file("") + file("y") + file(long) + end, false},
		"another boundary":      {file("y\r\n--bc") + end, true},
		"hyphens in a file":     {file("a--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsecret") + end, false},
		"a field":               {file(long) + filePart(`name="model"`, "secret") + end, true},
		"behind an empty file":  {file("") + filePart(`name="model"`, "secret") + end, true},
		"behind two files":      {file("a") + file("b") + filePart(`name="model"`, "secret") + end, true},
		"after a bare newline":  {file("a\n--b\nContent-Disposition: form-data; name=\"model\"\n\nsecret") + end, true},
		"after a bare return":   {file("a\r--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsecret") + end, true},
		"a header with a break": {file("a") + "--b\r\nContent-Disposition: form-data;\r\n name=\"model\"; filename=\"x\"\r\n\r\nsecret\r\n" + end, true},
		"no header":             {file("a") + "--b\r\n\r\nsecret\r\n" + end, true},
		"an endless header":     {file("a") + "--b\r\nX: " + strings.Repeat("x", maxPartHead) + "\r\n\r\nsecret\r\n" + end, true},
	} {
		for pieces, slow := range map[string]func(io.Reader) io.Reader{"chunks": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader} {
			src := strings.NewReader(filePart(`name="purpose"`, "x") + c.body)
			f, err := ReadForm(src, "b", MaxReplay+1, nil) // longer than the buffer limit
			if err != nil || f.Complete() {
				f = &Form{boundary: "b", head: []byte(filePart(`name="purpose"`, "x") + c.body[:strings.Index(c.body, "\r\n\r\n")+4])}
				if err := f.parse(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				src = strings.NewReader(c.body[strings.Index(c.body, "\r\n\r\n")+4:])
			}
			r := f.FieldsFirst(io.NopCloser(slow(src)))
			got, err := io.ReadAll(r)
			if ends := err != nil; ends != c.ends || ends != (r.Fault() != nil) {
				t.Errorf("%s in %s: %v", name, pieces, err)
			}
			if c.ends && (strings.Contains(string(got), "secret") || fault.From(err).Field != "body") {
				t.Errorf("%s in %s: the value was read: %v", name, pieces, err)
			}
		}
	}
}

func TestDelimitersOfLenientReceiversAreRefused(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		filePart(`name="f"; filename="a"`, "a--b b\r\n-b") + "--b--":                                                  true,
		filePart(`name="f"; filename="a"`, "a\n--b\nContent-Disposition: form-data; name=\"model\"\n\nm") + "--b--":   false,
		filePart(`name="f"; filename="a"`, "a\r--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nm") + "--b--": false,
	} {
		if _, err := ReadForm(strings.NewReader(body), "b", int64(len(body)), nil); (err == nil) != ok {
			t.Errorf("%q: %v", body, err)
		}
	}
}
