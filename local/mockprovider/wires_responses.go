package mockprovider

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// wireChecks are rules that the rules of bodies cannot state.
var wireChecks = map[string]func(x *exchange, v value, path string) *apiError{
	"reka": func(x *exchange, v value, _ string) *apiError {
		for i, m := range v.get("conversation_history").arr {
			if want := [...]string{"human", "model"}[i%2]; m.get("type").s != want {
				return wireBad("conversation_history[%d] must be a turn of the %s", i, want)
			}
		}
		return nil
	},
	"workers": func(x *exchange, v value, path string) *apiError {
		if strings.Contains(path, "schnell") && (v.get("width").given() || v.get("height").given()) {
			return wireBad("this model makes images of one size")
		}
		for _, m := range v.obj {
			if strings.Contains(path, "flux-2") && !strings.Contains(" prompt width height steps seed guidance ", " "+m.name+" ") {
				return wireBad("%s: unrecognized field", m.name)
			}
		}
		return nil
	},
	"siliconflow": func(x *exchange, v value, _ string) *apiError {
		if size := v.get("image_size"); size.given() && !strings.Contains(size.s, "x") {
			return wireBad("image_size must be such as 1024x1024")
		}
		return nil
	},
	"fireworks": func(x *exchange, v value, path string) *apiError {
		if n, ok := v.get("samples").integer(); ok && n > 1 && !accepts(x, "application/json") {
			return wireBad("samples must be 1 unless application/json is accepted")
		}
		if !strings.HasPrefix(path, "accounts/") {
			return &apiError{status: http.StatusNotFound, message: "Path not found"}
		}
		return nil
	},
	"stability": func(x *exchange, v value, path string) *apiError {
		if !strings.HasPrefix(path, "stable-diffusion-") {
			return &apiError{status: http.StatusNotFound, message: "The requested resource was not found."}
		}
		return nil
	},
	"stable": func(x *exchange, v value, path string) *apiError {
		further := map[string]string{"core": "", "ultra": " strength image ", "sd3": " strength model mode cfg_scale image "}
		allowed, ok := further[path]
		if !ok {
			return &apiError{status: http.StatusNotFound, message: "not found"}
		}
		for _, name := range strings.Fields(further["sd3"]) {
			if v.get(name).given() && !strings.Contains(allowed, " "+name+" ") {
				return wireBad("%s: unrecognized field", name)
			}
		}
		if v.get("mode").s == "image-to-image" && (v.get("image").s == "" || v.get("strength").s == "") {
			return wireBad("image, strength: required for image-to-image")
		}
		if path == "sd3" && v.get("model").s == "" {
			x.model = "sd3.5-large"
		}
		return nil
	},
}

func accepts(x *exchange, kind string) bool { return strings.Contains(x.r.Header.Get("Accept"), kind) }

func audioText(a *modelOutput) string { return quoted(strings.Join(a.text, "")) }

// strings returns a list of strings.
func (v value) strings(name string) ([]string, *apiError) {
	list := v.get(name)
	if list.kind != array || len(list.arr) == 0 {
		return nil, wireBad("%s must be a non-empty list", name)
	}
	var out []string
	for _, s := range list.arr {
		if s.kind != text {
			return nil, wireBad("%s must hold strings", name)
		}
		out = append(out, s.s)
	}
	return out, nil
}

// steered reads the directives of the last text.
func steered(x *exchange, texts []string) *apiError { return steerBy(&x.st, texts[len(texts)-1]) }

func (w *wire) embed(x *exchange, v value) *apiError {
	var texts []string
	in := v.get(w.args[0])
	if in.kind == text {
		in.arr = []value{in}
	}
	for _, item := range in.arr {
		switch {
		case item.kind == text:
			texts = append(texts, item.s)
		case w.encoded == "embedding_type" && item.get("image").kind == text && len(item.obj) == 1: // Jina
			texts = append(texts, item.get("image").s)
		default:
			return wireBad("%s must hold strings", w.args[0])
		}
	}
	if e := steered(x, texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, 8, w.item, w.encoded != "" && v.get(w.encoded).s == "base64")
	return embedded(x, w.object.fill(nil, values(map[string]any{"items": list, "model": x.model, "input": tokens})), tokens)
}

