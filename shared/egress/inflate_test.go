package egress

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"gateway/shared/fault"
)

// packers are the codings that are inflated.
var packers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"Deflate": func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f }, // the bare form under the same name
	"GZIP , ": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
}

// headers are what the packers write before the first packed byte.
var headers = map[string][]byte{
	"gzip": gzipHeader, "x-gzip": gzipHeader, "GZIP , ": gzipHeader, "deflate": {0x78, 0x9c}, "Deflate": nil,
}

var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

func pack(t *testing.T, p func(io.Writer) io.WriteCloser, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := p(&b)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func packedAnswer(body io.Reader, codings ...string) (*http.Response, *closing) {
	c := &closing{Reader: body}
	h := http.Header{"Content-Length": {"5"}}
	if codings != nil {
		h["Content-Encoding"] = codings
	}
	return &http.Response{Header: h, Body: c, ContentLength: 5}, c
}

func TestInflateReadsCompressedBodies(t *testing.T) {
	t.Parallel()
	want := []byte(strings.Repeat(`{"some":"JSON"}`, 1000))
	for coding, p := range packers {
		packed := pack(t, p, want)
		for _, slow := range []bool{false, true} {
			var src io.Reader = bytes.NewReader(packed)
			if slow {
				src = iotest.OneByteReader(src)
			}
			resp, body := packedAnswer(src, coding)
			if err := Inflate(resp, int64(len(want))); err != nil {
				t.Fatalf("%s: %v", coding, err)
			}
			if resp.ContentLength != -1 || resp.Header["Content-Length"] != nil || resp.Header["Content-Encoding"] != nil {
				t.Errorf("%s: the head still tells of what came: %v", coding, resp.Header)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v", coding, len(got), err)
			}
			if err := resp.Body.Close(); err != nil || !body.closed {
				t.Errorf("%s: the connection was not given back: %v", coding, err)
			}
		}
		for cut := range min(len(packed), 40) {
			resp, _ := packedAnswer(bytes.NewReader(packed[:cut]), coding)
			if err := Inflate(resp, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%s: %d bytes of %d are read as a whole", coding, cut, len(packed))
			}
		}
	}
}

func TestInflateLeavesWhatIsPlain(t *testing.T) {
	t.Parallel()
	for _, codings := range [][]string{nil, {""}, {"identity"}, {"Identity, identity"}, {"", "identity"}} {
		resp, body := packedAnswer(strings.NewReader("plain"), codings...)
		if err := Inflate(resp, 1); err != nil || resp.Body != body || resp.ContentLength != 5 {
			t.Errorf("%q: %v", codings, err)
		}
	}
}

func TestInflateRefusesOtherCodings(t *testing.T) {
	t.Parallel()
	for _, codings := range [][]string{{"br"}, {"zstd"}, {"compress"}, {"gzip, gzip"}, {"gzip", "gzip"}, {"gzip", "br"}, {"deflate,gzip"}, {"gzip;q=1"}, {"\x00"}, {"secret-of-the-host"}} {
		resp, body := packedAnswer(strings.NewReader("whatever"), codings...)
		err := Inflate(resp, 0)
		if !fault.Is(err, fault.InvalidProviderResponse) || !body.closed {
			t.Errorf("%q: %v, closed %v", codings, err, body.closed)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error quotes the host: %v", err)
		}
	}
}

// zeros returns n bytes that shrink to a thousandth.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), int64(*z)))
	clear(p[:n])
	*z -= zeros(n)
	return n, nil
}

// TestInflateEndsBombs: in every coding, however its bytes arrive, and after a small member.
func TestInflateEndsBombs(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	var bomb bytes.Buffer // the bare form, compressed once: the others begin with a header, and are never read to their end
	w, z := packers["Deflate"](&bomb), zeros(size)
	if _, err := io.Copy(w, &z); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for coding, p := range packers {
		var packed bytes.Buffer
		packed.Write(headers[coding])
		packed.Write(bomb.Bytes())
		forms := map[string]io.Reader{
			"at once":  bytes.NewReader(packed.Bytes()),
			"in drops": iotest.HalfReader(bytes.NewReader(packed.Bytes())),
		}
		if strings.Contains(strings.ToLower(coding), "gzip") {
			small := pack(t, p, make([]byte, 1<<20))
			forms["many small ones"] = bytes.NewReader(bytes.Repeat(small, 64))
		}
		for form, src := range forms {
			resp, _ := packedAnswer(src, coding)
			if err := Inflate(resp, 0); err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			most := max(int64(freeInflation), int64(packed.Len())*maxInflation) + 64<<10
			if n > most || !fault.Is(err, fault.InvalidProviderResponse) {
				t.Errorf("%s, %s: %d bytes of %d came out, %v", coding, form, n, packed.Len(), err)
			}
			if again, err := resp.Body.Read(make([]byte, 1)); again != 0 || err == nil || err == io.EOF {
				t.Errorf("%s, %s: goes on with %d, %v", coding, form, again, err)
			}
		}
		// A bound in bytes holds however small the growth is.
		resp, _ := packedAnswer(bytes.NewReader(packed.Bytes()), coding)
		if err := Inflate(resp, 1000); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n > 64<<10 || !fault.Is(err, fault.InvalidProviderResponse) {
			t.Errorf("%s: %d bytes where 1000 may be, %v", coding, n, err)
		}
	}
	if out, err := InflateRaw(bomb.Bytes(), size); err == nil {
		t.Errorf("%d bytes of a raw bomb", len(out))
	}
	want := bytes.Repeat([]byte("abc"), 1000)
	if out, err := InflateRaw(pack(t, packers["Deflate"], want), 3000); err != nil || !bytes.Equal(out, want) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if _, err := InflateRaw(pack(t, packers["Deflate"], want), 2999); err == nil {
		t.Error("a byte more than the bound is given")
	}
}

func FuzzInflate(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00"), "gzip")
	f.Add([]byte("\x78\x9c\x4b\x04\x00\x00\x62\x00\x62"), "deflate")
	f.Add([]byte{3, 0}, "deflate")
	f.Fuzz(func(t *testing.T, packed []byte, coding string) {
		resp, _ := packedAnswer(bytes.NewReader(packed), coding)
		if Inflate(resp, 0) != nil {
			return
		}
		n, _ := io.Copy(io.Discard, resp.Body)
		if n > freeInflation+int64(len(packed))*maxInflation+64<<10 {
			t.Fatalf("%d bytes of %d", n, len(packed))
		}
	})
}
