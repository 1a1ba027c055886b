package mockprovider

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// dimensionsOf returns a model's dimensions, and whether a request may ask for fewer.
func dimensionsOf(model string) (n int, mayChoose bool) {
	switch {
	case strings.Contains(model, "3-large"):
		return 3072, true
	case strings.Contains(model, "ada-002"):
		return 1536, false
	}
	return 1536, true
}

var embeddingRules = parseRules("... input!:sa encoding_format=float|base64 dimensions:1..i user:s")

// embeddings serves POST /embeddings. Texts that share words have vectors that are close to
// each other.
func embeddings(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := takeModel(x, v); e != nil {
		return e
	}
	if e := openAIError(embeddingRules.check(v, "")); e != nil {
		return e
	}
	in := v.get("input")
	texts, tokens, e := prompts(in, "input", 2048)
	if e != nil {
		return e
	}
	for _, s := range texts {
		if s == "" {
			return badRequest("input", "invalid_value", "Invalid 'input': input cannot be an empty string.")
		}
	}
	if e := steerBy(&x.st, texts[len(texts)-1]); e != nil {
		return e
	}
	size, mayChoose := dimensionsOf(x.model)
	if n, ok := v.get("dimensions").integer(); ok {
		if n > int64(size) {
			return badRequest("dimensions", "invalid_value", "Invalid value for 'dimensions'. Must be between 1 and "+strconv.Itoa(size)+".")
		}
		if !mayChoose {
			return badRequest("dimensions", "", "This model does not support specifying dimensions.")
		}
		size = int(n)
	}
	format := v.get("encoding_format").s
	id, done, e := begin(x, "embd-", in.s)
	if done {
		return e
	}
	data, _ := vectors(texts, size, `{"object":"embedding","index":$i,"embedding":$v}`, format == "base64")
	usage := json.RawMessage{}
	if !x.st.noUsage {
		usage = fill(`,"usage":{"prompt_tokens":$,"total_tokens":$}`, tokens, tokens)
	}
	x.plain(id, fill(`{"object":"list","data":[$],"model":$$}`, data, x.model, usage), Usage{Input: tokens})
	return nil
}

// vectors writes the embeddings of texts, each in a format with $i and $v, and counts the
// tokens of the texts.
func vectors(texts []string, size int, format string, encoded bool) (list json.RawMessage, tokens int64) {
	for i, s := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		before, after, _ := strings.Cut(strings.Replace(format, "$i", strconv.Itoa(i), 1), "$v")
		list = append(appendVector(append(list, before...), embed(s, size), encoded), after...)
		tokens += tokensOf(s)
	}
	return list, tokens
}

// embed returns a vector of length 1. Each word changes eight dimensions, in whatever case
// it is written; directives do not count.
func embed(s string, size int) []float32 {
	v := make([]float32, size)
	fields := strings.FieldsFunc(strings.ToLower(withoutDirectives(s)), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune(".,;:!?\"'()[]", r)
	})
	if len(fields) == 0 {
		fields = []string{s}
	}
	for _, w := range fields {
		x := seedOf(w) | 1
		for range 8 {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			v[(x>>1)%uint32(size)] += float32(int32(x&1)*2 - 1)
		}
	}
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		v[0], sum = 1, 1
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
	return v
}

func appendVector(b []byte, v []float32, encoded bool) []byte {
	if encoded {
		raw := make([]byte, 4*len(v))
		for i, f := range v {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(f))
		}
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), '"')
	}
	b = append(b, '[')
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(f), 'f', -1, 32)
	}
	return append(b, ']')
}
