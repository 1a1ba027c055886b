package vendors

import (
	"encoding/json"

	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
)

// message is one message in the form that vendors get.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// conversation returns the messages of the request; if it is not a conversation, one message of
// the user.
func (a *ask) conversation() []message {
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
			text = judge.Joined(a.run.s.RequestTexts)
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
	return judge.Joined(f.Texts)
}

// withAnswer returns the conversation, followed by the response.
func (a *ask) withAnswer() any {
	list := a.conversation()
	if a.run.afterResponse() {
		list = append(list, message{"assistant", a.text})
	}
	return list
}

// parted returns the judged text with each of its parts as a message; places are the numbers of
// these parts.
func (a *ask) parted() (list []message, places []int) {
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
