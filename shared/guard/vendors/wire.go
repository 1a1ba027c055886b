package vendors

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/guard"
	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
)

// row is a row of the table: how to call a vendor and how to read its response.
//
// url and the values of header have placeholders for credentials and parameters: {name},
// {name|default}, {a/b} for the first that exists, {name?} for a header that is omitted without
// it, {%name} for a value that is not escaped. body is JSON; a string in it that begins with $
// is replaced by a value, see ask.value. A field without a value is omitted.
type row struct {
	id     string
	name   string // of the vendor, for messages
	url    string
	header string // lines
	body   string
	after  string   // body after the response; "": the same as body
	each   bool     // one call for each part of the text
	most   int      // characters that the vendor accepts in one call; longer texts are split
	empty  bool     // an empty text may be sent
	only   []string // supported request types; nil means all
	nest   string   // the field of the credentials that contains those of the check
	arg    string   // the difference between rows of one vendor
	// ready derives further credentials.
	ready func(c *check) *judge.Failure
	// form encodes a body that is not JSON.
	form  func(a *vendorCall) []byte
	sign  func(ctx context.Context, a *vendorCall, req *http.Request, body []byte) error
	judge func(a *vendorCall, resp response)
	// values are further values for its body and its address, by name.
	values map[string]func(a *vendorCall) any
}

// afterResponse reports whether the check runs after the response.
func (r *run) afterResponse() bool { return r.s.Phase == guard.After }