// rank ranks documents for a provider that charges by tokens.
func (w *wire) rank(x *exchange, v value) *apiError {
	documents, e := rankable(v)
	if e != nil {
		return e
	}
	results, e := ranked(x, v, w.args[0], documents)
	if e != nil {
		return e
	}
	tokens := tokensOf(v.get("query").s) + tokensOf(strings.Join(documents, " "))
	if done, e := opened(x, seedOf(v.get("query").s)); done || e != nil {
		return e
	}
	x.plain("mock", w.object.fill(nil, values(map[string]any{"items": json.RawMessage(strings.Join(results, ",")), "model": x.model, "input": tokens})), Usage{Input: tokens})
	return nil
}

// generateFor responds to a conversation; last is its last message, all its complete text.
func generateFor(x *exchange, last, all string, maxTokens value) (modelOutput, Usage, bool, *apiError) {
	if e := steerBy(&x.st, last); e != nil {
		return modelOutput{}, Usage{}, true, e
	}
	j := job{model: x.model, st: &x.st, seed: seedOf(all), prompt: tokensOf(all), lastUser: last}
	j.maxTokens, _ = maxTokens.integer()
	if done, e := opened(x, j.seed); done || e != nil {
		return modelOutput{}, Usage{}, true, e
	}
	a := j.respond(0)
	out, _ := a.generated()
	return a, Usage{Input: j.prompt, Output: out}, false, nil
}

func (w *wire) complete(x *exchange, v value) *apiError {
	prompt := v.at(w.args[0])
	all := prompt
	if len(w.args) > 2 {
		all = v.get(w.args[2])
	}
	a, u, done, e := generateFor(x, prompt.s, all.s, v.at(w.args[1]))
	if done {
		return e
	}
	marks := func(n int64) json.RawMessage {
		return json.RawMessage(strings.TrimSuffix(strings.Repeat("{},", int(n)), ","))
	}
	names := map[string]any{"text": strings.Join(a.text, ""), "input": u.Input, "output": u.Output, "refused": x.st.reject, "input-marks": marks(u.Input), "output-marks": marks(u.Output)}
	names["items"] = w.items(v, values(names))
	if w.chunk == nil || w.object != nil && !v.get("stream").yes {
		x.plain("mock", w.object.fill(nil, values(names)), u)
		return nil
	}
	s := x.startStream("mock", u)
	for _, p := range a.text {
		s.spend(1, 0)
		names["text"] = p
		s.event("", w.chunk.fill(nil, values(names)))
	}
	if w.last == nil {
		s.finish()
		s.end()
		return nil
	}
	s.event("", w.last.fill(nil, values(names)))
	s.finish()
	s.last("", []byte("[DONE]"))
	return nil
}

// items writes the items of a response, as many as the request has.
func (w *wire) items(v value, get func(string) json.RawMessage) json.RawMessage {
	n, ok := v.get(w.count).integer()
	if !ok {
		n = 1
	}
	item := string(parseTemplate(w.item).fill(nil, get))
	return json.RawMessage(strings.TrimSuffix(strings.Repeat(item+",", int(n)), ","))
}

// imagePrices hold nano-dollars for an image, as in the hosts' price lists.
var imagePrices = map[string]int64{
	"core": 30_000_000, "ultra": 80_000_000, "sd3.5-large": 65_000_000, "stable-diffusion-xl-1024-v1-0": 40_000_000,
}

