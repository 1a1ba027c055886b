package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// AllClients are all shapes in which conversations are answered.
func AllClients() map[string]chat.Client {
	out := map[string]chat.Client{"gemini": gemini.Generate{}, "converse": converse.Converse{}, "cohere": cohere.Chat{}}
	for name, d := range Clients {
		if name != "completions" {
			out[name] = d
		}
	}
	return out
}

// RunResponses runs every case of testdata/answers: one response of the provider's dialect, as
// it was seen on a wire, for clients of every shape. Its files:
//
//	comment                who sends it, and where that is reported
//	case.json              options, may be missing
//	upstream_response.*    what the provider sends, .json or .sse
//	<shape>.json, .sse     golden: what a client of the shape gets
func RunResponses(t *testing.T, provider string) {
	cases, _ := filepath.Glob("testdata/answers/*.txtar")
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { playResponse(t, provider, path) })
	}
}

func playResponse(t *testing.T, provider, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in := txtar.Parse(raw)
	if len(bytes.TrimSpace(in.Comment)) == 0 {
		t.Error("a case says who sends the answer")
	}
	out := txtar.Archive{Comment: in.Comment}
	want := map[string]string{}
	for _, f := range in.Files {
		want[f.Name] = string(f.Data)
		if f.Name == "case.json" || strings.HasPrefix(f.Name, "upstream_response.") {
			out.Files = append(out.Files, f)
		}
	}
	g := &run{t: t, path: path, in: map[string][]byte{"case.json": []byte(want["case.json"])}}
	g.options()
	for _, name := range slices.Sorted(maps.Keys(AllClients())) {
		client := AllClients()[name]
		o := &chat.Options{Strict: !g.c.Lenient, ID: "gw-1", OwnID: name != provider, Created: 1750000000, ProviderName: "acme", Model: "m", IncludeUsage: true, Origin: Providers[provider].Name(), Continues: g.c.Continues, Stores: g.c.Stores}
		a := response{t: t, client: client, provider: Providers[provider], o: o, own: name == provider}
		if body := want["upstream_response.json"]; body != "" {
			out.Files = append(out.Files, txtar.File{Name: name + ".json", Data: a.whole([]byte(body), &g.c.Traits)})
		}
		if body := want["upstream_response.sse"]; body != "" {
			out.Files = append(out.Files, txtar.File{Name: name + ".sse", Data: a.stream([]byte(body), &g.c.Traits)})
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(&out), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(txtar.Format(in)), string(txtar.Format(&out))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// response is one response for a client of one shape.
type response struct {
	t        *testing.T
	client   chat.Client
	provider chat.Provider
	o        *chat.Options
	own      bool // the client speaks the provider's dialect
}

// whole returns the plain response, or the error that the client gets if no other target
// is left.
func (a *response) whole(body []byte, traits *chat.Traits) []byte {
	var out []byte
	var loss chat.Loss
	var err error
	if pass, ok := a.client.(chat.Passer); a.own && ok {
		if m := pass.MeterResponse(body); m.Err != nil {
			err = m.Err
		} else if out = body; a.own {
			if c, ok := a.client.(chat.Conformer); ok {
				out = c.Conform(body, m.Finish, a.o.Strict)
			}
		}
	} else {
		var r *chat.Response
		if r, err = a.provider.DecodeResponse(body, traits); err == nil {
			err = chat.Verify(r, a.client.Support(a.o), &loss)
		}
		if err == nil {
			m := chat.NewLossReporter(a.client, a.o, &loss)
			m.Examine(r)
			out = a.client.EncodeResponse(nil, r, a.o)
		}
	}
	if err != nil {
		f := fault.From(err)
		out = fmt.Appendf(nil, "%d %s", f.Status(), a.client.AppendError(nil, f, a.o))
	} else if err := wire.CheckStrict(out, wire.MaxDepth); err != nil {
		a.t.Errorf("%s: not strict JSON: %v\n%s", a.client.Name(), err, out)
	}
	return withLoss(out, &loss)
}

// stream is the streamed response. It must be the same in pieces of any size.
func (a *response) stream(in []byte, traits *chat.Traits) []byte {
	var first []byte
	for _, size := range []int{len(in), 1, 13} {
		var out []byte
		var loss chat.Loss
		if pass, ok := a.client.(chat.Passer); a.own && ok {
			var m chat.Meter
			out, m = Filtered(a.t, pass, chat.FilterOptions{Strict: a.o.Strict, IncludeUsage: true}, in, size)
			if m.Err != nil && !bytes.Contains(out, []byte(`"error"`)) {
				out = a.client.AppendStreamError(out, m.Err, a.o)
			}
		} else {
			out = stream(a.t, a.client, a.provider, traits, a.o, in, size, &loss)
			if (a.client.Name() == converse.Converse{}.Name()) {
				out = unframed(a.t, out)
			} else {
				WellFormed(a.t, a.client, out)
			}
		}
		if out = withLoss(out, &loss); first == nil {
			first = out
		} else if diff := cmp.Diff(string(first), string(out)); diff != "" {
			a.t.Errorf("%s in pieces of %d bytes:\n%s", a.client.Name(), size, diff)
		}
	}
	return first
}

// stream is Stream without its meter, and with the loss report.
func stream(t *testing.T, client chat.ResponseWriter, provider chat.Provider, traits *chat.Traits, o *chat.Options, in []byte, size int, loss *chat.Loss) []byte {
	out, _, _ := translated(t, client, provider, traits, o, in, size, loss)
	return out
}

// withLoss adds the report of what the client does not get.
func withLoss(out []byte, loss *chat.Loss) []byte {
	out = append(bytes.TrimRight(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")), "\n"), '\n')
	if !loss.Empty() {
		out = append(out, loss.Header()+"\n"...)
	}
	return out
}

// unframed writes a binary stream as server-sent events, so that people can read it.
func unframed(t *testing.T, in []byte) (out []byte) {
	var p wire.EventStreamParser
	take := func(name string, data []byte) error {
		out = fmt.Appendf(out, "event: %s\ndata: %s\n\n", name, data)
		return nil
	}
	if err := p.Feed(in, take); err != nil {
		t.Fatal(err)
	}
	return out
}

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