// lookup returns a credential or parameter as text; "" if there is none.
func (a *vendorCall) lookup(name string) string {
	for one := range strings.SplitSeq(name, "/") {
		v := a.run.creds[one]
		if v == nil {
			v = a.run.params[one]
		}
		if v == nil && a.run.values[one] != nil {
			v = a.run.values[one](a)
		}
		switch v := v.(type) {
		case string:
			if v != "" {
				return v
			}
		case float64, int64, int, bool:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// escape writes a value into a template; before is the text before it.
type escape func(before, value string) (string, bool)

func plain(_, value string) (string, bool) { return value, true }

// inURL inserts a value into an address: as the entire address (if the template begins with
// it), a host name, a path segment, or a query value.
func inURL(before, value string) (string, bool) {
	if before == "" {
		u, err := url.Parse(value)
		return strings.TrimRight(value, "/"), err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
	}
	rest := strings.TrimPrefix(before, "https://")
	switch {
	case !strings.Contains(rest, "/"):
		value = strings.TrimSuffix(strings.TrimPrefix(value, "https://"), "/")
		return value, value != "" && strings.Trim(strings.ToLower(value), "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
	case strings.Contains(rest, "?"):
		return url.QueryEscape(value), true
	}
	return strings.ReplaceAll(url.PathEscape(value), ":", "%3A"), value != "." && value != ".."
}

func (a *vendorCall) address(template string) (string, *judge.Failure) {
	return a.expand(template, inURL)
}

func (a *vendorCall) expand(template string, write escape) (string, *judge.Failure) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		var inside string
		inside, template, _ = strings.Cut(rest, "}")
		if own, ok := strings.CutPrefix(inside, "%"); ok {
			b.WriteString(fmt.Sprint(a.run.values[own](a)))
			continue
		}
		name, standard, _ := strings.Cut(strings.TrimSuffix(inside, "?"), "|")
		value := a.lookup(name)
		if value == "" {
			if value = standard; value == "" {
				return "", a.run.fails(judge.CredentialsError, "needs %s", name)
			}
		}
		text, ok := write(b.String(), value)
		if !ok {
			return "", a.run.fails(judge.CredentialsError, "was not called: %s has an invalid form", name)
		}
		b.WriteString(text)
	}
}

// fill returns a template in which values replace the variables.
func (a *vendorCall) fill(template any) any {
	switch t := template.(type) {
	case string:
		if name, ok := strings.CutPrefix(t, "$"); ok {
			return a.value(name)
		}
	case []any:
		out := make([]any, 0, len(t))
		for _, e := range t {
			if v := a.fill(e); v != nil {
				out = append(out, v)
			}
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, e := range t {
			if v := a.fill(e); v != nil {
				out[name] = v
			}
		}
		return out
	}
	return template
}

// value returns a variable of a body, or nil if it has none:
//
//	text, parts   the judged text, as one text or part by part
//	asked         the text of the request
//	answered      the text of the response, after it
//	messages      the conversation of the request: role and text of each message
//	talk          the same, followed by the response
//	body          the entire request or response
//	model, provider, trace, user
//	?a|b          a before the request, b after the response
//	.name         a parameter; .name|default, a string or JSON
func (a *vendorCall) value(name string) any {
	if words, ok := strings.CutPrefix(name, "?"); ok {
		before, after, _ := strings.Cut(words, "|")
		if a.run.afterResponse() {
			return after
		}
		return before
	}
	if p, ok := strings.CutPrefix(name, "."); ok {
		p, standard, _ := strings.Cut(p, "|")
		if v := a.run.params[p]; v != nil && v != "" {
			return v
		}
		var v any
		if json.Unmarshal([]byte(standard), &v) == nil {
			return v
		}
		return some(standard)
	}
	switch name {
	case "text":
		return a.text
	case "parts":
		return a.run.s.Texts
	case "asked": // of the same request
		if a.run.afterResponse() {
			return judge.JoinTexts(a.run.s.RequestTexts)
		}
		return a.text
	case "answered":
		if a.run.afterResponse() {
			return a.text
		}
		return nil
	case "messages":
		return a.conversation()
	case "talk":
		return a.withResponse()
	case "body":
		if a.run.afterResponse() {
			return a.run.s.Response
		}
		return a.run.s.Request
	case "model":
		return some(a.run.s.Model)
	case "provider":
		return some(a.run.s.Provider)
	case "trace":
		return some(a.run.s.TraceID)
	case "user":
		return some(a.run.s.Metadata["_user"])
	}
	if f := a.run.values[name]; f != nil {
		return f(a)
	}
	return nil
}

// some returns a text, or nothing.
func some(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// message is one message in the form that vendors get.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// conversation returns the messages of the request; if it is not a conversation, one message of
// the user.
func (a *vendorCall) conversation() []message {
	var body struct {
		System       json.RawMessage `json:"system"`
		Instructions json.RawMessage `json:"instructions"`
		Messages     []turn          `json:"messages"`
		Input        json.RawMessage `json:"input"`
	}
	out := []message{}
	add := func(role string, content json.RawMessage) {
		if text := textOf(content); text != "" {
			out = append(out, message{role, text})
		}
	}
	if json.Unmarshal(a.run.s.Request, &body) == nil {
		switch a.run.s.Kind {
		case "createModelResponse":
			add("system", body.Instructions)
			_ = json.Unmarshal(body.Input, &body.Messages)
		case "messages":
			add("system", body.System)
		}
		if a.run.s.Kind == "chatComplete" || a.run.s.Kind == "messages" || a.run.s.Kind == "createModelResponse" {
			for _, m := range body.Messages {
				if m.Role == "" {
					m.Role = "user"
				}
				add(m.Role, m.Content)
			}
		}
	}
	if len(out) == 0 {
		text := a.text
		if a.run.afterResponse() {
			text = judge.JoinTexts(a.run.s.RequestTexts)
		}
		out = append(out, message{"user", text})
	}
	return out
}

// turn is a message of a request.
type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// textOf returns the text of a content: a text, or the texts of its parts.
func textOf(parts json.RawMessage) string {
	if len(parts) == 0 {
		return ""
	}
	body := append(append([]byte(`{"messages":[{"role":"user","content":`), parts...), `}]}`...)
	f := content.InRequest("chatComplete", body, content.LastMessage)
	return judge.JoinTexts(f.Texts)
}

// withResponse returns the conversation, followed by the response.
func (a *vendorCall) withResponse() any {
	list := a.conversation()
	if a.run.afterResponse() {
		list = append(list, message{"assistant", a.text})
	}
	return list
}

// parted returns the judged text with each of its parts as a message; places are the numbers of
// these parts.
func (a *vendorCall) parted() (list []message, places []int) {
	role := "user"
	if a.run.afterResponse() {
		role = "assistant"
	}
	for i, t := range a.run.s.Texts {
		if t != "" {
			list, places = append(list, message{role, t}), append(places, i)
		}
	}
	return list, places
}