// draw charges images of one pixel and sends them.
func (w *wire) draw(x *exchange, v value) *apiError {
	prompt := v.at(w.args[0]).s
	if strings.Contains(x.model, "does-not-exist") {
		return &apiError{status: http.StatusNotFound, message: "model not found"}
	}
	if prompt == "" {
		return wireBad("prompt must be a non-empty string")
	}
	if e := steerBy(&x.st, prompt); e != nil {
		return e
	}
	if done, e := opened(x, seedOf(prompt)); done || e != nil {
		return e
	}
	finish := "SUCCESS"
	if x.st.reject {
		finish = "CONTENT_FILTERED"
	}
	field, unless := strings.CutPrefix(w.bytes, "-")
	if w.bytes == "json" && !accepts(x, "application/json") || unless && !v.get(field).yes || w.bytes != "" && strings.Contains(x.model, w.bytes) {
		x.w.Header().Set("Finish-Reason", finish)
		x.w.Header().Set("Seed", "343940597")
		return bare(x)
	}
	if x.st.reject && w.refused != nil {
		return w.refused
	}
	n, ok := v.get(w.count).integer()
	if !ok {
		n = 1
	}
	names := map[string]any{
		"picture": picture, "picture-uri": "data:image/png;base64," + picture, "finish": finish, "prompt": prompt, "several": n > 1, "sync": v.get("sync_mode").yes,
		"url": "https://images.example/" + strconv.FormatInt(x.s.serial.Add(1), 10) + ".png", "flags": json.RawMessage(strings.TrimSuffix(strings.Repeat("false,", int(n)), ",")),
	}
	names["items"] = w.items(v, values(names))
	chargeUnits(x, http.StatusOK, n*imagePrices[x.model])
	x.plain("img-mock", w.object.fill(nil, values(names)), Usage{})
	return nil
}

// bare charges one image and responds with its bytes.
func bare(x *exchange) *apiError {
	image, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		panic(err) // a constant
	}
	chargeUnits(x, http.StatusOK, imagePrices[x.model])
	h := x.setHeaders("image/png", "img-mock")
	h["Content-Length"] = []string{strconv.Itoa(len(image))}
	x.w.WriteHeader(http.StatusOK)
	if cut := max(x.st.cutAfter, x.st.cutMid); cut != never {
		x.write(image[:min(len(image), cut)])
		x.flush()
		panic(http.ErrAbortHandler)
	}
	x.write(image)
	return nil
}

// pagePrice is what a page costs, in nano-dollars.
const pagePrice = 4_000_000

var ocrRules = parseRules("model! document!:o id pages include_image_base64 image_limit image_min_size bbox_annotation_format document_annotation_format table_format")

func mistralOCR(x *exchange) *apiError { return ocrOf(x, true) }
func azureOCR(x *exchange) *apiError   { return ocrOf(x, false) }

// ocrOf reads a document of two pages. addresses: a document may be given by its address.
func ocrOf(x *exchange, addresses bool) *apiError {
	v, e := strictBody(x, ocrRules)
	if e != nil {
		return e
	}
	d := v.get("document")
	kind := d.get("type").s
	address := d.get(kind)
	if address.kind == object {
		address = address.get("url")
	}
	switch {
	case kind != "document_url" && kind != "image_url" && kind != "file":
		return &apiError{status: 422, message: "document.type is not valid"}
	case kind == "file" && addresses && d.get("file_id").s != "":
	case strings.HasPrefix(address.s, "data:"), addresses && strings.HasPrefix(address.s, "https://"):
	default:
		return &apiError{status: 422, message: "the document cannot be read"}
	}
	if done, e := opened(x, seedOf(address.s)); done || e != nil {
		return e
	}
	x.row.closeAt(200, 2*pagePrice)
	x.plain("mock", fill(`{"pages":[{"index":0,"markdown":"# One","images":[],"dimensions":{"dpi":200,"height":2200,"width":1700}},{"index":1,"markdown":"# Two","images":[],"dimensions":null}],"model":$,"usage_info":{"pages_processed":2,"doc_size_bytes":$}}`, x.model, len(address.s)), Usage{})
	return nil
}
