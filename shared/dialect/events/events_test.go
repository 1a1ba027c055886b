package events

import (
	"strings"
	"testing"
)

func split(t *testing.T, in string, size int) (raws, datas, names []string) {
	t.Helper()
	var s Splitter
	var e Event
	take := func() {
		raws = append(raws, string(e.Raw))
		datas = append(datas, string(e.Data))
		names = append(names, string(e.Name))
		if e.At >= 0 && string(e.Raw[e.At:e.At+len(e.Data)]) != string(e.Data) {
			t.Errorf("data is not where At says: %q", e.Raw)
		}
	}
	buffer := make([]byte, size) // used for each read, as a connection's is
	for len(in) > 0 {
		n := copy(buffer, in)
		if err := s.Feed(buffer[:n]); err != nil {
			t.Fatal(err)
		}
		in = in[n:]
		for s.Next(&e) {
			take()
		}
	}
	if s.Last(&e) {
		take()
	}
	return raws, datas, names
}

func TestSplitterGivesWholeEvents(t *testing.T) {
	tests := map[string]struct {
		in    string
		datas []string
		names []string
	}{
		"LF":                  {"data: a\n\nevent: x\ndata: b\n\n", []string{"a", "b"}, []string{"", "x"}},
		"CRLF":                {"data: a\r\n\r\nevent: x\r\ndata:b\r\n\r\n", []string{"a", "b"}, []string{"", "x"}},
		"CR":                  {"data: a\r\revent: x\rdata: b\r\r", []string{"a", "b"}, []string{"", "x"}},
		"several lines":       {"data: a\ndata:  b\ndata\n\n", []string{"a\n b"}, []string{""}},
		"comments":            {": hi\n\ndata: a\n\n:\n\n", []string{"", "a", ""}, []string{"", "", ""}},
		"byte order mark":     {"\xef\xbb\xbfdata: a\n\n", []string{"a"}, []string{""}},
		"no last blank line":  {"data: a\n\ndata: b", []string{"a", "b"}, []string{"", ""}},
		"other fields":        {"id: 1\nretry: 5\ndata: a\n\n", []string{"a"}, []string{""}},
		"only one line of CR": {"data: a\r", []string{"a"}, []string{""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 5, len(tt.in)} {
				raws, datas, names := split(t, tt.in, size)
				if strings.Join(raws, "") != tt.in {
					t.Errorf("size %d: bytes were lost: %q", size, raws)
				}
				if strings.Join(datas, "|") != strings.Join(tt.datas, "|") || strings.Join(names, "|") != strings.Join(tt.names, "|") {
					t.Errorf("size %d: %q %q, want %q %q", size, datas, names, tt.datas, tt.names)
				}
			}
		})
	}
}

func TestSplitterBoundsAnEvent(t *testing.T) {
	var s Splitter
	piece := []byte("data: " + strings.Repeat("x", 32<<10))
	var err error
	for range 1024 {
		if err = s.Feed(piece); err != nil {
			break
		}
		var e Event
		for s.Next(&e) {
			t.Fatal("an event without an end")
		}
	}
	if err == nil {
		t.Fatal("an event of 32 MB was taken")
	}
}

func TestOutputIsGatheredInPlace(t *testing.T) {
	var s Splitter
	var o Output
	var e Event
	if err := s.Feed([]byte("data: a\n\ndata: drop\n\ndata: b\n\nda")); err != nil {
		t.Fatal(err)
	}
	s.Start(&o)
	for s.Next(&e) {
		if string(e.Data) != "drop" {
			o.Add(e.Raw)
		}
	}
	if got := string(o.Bytes()); got != "data: a\n\ndata: b\n\n" {
		t.Fatalf("%q", got)
	}
	if err := s.Feed([]byte("ta: c\n\n")); err != nil {
		t.Fatal(err)
	}
	if !s.Next(&e) || string(e.Data) != "c" {
		t.Fatalf("%q", e.Data)
	}
}
