package upstream

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Turn is one turn of a conversation as text.
type Turn struct {
	Role chat.Role // User or Assistant
	Text string
}

// Turns are the turns of a conversation, for wires that only know texts of two speakers
// in turn. Neighbours of one speaker are joined, tool results are the user's words, and
// system prompts are collected separately. A conversation without any word of the user is
// rejected.
func Turns(r *chat.Request, loss *chat.Loss) (turns []Turn, system string, err error) {
	var rules, words []string // words of the last turn
	users := false
	end := func() {
		if n := len(turns); n > 0 {
			turns[n-1].Text = strings.Join(words, "\n\n")
		}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		text, err := Flat(m, loss)
		if err != nil {
			return nil, "", err
		}
		role := chat.User
		switch m.Role {
		case chat.System, chat.Developer:
			rules = append(rules, text)
			continue
		case chat.Assistant:
			role = chat.Assistant
		}
		users = users || role == chat.User
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			words = append(words, text)
			continue
		}
		end()
		words = []string{text}
		turns = append(turns, Turn{Role: role})
	}
	end()
	if !users {
		return nil, "", fault.Invalid("messages", "messages must hold a message of the user with content: this provider answers no conversation without one")
	}
	return turns, strings.Join(rules, "\n\n"), nil
}
