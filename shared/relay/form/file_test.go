package form

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// filePart is one part of a form with the boundary b.
func filePart(disposition, value string) string {
	return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
}

func TestAFileIsReadBetweenItsFields(t *testing.T) {
	t.Parallel()
	const end = "--b--\r\n"
	file := filePart(`name="file"; filename="rows.jsonl"`, "{}")
	bad := errors.New("broken")
	for body, want := range map[string]string{ // what goes wrong; "" for nothing
		filePart(`name="purpose"`, "batch") + file + end:                       "",
		file + filePart(`name="purpose"`, "batch") + end:                       "",
		filePart(`name="a[]"`, "1") + filePart(`name="a[]"`, "2") + file + end: "",
		filePart(`name="purpose"`, "batch") + end:                              "file is required",
		file + file + end: "only file",
		filePart(`name="x"`, "1") + file + filePart(`name="x"`, "2") + end:                "occurs twice",
		strings.Repeat(filePart(`name="a[]"`, ""), MaxParts) + file + end:                 "more than",
		filePart(`name="x"`, strings.Repeat("x", MaxHead+1)) + file + end:                 "at most",
		filePart(`name="purpose"`, "batch") + file[:len(file)-1]:                          "broken",
		filePart(`name="purpose"`, "batch") + "--b\r\nContent-Disposition: form-data; na": "file is required",
	} {
		f, err := OpenFormFile(strings.NewReader(body), "b", func(error) error { return bad })
		var got []byte
		var fields map[string]string
		if err == nil {
			if got, err = io.ReadAll(f); err == nil {
				fields, err = f.Rest()
			}
		}
		if want == "" {
			if err != nil || string(got) != "{}" || f.Name != "rows.jsonl" || len(fields) != 1 {
				t.Errorf("%.80q: %q %v %v", body, got, fields, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %s", body, err, want)
		}
	}
}
