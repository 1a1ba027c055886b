package dialect_test

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
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/image"
	"gateway/shared/dialect/ocr"
	"gateway/shared/dialect/rerank"
	"gateway/shared/fault"
)

// carriers are the translators whose cases are in testdata/operations/<name>.
var carriers = []chat.Translator{
	bedrock.Embeddings{}, bedrock.Images{}, bedrock.Rerank{}, bedrock.CountTokens{},
	cohere.Embeddings{}, cohere.Rerank{}, embedding.Voyage{}, embedding.Jina{}, embedding.Nomic{},
	rerank.Voyage{}, rerank.Jina{}, ocr.Mistral{}, ocr.Azure{},
	gemini.Embeddings{}, gemini.VertexEmbeddings{}, gemini.VertexEmbedContent{}, gemini.Imagen{},
	image.WorkersAI{}, image.SiliconFlow{}, image.Hyperbolic{}, image.Stability{}, image.Segmind{}, image.Fireworks{},
}

// TestOperations runs every case of testdata/operations/<translator>/<case>,
// whose files are those of TestPairs.
func TestOperations(t *testing.T) {
	for _, c := range carriers {
		dirs, _ := filepath.Glob(filepath.Join("testdata/operations", c.Name(), "*"))
		if len(dirs) == 0 {
			t.Errorf("%s has no cases", c.Name())
		}
		for _, dir := range dirs {
			t.Run(c.Name()+"/"+filepath.Base(dir), func(t *testing.T) {
				g := &golden{t: t, dir: dir, out: map[string][]byte{}}
				if raw := g.read("case.json"); raw != nil {
					if err := json.Unmarshal(raw, &g.c); err != nil {
						t.Fatal(err)
					}
				}
				carry(g, c)
				g.compare()
			})
		}
	}
}

// carry takes a case through a translator.
func carry(g *golden, c chat.Translator) {
	body := g.read("request.json")
	loss := chat.Loss{Strict: g.c.StrictLoss}
	a := &chat.Asked{Body: body, Model: "model-1", Traits: &g.c.Traits, Loss: &loss, Field: func(string) string { return "" }, ID: "gw-1", Created: 1750000000, ProviderName: "acme"}
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
	answer := g.read("upstream_response.json")
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

// formOf writes a form as a list of its fields in JSON, as its boundary is never
// the same.
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

// FuzzOperation gives any bytes to every translator, as a request and as the
// answer to one: refusals below 500, strict JSON, no panic.
func FuzzOperation(f *testing.F) {
	for _, pattern := range []string{"testdata/operations/*/*/request.json", "testdata/operations/*/*/upstream_response.json"} {
		seeds(f, pattern)
	}
	asked := [][]byte{
		[]byte(`{"model":"m","input":["a","b"]}`), []byte(`{"model":"m","query":"q","documents":["a",{"text":"b"}],"return_documents":true}`),
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, c := range carriers {
			var loss chat.Loss
			a := &chat.Asked{Body: body, Model: "m", Traits: &chat.Traits{}, Loss: &loss, Field: func(string) string { return "" }}
			out, media, err := c.EncodeRequest(nil, body, a)
			if !notFault(t, err) && media == "" && !json.Valid(out) {
				t.Fatalf("%s: not JSON: %q", c.Name(), out)
			}
			if fault := c.DecodeError(500, nil, body); fault == nil {
				t.Fatal("no error")
			}
			for _, ask := range asked {
				a.Body = ask
				out, _, _, err := c.DecodeResponse(nil, body, http.Header{}, a)
				if !notFault(t, err) && !json.Valid(out) {
					t.Fatalf("%s: not JSON: %q", c.Name(), out)
				}
			}
		}
	})
}
