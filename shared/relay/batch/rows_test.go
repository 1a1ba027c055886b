package batch

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"gateway/shared/fault"
)

const goodRow = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}`

func TestLinesGoOnFromAnyRow(t *testing.T) {
	text := "\xef\xbb\xbf" + "one\r\n\n  \n two \n" + strings.Repeat("x", 200_000) + "\nlast"
	want := []string{"one", "two", strings.Repeat("x", 200_000), "last"}
	numbers := []int{1, 4, 5, 6}
	read := func(l *Lines) (got []string, at []int, offsets []int64) {
		for {
			line, err := l.Next()
			if err == io.EOF {
				return got, at, offsets
			}
			if err != nil {
				t.Fatal(err)
			}
			got, at, offsets = append(got, string(line)), append(at, l.Number), append(offsets, l.Offset)
		}
	}
	got, at, offsets := read(NewLines(iotest.OneByteReader(strings.NewReader(text)), 0, 0))
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(at) != fmt.Sprint(numbers) || offsets[3] != int64(len(text)) {
		t.Fatalf("%q %v %v", got, at, offsets)
	}
	for i := range got {
		rest, more, _ := read(NewLines(strings.NewReader(text[offsets[i]:]), at[i], offsets[i]))
		if fmt.Sprint(rest) != fmt.Sprint(want[i+1:]) || fmt.Sprint(more) != fmt.Sprint(numbers[i+1:]) {
			t.Errorf("from row %d: %q %v", i, rest, more)
		}
	}
}

func TestLongRowsAreRefused(t *testing.T) {
	long := strings.Repeat("x", MaxRow+1) + "\n"
	if _, err := NewLines(strings.NewReader(long), 0, 0).Next(); err == nil || err == io.EOF {
		t.Errorf("%v", err)
	}
	_, err := io.Copy(io.Discard, Checked(strings.NewReader(goodRow+"\n"+long)))
	if f := fault.From(err); f.Status() != 413 || !strings.Contains(f.Message, "line 2") {
		t.Errorf("%v", err)
	}
}

func TestAFileHasSoManyRows(t *testing.T) {
	var text bytes.Buffer
	for i := range MaxRows + 1 {
		fmt.Fprintf(&text, `{"custom_id":"%d","method":"POST","url":"/v1/embeddings","body":{}}`+"\n", i)
	}
	_, err := io.Copy(io.Discard, struct{ io.Reader }{Checked(&text)})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d: the file must have at most %d rows", MaxRows+1, MaxRows)) {
		t.Errorf("%v", err)
	}
}

// FuzzRows holds the check of an upload against the reading of the file later:
// what passes gives the same rows, whatever the pieces it comes in.
func FuzzRows(f *testing.F) {
	for _, s := range []string{goodRow, goodRow + "\n" + goodRow, "\xef\xbb\xbf" + goodRow + "\r\n\r\n", "{}", "", "[", goodRow[:30], `{"custom_id":"\ud800","method":"POST","url":"/v1/messages","body":{}}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		var passed bytes.Buffer
		_, err := io.CopyBuffer(&passed, struct{ io.Reader }{Checked(bytes.NewReader(text))}, make([]byte, 1+max(piece, 0)%64))
		whole, werr := io.ReadAll(Checked(bytes.NewReader(text)))
		if (err == nil) != (werr == nil) {
			t.Fatalf("%v and %v", err, werr)
		}
		if err != nil {
			if s := fault.From(err).Status(); s < 400 || s > 499 {
				t.Fatalf("%d: %v", s, err)
			}
			return
		}
		if !bytes.Equal(passed.Bytes(), text) || !bytes.Equal(whole, text) {
			t.Fatal("the bytes have changed")
		}
		lines, check := NewLines(bytes.NewReader(text), 0, 0), NewCheck()
		for {
			line, err := lines.Next()
			if err == io.EOF {
				break
			}
			if err == nil {
				_, err = check.Row(line)
			}
			if err != nil {
				t.Fatalf("a row that passed is refused later: %v", err)
			}
		}
		if check.Rows() == 0 {
			t.Fatal("a file without rows passed")
		}
	})
}
