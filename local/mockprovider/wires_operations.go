package mockprovider

import (
	"fmt"
	"strings"
)

// steered reads the directives of the last text.
func steered(x *exchange, texts []string) *apiError { return steerBy(&x.st, texts[len(texts)-1]) }

const vectorItem = `{"object":"embedding","index":$i,"embedding":$v}`

func jinaEmbed(x *exchange) *apiError {
	v, e := strictBody(x, "model! input! dimensions task late_chunking truncate normalized embedding_type return_multivector")
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
	return listOf(x, texts, v.get("embedding_type").s == "base64", `,"usage":{"total_tokens":%[1]d,"prompt_tokens":%[1]d}`)
}

func voyageEmbed(x *exchange) *apiError {
	v, e := strictBody(x, "model! input! input_type truncation output_dimension output_dtype encoding_format")
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
	return listOf(x, texts, v.get("encoding_format").s == "base64", `,"usage":{"total_tokens":%d}`)
}

// listOf answers with a list in OpenAI's format.
func listOf(x *exchange, texts []string, encoded bool, usage string) *apiError {
	if len(texts) == 0 {
		return wireBad("input must not be empty")
	}
	if e := steered(x, texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, 8, vectorItem, encoded)
	return embedded(x, []byte(`{"object":"list","data":[`+string(list)+`],"model":`+quoted(x.model)+fmt.Sprintf(usage, tokens)+`}`), tokens)
}

func nomicEmbed(x *exchange) *apiError {
	v, e := strictBody(x, "model! texts! task_type dimensionality long_text_mode max_tokens_per_text")
	if e != nil {
		return e
	}
	texts, e := v.strings("texts")
	if e != nil {
		return e
	}
	if e := steered(x, texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, 8, "$v", false)
	return embedded(x, fmt.Appendf(nil, `{"embeddings":[%s],"usage":{"prompt_tokens":%d,"total_tokens":%d},"model":%s}`, list, tokens, tokens, quoted(x.model)), tokens)
}

func ai21Embed(x *exchange) *apiError {
	v, e := strictBody(x, "texts! type")
	if e != nil {
		return e
	}
	texts, e := v.strings("texts")
	if e != nil {
		return e
	}
	if e := steered(x, texts); e != nil {
		return e
	}
	list, tokens := vectors(texts, 8, `{"embedding":$v}`, false)
	return embedded(x, []byte(`{"id":"1","results":[`+string(list)+`]}`), tokens)
}

func jinaRerank(x *exchange) *apiError {
	v, e := strictBody(x, "model! query! documents! top_n return_documents")
	if e != nil {
		return e
	}
	return rerankTokens(x, v, "top_n", `{"model":%s,"object":"list","usage":{"total_tokens":%d},"results":[%s]}`)
}

func voyageRerank(x *exchange) *apiError {
	v, e := strictBody(x, "model! query! documents! top_k return_documents truncation")
	if e != nil {
		return e
	}
	return rerankTokens(x, v, "top_k", `{"object":"list","model":%s,"usage":{"total_tokens":%d},"data":[%s]}`)
}

// rerankTokens ranks for a provider that charges by tokens.
func rerankTokens(x *exchange, v value, top, format string) *apiError {
	documents, e := rankable(v)
	if e != nil {
		return e
	}
	results, e := ranked(x, v, top, documents)
	if e != nil {
		return e
	}
	tokens := tokensOf(v.get("query").s) + tokensOf(strings.Join(documents, " "))
	if done, e := opened(x, seedOf(v.get("query").s)); done || e != nil {
		return e
	}
	x.plain("mock", fmt.Appendf(nil, format, quoted(x.model), tokens, strings.Join(results, ",")), Usage{Input: tokens})
	return nil
}

func mistralOCR(x *exchange) *apiError { return ocrOf(x, true) }
func azureOCR(x *exchange) *apiError   { return ocrOf(x, false) }

// pagePrice is what a page costs, in nano-dollars.
const pagePrice = 4_000_000

// ocrOf reads a document of two pages. addresses: a document may be given by its address.
func ocrOf(x *exchange, addresses bool) *apiError {
	v, e := strictBody(x, "model! document! id pages include_image_base64 image_limit image_min_size bbox_annotation_format document_annotation_format table_format")
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
	x.plain("mock", fmt.Appendf(nil, `{"pages":[{"index":0,"markdown":"# One","images":[],"dimensions":{"dpi":200,"height":2200,"width":1700}},{"index":1,"markdown":"# Two","images":[],"dimensions":null}],"model":%s,"usage_info":{"pages_processed":2,"doc_size_bytes":%d}}`, quoted(x.model), len(address.s)), Usage{})
	return nil
}
