package mockprovider

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// named is a pattern for names and the most bytes that a name may have. A length within the
// pattern would make it large, and every start of the process compiles it.
type named struct {
	most int
	form *regexp.Regexp
}

func (n named) matches(s string) bool { return len(s) <= n.most && n.form.MatchString(s) }

var documentName = named{200, regexp.MustCompile(`^[a-zA-Z0-9\s\-()\[\]]+$`)}

// block reads one content block.
func (q *converseRequest) block(b value, t *turn, at string) *apiError {
	name, inner, e := union(b, at, "text", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent")
	if e != nil {
		return e
	}
	if t.first == "" {
		t.first = name
	}
	switch name {
	case "text":
		t.text += inner.s
		return q.text(inner, at)
	case "cachePoint":
		return q.point(inner, at)
	case "image", "document", "video", "audio":
		return q.medium(name, inner, at)
	case "toolUse":
		q.tooling = true
		if e := members(inner, at+".toolUse", "toolUseId", "name", "input"); e != nil {
			return e
		}
		if !toolName.matches(inner.get("toolUseId").s) || !toolName.matches(inner.get("name").s) || inner.get("input").kind != object || t.role != "assistant" {
			return bedrockInvalid(at + ".toolUse is invalid")
		}
		t.calls = append(t.calls, inner.get("toolUseId").s)
		q.cache.add(&q.job, inner.s)
	case "toolResult":
		return q.result(inner, t, at)
	case "reasoningContent":
		if t.role != "assistant" {
			return bedrockInvalid(at + ": User messages cannot contain reasoning content. Please remove the reasoning content and try again.")
		}
		return q.reasoning(inner, at)
	}
	if name != "toolResult" && t.role == "user" && len(t.results) == 0 {
		t.unordered = true
	}
	return nil
}

func (q *converseRequest) result(inner value, t *turn, at string) *apiError {
	q.tooling = true
	if e := members(inner, at+".toolResult", "toolUseId", "content", "status"); e != nil {
		return e
	}
	if s := inner.get("status"); s.kind != absent && s.s != "error" && s.s != "success" || inner.get("content").kind != array || t.role != "user" {
		return bedrockInvalid(at + ".toolResult is invalid")
	}
	t.results = append(t.results, inner.get("toolUseId").s)
	for k, c := range inner.get("content").arr {
		at := fmt.Sprintf("%s.toolResult.content.%d", at, k)
		name, v, e := union(c, at, "text", "json", "image", "document", "video")
		if e != nil {
			return e
		}
		switch name {
		case "text":
			q.toolText += v.s
			q.cache.add(&q.job, v.s)
		case "json":
			q.cache.add(&q.job, v.s)
		default:
			if e := q.medium(name, v, at); e != nil {
				return e
			}
		}
	}
	return nil
}

var mediumFormats = map[string]string{
	"image": " png jpeg gif webp ", "document": " pdf csv doc docx xls xlsx html txt md ",
	"video": " mkv mov mp4 webm flv mpeg mpg wmv three_gp ", "audio": " mp3 wav flac opus aac ogg pcm webm m4a mp4 ",
}

func (q *converseRequest) medium(kind string, v value, at string) *apiError {
	if e := members(v, at+"."+kind, "format", "source", "name", "context", "citations"); e != nil {
		return e
	}
	if !strings.Contains(mediumFormats[kind], " "+v.get("format").s+" ") {
		return bedrockInvalid("Value '" + v.get("format").s + "' at '" + at + "." + kind + ".format' failed to satisfy constraint")
	}
	name, source, e := union(v.get("source"), at+"."+kind+".source", "bytes", "s3Location")
	if e != nil {
		return e
	}
	if name == "s3Location" && !strings.HasPrefix(source.get("uri").s, "s3://") {
		return bedrockInvalid(at + ": the S3 URI is invalid")
	}
	if name == "bytes" {
		raw, err := base64.StdEncoding.DecodeString(source.s)
		if err != nil || len(raw) == 0 {
			return &apiError{status: 400, typ: "SerializationException", message: "Invalid base64 at " + at}
		}
	}
	if kind == "document" {
		name := v.get("name").s
		if !documentName.matches(name) || strings.Contains(name, "  ") {
			return bedrockInvalid("The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.")
		}
		if slices.Contains(q.documents, name) {
			return bedrockInvalid("Documents with the same name are not allowed: " + name)
		}
		q.documents = append(q.documents, name)
	} else if v.get("name").kind != absent {
		return bedrockInvalid(at + "." + kind + ".name: Extra inputs are not permitted")
	}
	q.cache.addTokens(&q.job, v.s, 85)
	return nil
}

// reasoning accepts only reasoning that this server has signed, unchanged.
func (q *converseRequest) reasoning(v value, at string) *apiError {
	name, inner, e := union(v, at+".reasoningContent", "reasoningText", "redactedContent")
	if e != nil {
		return e
	}
	bad := bedrockInvalid("The model returned the following errors: " + at + ": Invalid `signature` in `thinking` block")
	if name == "redactedContent" {
		if !unsealed(signRedacted, inner.s) {
			return bad
		}
		return nil
	}
	thinking, signature := inner.get("text").s, inner.get("signature").s
	if inner.get("text").kind != text || signature != sign(thinking) && (thinking != "" || !unsealed(signOmitted, signature)) {
		return bad
	}
	return nil
}
