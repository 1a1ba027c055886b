package mockprovider

import (
	"fmt"
	"strings"
)

// vectors writes embeddings of texts by one format for each.
func vectors(texts []string, format string, encoded bool) (string, int64) {
	var all []string
	tokens := int64(0)
	for i, s := range texts {
		v := string(appendVector(nil, embed(s, 8), encoded))
		all = append(all, strings.NewReplacer("$i", fmt.Sprint(i), "$v", v).Replace(format))
		tokens += tokensOf(s)
	}
	return strings.Join(all, ","), tokens
}

// steered takes the directives of the last text.
func (x *exchange) steered(texts []string) *apiError { return steerBy(&x.st, texts[len(texts)-1]) }

const vectorItem = `{"object":"embedding","index":$i,"embedding":$v}`

func (x *exchange) jinaEmbed() *apiError {
	v, e := x.strictBody("model! input! dimensions task late_chunking truncate normalized embedding_type return_multivector")
	if e != nil {
		return e
	}
	var texts []string
	for _, item := range v.get("input").arr {
		switch {
		case item.kind == text:
			texts = append(texts, item.s)
		case item.get("image").kind == text && len(item.obj) == 1:
			texts = append(texts, item.get("image").s)
		default:
			return wireBad("input: must be a string, {text} or {image}")
		}
	}
	return x.listOf(texts, v.get("embedding_type").s == "base64", `,"usage":{"total_tokens":%[1]d,"prompt_tokens":%[1]d}`)
}

func (x *exchange) voyageEmbed() *apiError {
	v, e := x.strictBody("model! input! input_type truncation output_dimension output_dtype encoding_format")
	if e != nil {
		return e
	}
	texts, e := v.strings("input")
	if e != nil {
		return e
	}
	if f := v.get("encoding_format"); f.given() && f.s != "base64" {
		return wireBad("encoding_format must be null or base64")
	}
	return x.listOf(texts, v.get("encoding_format").s == "base64", `,"usage":{"total_tokens":%d}`)
}

// listOf answers in the OpenAI shape.
func (x *exchange) listOf(texts []string, encoded bool, usage string) *apiError {
	if len(texts) == 0 {
		return wireBad("input must not be empty")
	}
	if e := x.steered(texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, vectorItem, encoded)
	return x.embedded([]byte(`{"object":"list","data":[`+list+`],"model":`+quoted(x.model)+fmt.Sprintf(usage, tokens)+`}`), tokens)
}

func (x *exchange) nomicEmbed() *apiError {
	v, e := x.strictBody("model! texts! task_type dimensionality long_text_mode max_tokens_per_text")
	if e != nil {
		return e
	}
	texts, e := v.strings("texts")
	if e != nil {
		return e
	}
	if e := x.steered(texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, "$v", false)
	return x.embedded(fmt.Appendf(nil, `{"embeddings":[%s],"usage":{"prompt_tokens":%d,"total_tokens":%d},"model":%s}`, list, tokens, tokens, quoted(x.model)), tokens)
}

func (x *exchange) ai21Embed() *apiError {
	v, e := x.strictBody("texts! type")
	if e != nil {
		return e
	}
	texts, e := v.strings("texts")
	if e != nil {
		return e
	}
	if e := x.steered(texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, `{"embedding":$v}`, false)
	return x.embedded([]byte(`{"id":"1","results":[`+list+`]}`), tokens)
}

func (x *exchange) jinaRerank() *apiError {
	v, e := x.strictBody("model! query! documents! top_n return_documents")
	if e != nil {
		return e
	}
	return x.rerankTokens(v, "top_n", `{"model":%s,"object":"list","usage":{"total_tokens":%d},"results":[%s]}`)
}

func (x *exchange) voyageRerank() *apiError {
	v, e := x.strictBody("model! query! documents! top_k return_documents truncation")
	if e != nil {
		return e
	}
	return x.rerankTokens(v, "top_k", `{"object":"list","model":%s,"usage":{"total_tokens":%d},"data":[%s]}`)
}

// rerankTokens ranks for a provider that is paid by tokens.
func (x *exchange) rerankTokens(v value, top, format string) *apiError {
	documents, e := rankable(v)
	if e != nil {
		return e
	}
	results, e := x.ranked(v, top, documents)
	if e != nil {
		return e
	}
	tokens := tokensOf(v.get("query").s) + tokensOf(strings.Join(documents, " "))
	if done, e := x.opened(seedOf(v.get("query").s)); done || e != nil {
		return e
	}
	x.plain("mock", fmt.Appendf(nil, format, quoted(x.model), tokens, strings.Join(results, ",")), Usage{Input: tokens})
	return nil
}

func (x *exchange) mistralOCR() *apiError { return x.ocrOf(true) }
func (x *exchange) azureOCR() *apiError   { return x.ocrOf(false) }

// pagePrice is what a page costs, in nano-dollars.
const pagePrice = 4_000_000

// ocrOf reads a document of two pages. addresses: documents may be named by address.
func (x *exchange) ocrOf(addresses bool) *apiError {
	v, e := x.strictBody("model! document! id pages include_image_base64 image_limit image_min_size bbox_annotation_format document_annotation_format table_format")
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
	if done, e := x.opened(seedOf(address.s)); done || e != nil {
		return e
	}
	x.row.closeAt(200, 2*pagePrice)
	x.plain("mock", fmt.Appendf(nil, `{"pages":[{"index":0,"markdown":"# One","images":[],"dimensions":{"dpi":200,"height":2200,"width":1700}},{"index":1,"markdown":"# Two","images":[],"dimensions":null}],"model":%s,"usage_info":{"pages_processed":2,"doc_size_bytes":%d}}`, quoted(x.model), len(address.s)), Usage{})
	return nil
}
