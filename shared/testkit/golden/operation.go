package golden

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Operations runs every case of testdata/operations/<translator>, with the files of
// Pairs.
func Operations(t *testing.T, translators ...chat.Translator) {
	for _, c := range translators {
		cases, _ := filepath.Glob(filepath.Join("testdata/operations", c.Name(), "*.txtar"))
		if len(cases) == 0 {
			t.Errorf("%s has no cases", c.Name())
		}
		for _, path := range cases {
			t.Run(c.Name()+"/"+strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				g := open(t, path)
				carry(g, c)
				g.compare()
			})
		}
	}
}

// carry takes a case through a translator.
func carry(g *run, c chat.Translator) {
	body := g.in["request.json"]
	loss := chat.Loss{Strict: g.c.StrictLoss}
	a := &chat.TranslatorRequest{Body: body, Model: "model-1", Traits: &g.c.Traits, Loss: &loss, Field: func(string) string { return "" }, ID: "gw-1", Created: 1750000000, ProviderName: "acme"}
	if g.c.Model != "" {
		a.Model = g.c.Model
	}
	up, media, err := c.EncodeRequest(nil, body, a)
	if err == nil {
		err = loss.Err()
	}
	if err != nil {
		f := fault.From(err)
		if f.Status() >= 500 {
			g.t.Errorf("a request is answered with %d: %v", f.Status(), f)
		}
		g.json("refused.json", f.DataBody(false))
		return
	}
	if media != "" {
		up = formOf(g.t, up, media)
	}
	g.json("upstream_request.json", up)
	if !loss.Empty() {
		g.out["loss.txt"] = []byte(strings.NewReplacer("dropped=", "", "), ", ")\n").Replace(loss.Header()) + "\n")
	}
	answer := g.in["upstream_response.json"]
	if g.c.Status >= 400 {
		f := c.DecodeError(g.c.Status, http.Header{}, answer)
		if f.Source != fault.SourceProvider {
			g.t.Errorf("source %q", f.Source)
		}
		g.json("response.json", appendStatus(f))
		return
	}
	out, _, m, err := c.DecodeResponse([]byte("x"), answer, http.Header{}, a)
	if err != nil {
		f := fault.From(err)
		if f.Source != fault.SourceProvider {
			g.t.Errorf("source %q: %v", f.Source, f)
		}
		g.json("response.json", appendStatus(f))
		return
	}
	if !bytes.HasPrefix(out, []byte("x{")) {
		g.t.Errorf("not appended: %.40q", out)
	}
	g.json("response.json", out[1:])
	g.meter(m, nil)
}

// formOf writes a form as a list of its fields in JSON, because its boundary is never the
// same.
func formOf(t *testing.T, body []byte, media string) []byte {
	t.Helper()
	kind, params, err := mime.ParseMediaType(media)
	if err != nil || kind != "multipart/form-data" {
		t.Fatalf("content type %q: %v", media, err)
	}
	fields := []map[string]string{}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		value, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		field := map[string]string{"name": part.FormName(), "value": string(value)}
		if part.FileName() != "" {
			field = map[string]string{"name": part.FormName(), "file": part.FileName(), "type": part.Header.Get("Content-Type"), "bytes": strconv.Itoa(len(value))}
		}
		fields = append(fields, field)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func appendStatus(f *fault.Fault) []byte {
	b, _ := json.Marshal(map[string]any{"status": f.Status(), "code": f.Code, "message": f.Message})
	return b
}
