package mockprovider

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unitPrices are nano-dollars for one image, one minute of audio, one synthesized character or
// one page, for every model; they are list prices of the providers.
var unitPrices = map[string]int64{
	"dall-e-2": 20_000_000, "dall-e-3": 40_000_000, "whisper-1": 6_000_000, "tts-1": 15_000, "tts-1-hd": 30_000,
}

// chargeUnits closes the row at a price that does not come from tokens.
func chargeUnits(x *exchange, status int, nanoDollars int64) {
	x.row.closeAt(status, nanoDollars)
}

var moderationKeys = []string{
	"sexual", "hate", "harassment", "self-harm", "sexual/minors", "hate/threatening", "violence/graphic", "self-harm/intent",
	"self-harm/instructions", "harassment/threatening", "violence",
}

// moderation serves POST /moderations. Texts with "kill" in them are flagged.
func moderation(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if v.get("model").given() {
		if e := takeModel(x, v); e != nil {
			return e
		}
	} else {
		x.model = "omni-moderation-latest"
	}
	in := v.get("input")
	if in.kind == absent {
		return badRequest("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	}
	texts, _, e := prompts(in, "input", 2048)
	if e != nil {
		return e
	}
	if e := steerBy(&x.st, texts[len(texts)-1]); e != nil {
		return e
	}
	id, done, e := begin(x, "modr-", in.s)
	if done {
		return e
	}
	var results []json.RawMessage
	for _, s := range texts {
		flagged := strings.Contains(strings.ToLower(s), "kill")
		categories, scores := map[string]bool{}, map[string]float64{}
		for _, k := range moderationKeys {
			categories[k], scores[k] = flagged && k == "violence", 1.5e-07
		}
		if flagged {
			scores["violence"] = 0.97
		}
		results = append(results, fill(`{"flagged":$,"categories":$,"category_scores":$}`, flagged, categories, scores))
	}
	x.plain(id, fill(`{"id":$,"model":$,"results":$}`, id, x.model, list(results)), Usage{})
	return nil
}

var imageRules = parseRules("... prompt!!:s size:s quality:s style:s response_format:s user:s")

// imageMade serves POST /images/generations.
func imageMade(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if !v.get("model").given() {
		x.model = "dall-e-2"
	} else if e := takeModel(x, v); e != nil {
		return e
	}
	if e := openAIError(imageRules.check(v, "")); e != nil {
		return e
	}
	prompt := v.get("prompt")
	n, given := v.get("n").integer()
	if !given {
		n = 1
	}
	if e := steerBy(&x.st, prompt.s); e != nil {
		return e
	}
	return images(x, prompt.s, n, v.get("response_format").s, v.get("stream").yes)
}

// imageEdited serves POST /images/edits, imageVaried POST /images/variations.
func imageEdited(x *exchange) *apiError { return imageForm(x, true) }

func imageVaried(x *exchange) *apiError { return imageForm(x, false) }

func imageForm(x *exchange, prompted bool) *apiError {
	u, e := parseForm(x, "image")
	if e != nil {
		return e
	}
	if e := takeFormModel(x, u, "dall-e-2"); e != nil {
		return e
	}
	prompt := u.fields["prompt"]
	if prompted && prompt == "" {
		return badRequest("prompt", "missing_required_parameter", "'prompt' is a required property")
	}
	if e := steerBy(&x.st, prompt); e != nil {
		return e
	}
	n := int64(1)
	if s := u.fields["n"]; s != "" {
		var err error
		if n, err = strconv.ParseInt(s, 10, 64); err != nil {
			return badRequest("n", "invalid_type", "'n' must be an integer")
		}
	}
	return images(x, prompt+string(u.files["image"]), n, u.fields["response_format"], u.fields["stream"] == "true")
}

func images(x *exchange, seed string, n int64, format string, stream bool) *apiError {
	if n < 1 || n > 10 || x.model == "dall-e-3" && n != 1 {
		return badRequest("n", "invalid_value", "Invalid 'n'.")
	}
	if format != "" && format != "url" && format != "b64_json" {
		return badRequest("response_format", "invalid_value", "Invalid 'response_format'.")
	}
	id, done, e := begin(x, "img-", seed)
	if done {
		return e
	}
	pixel := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nmock" + seed[:min(len(seed), 16)]))
	if stream {
		chargeUnits(x, http.StatusOK, n*unitPrices[x.model])
		s := x.startStream(id, Usage{})
		s.event("image_generation.partial_image", []byte(`{"type":"image_generation.partial_image","partial_image_index":0,"b64_json":"`+pixel+`"}`))
		s.event("image_generation.completed", []byte(`{"type":"image_generation.completed","b64_json":"`+pixel+`","usage":{"input_tokens":8,"output_tokens":100,"total_tokens":108,"input_tokens_details":{"text_tokens":8,"image_tokens":0}}}`))
		s.end()
		return nil
	}
	b := fill(`{"created":$,"data":[`, x.s.opts.Now().Unix())
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if format == "b64_json" {
			b = append(b, `{"b64_json":"`+pixel+`"}`...)
		} else {
			b = append(b, `{"url":"https://images.example/`+id+"-"+strconv.FormatInt(i, 10)+`.png"}`...)
		}
	}
	chargeUnits(x, http.StatusOK, n*unitPrices[x.model])
	x.plain(id, append(b, `]}`...), Usage{})
	return nil
}

var speechRules = parseRules("... input!!:s<4096 voice!:so speed:0.25..4")

// speech serves POST /audio/speech: four bytes of sound for each character.
func speech(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := takeModel(x, v); e != nil {
		return e
	}
	if e := openAIError(speechRules.check(v, "")); e != nil {
		return e
	}
	in := v.get("input")
	if e := steerBy(&x.st, in.s); e != nil {
		return e
	}
	id, done, e := begin(x, "speech-", in.s)
	if done {
		return e
	}
	n := int64(utf8.RuneCountInString(in.s))
	chargeUnits(x, http.StatusOK, n*unitPrices[x.model])
	if v.get("stream_format").s == "sse" {
		s := x.startStream(id, Usage{})
		s.event("", []byte(`{"type":"speech.audio.delta","audio":"`+base64.StdEncoding.EncodeToString(sound(2*n))+`"}`))
		s.event("", []byte(`{"type":"speech.audio.delta","audio":"`+base64.StdEncoding.EncodeToString(sound(2*n))+`"}`))
		s.event("", fill(`{"type":"speech.audio.done","usage":{"input_tokens":$,"output_tokens":$,"total_tokens":$}}`, tokensOf(in.s), n, n+tokensOf(in.s)))
		s.end()
		return nil
	}
	x.setHeaders("audio/mpeg", id)
	x.w.WriteHeader(http.StatusOK)
	all := sound(4 * n)
	for len(all) > 0 && !x.gone() { // in pieces, as the speech is made
		k := min(len(all), 4096)
		x.write(all[:k])
		x.flush()
		all = all[k:]
	}
	return nil
}

func sound(n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// transcription serves POST /audio/transcriptions and /audio/translations: a
// second of sound has 16,000 bytes.
func transcription(x *exchange) *apiError {
	u, e := parseForm(x, "file")
	if e != nil {
		return e
	}
	if e := takeFormModel(x, u, ""); e != nil {
		return e
	}
	if e := steerBy(&x.st, u.fields["prompt"]); e != nil {
		return e
	}
	file := u.files["file"]
	id, done, e := begin(x, "transcript-", string(file))
	if done {
		return e
	}
	seconds := int64(len(file)+15_999) / 16_000
	words := "The sound has " + strconv.Itoa(len(file)) + " bytes."
	chargeUnits(x, http.StatusOK, seconds*unitPrices[x.model]/60)
	usage := fill(`{"type":"duration","seconds":$}`, seconds)
	if u.fields["stream"] == "true" {
		s := x.startStream(id, Usage{})
		for _, w := range strings.SplitAfter(words, " ") {
			s.event("", append(appendString([]byte(`{"type":"transcript.text.delta","delta":`), w), '}'))
		}
		s.event("", fill(`{"type":"transcript.text.done","text":$,"usage":$}`, words, usage))
		s.end()
		return nil
	}
	switch u.fields["response_format"] {
	case "", "json":
		x.plain(id, fill(`{"text":$,"usage":$}`, words, usage), Usage{})
	case "verbose_json":
		x.plain(id, fill(`{"task":"transcribe","language":"english","duration":$,"text":$,"words":[],"segments":[]}`, seconds, words), Usage{})
	case "text", "srt", "vtt":
		x.setHeaders("text/plain; charset=utf-8", id)
		x.w.WriteHeader(http.StatusOK)
		x.write([]byte(words + "\n"))
	default:
		return badRequest("response_format", "invalid_value", "Invalid 'response_format'.")
	}
	return nil
}

var rerankRules = parseRules("... query!:s documents!!:a")

// rerank serves POST /rerank of compatible hosts: documents that share words with the query
// come first.
func rerank(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := takeModel(x, v); e != nil {
		return e
	}
	if e := openAIError(rerankRules.check(v, "")); e != nil {
		return e
	}
	docs := v.get("documents")
	if e := steerBy(&x.st, v.get("query").s); e != nil {
		return e
	}
	id, done, e := begin(x, "rerank-", v.get("query").s)
	if done {
		return e
	}
	query := embed(v.get("query").s, 64)
	var results []json.RawMessage
	for i, d := range docs.arr {
		var score float32
		for j, f := range embed(d.s, 64) {
			score += f * query[j]
		}
		results = append(results, fill(`{"index":$,"relevance_score":$}`, i, json.RawMessage(strconv.FormatFloat(float64(score), 'f', 4, 32))))
	}
	x.plain(id, fill(`{"id":$,"object":"list","model":$,"results":$,"usage":{"search_units":1}}`, id, x.model, list(results)), Usage{})
	return nil
}

// ocr serves POST /ocr.
func ocr(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := takeModel(x, v); e != nil {
		return e
	}
	if v.get("document").kind != object {
		return badRequest("document", "", "document is required")
	}
	id, done, e := begin(x, "ocr-", v.get("document").s)
	if done {
		return e
	}
	x.plain(id, fill(`{"pages":[{"index":0,"markdown":"# A page","images":[],"dimensions":{"dpi":200,"height":2200,"width":1700}}],"model":$,"usage_info":{"pages_processed":1,"doc_size_bytes":100}}`, x.model), Usage{})
	return nil
}
