package models

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/wire"
)

// anthropicPage answers as Anthropic's own list does: {data:[{type,id,display_name,
// created_at}], has_more, first_id, last_id}, with its paging. routed: the request
// says which saved provider is meant, so that models go by their own names; else
// they name it.
func anthropicPage(all []model, routed bool, q url.Values) ([]byte, error) {
	ids := make([]string, 0, len(all))
	page := all[:0]
	for _, m := range all {
		id := m.name
		if !routed {
			id = "@" + m.slug + "/" + m.name
		}
		if n := len(ids); n > 0 && ids[n-1] == id {
			continue // two providers of the route have it
		}
		ids, page = append(ids, id), append(page, m)
	}
	limit, err := number(q, "limit")
	if err != nil {
		return nil, err
	}
	from, to, err := between(ids, q, limit)
	if err != nil {
		return nil, err
	}
	more := to < len(ids)
	if q.Get("before_id") != "" {
		more = from > 0
	}
	out := []byte(`{"data":[`)
	for i := from; i < to; i++ {
		if i > from {
			out = append(out, ',')
		}
		out = appendAnthropic(out, ids[i], &page[i])
	}
	out = append(out, `],"has_more":`...)
	if more {
		out = append(out, "true"...)
	} else {
		out = append(out, "false"...)
	}
	out = append(out, `,"first_id":`...)
	if from == to {
		return append(out, `null,"last_id":null}`...), nil
	}
	out = wire.AppendJSONString(out, ids[from])
	out = append(out, `,"last_id":`...)
	return append(wire.AppendJSONString(out, ids[to-1]), '}'), nil
}

// between returns the part of a list that a page requests: at most limit entries (0: all),
// after after_id or before before_id.
func between(ids []string, q url.Values, limit int) (from, to int, err error) {
	to = len(ids)
	find := func(name string) (int, error) {
		i := slices.Index(ids, q.Get(name))
		if i < 0 {
			return 0, fault.Invalid(name, "must be the id of a model of the list")
		}
		return i, nil
	}
	switch {
	case q.Get("after_id") != "" && q.Get("before_id") != "":
		return 0, 0, fault.Invalid("after_id", "cannot be sent together with before_id")
	case q.Get("after_id") != "":
		if from, err = find("after_id"); err != nil {
			return 0, 0, err
		}
		from++
	case q.Get("before_id") != "":
		if to, err = find("before_id"); err != nil {
			return 0, 0, err
		}
		if limit > 0 {
			from = max(0, to-limit)
		}
	}
	if limit > 0 {
		to = min(to, from+limit)
	}
	return from, to, nil
}

func appendAnthropic(out []byte, id string, m *model) []byte {
	out = append(out, `{"type":"model","id":`...)
	out = wire.AppendJSONString(out, id)
	out = append(out, `,"display_name":`...)
	out = wire.AppendJSONString(out, displayName(m.name))
	out = append(out, `,"created_at":"`...)
	out = time.Unix(m.created, 0).UTC().AppendFormat(out, time.RFC3339)
	out = append(out, '"')
	if k := modelmeta.Of(m.service, m.name); k != nil {
		if k.Window > 0 && k.Output > 0 {
			out = fmt.Appendf(out, `,"max_input_tokens":%d,"max_tokens":%d`, k.Window, k.Output)
		}
		if !k.Deprecated.IsZero() {
			out = k.Deprecated.AppendFormat(out, `,"deprecated_at":"`+time.RFC3339+`"`)
		}
		if !k.Shutdown.IsZero() {
			out = k.Shutdown.AppendFormat(out, `,"retires_at":"`+time.RFC3339+`"`)
		}
	}
	return append(out, '}')
}

// displayName is what people call a model: Claude Sonnet 4.5 for
// us.anthropic.claude-sonnet-4-5-20250929-v1:0. Others go by their name.
func displayName(name string) string {
	i := strings.Index(name, "claude-")
	if i < 0 {
		return name
	}
	var words []string
	number := false // the word before is one
	for word := range strings.FieldsFuncSeq(name[i:], func(r rune) bool { return r == '-' || r == '@' || r == ':' }) {
		digits := strings.Trim(word, "0123456789.") == ""
		switch {
		case digits && len(word) >= 6, len(word) > 1 && word[0] == 'v' && strings.Trim(word[1:], "0123456789") == "":
			return strings.Join(words, " ") // the date or version of an edition
		case digits && number:
			words[len(words)-1] += "." + word
		default:
			words = append(words, strings.ToUpper(word[:1])+word[1:])
		}
		number = digits
	}
	return strings.Join(words, " ")
}
