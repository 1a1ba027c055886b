package content

import (
	"net/url"
	"strings"

	"gateway/shared/wire"
)

// queryNames are query parameters that providers do not show to a model, in lower case. A value
// that does not look like an identifier is judged anyway, except for credentials.
var queryNames = func() map[string]treatment {
	out := map[string]treatment{}
	for does, names := range map[treatment]string{
		identifier: "api-version alt beta order limit after before after_id before_id offset page pagesize page_size pagetoken page_token include include[] status purpose stream starting_after prettyprint $alt fields",
		secret:     "key api_key api-key access_token token sig signature x-goog-api-key",
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = does
		}
	}
	return out
}()

// Address returns the texts of a decoded path and of a query string as a JSON object, or nil if
// there are none. Segments of the path that can be identifiers are not texts. A malformed query is
// one text.
func Address(path, query string) []byte {
	doc := []byte{'{'}
	add := func(value string) {
		doc = append(wire.AppendJSONString(append(doc, `"text":`...), strings.ToValidUTF8(value, "\ufffd")), ',')
	}
	for segment := range strings.SplitSeq(path, "/") {
		if !isIdentifier([]byte(segment)) {
			add(segment)
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		if query == "" {
			break
		}
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		switch does := queryNames[strings.ToLower(name)]; {
		case nameErr != nil || valueErr != nil:
			add(pair)
		case does == secret, strings.HasPrefix(strings.ToLower(name), "x-amz-"), does == identifier && isIdentifier([]byte(value)):
		default:
			if !isIdentifier([]byte(name)) || value == "" {
				add(name)
			}
			if value != "" {
				add(value)
			}
		}
	}
	if len(doc) == 1 {
		return nil
	}
	doc[len(doc)-1] = '}'
	return doc
}
